#include "log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "deadline.h"
#include "output.h"

#define LINE_LONGEST 8192 /* bytes before they are made visible */

static enum log_level log_level = LOG_NORMAL;
static int64_t log_start;
static bool log_in_utf8;

void log_init(enum log_level level)
{
	log_level = level;
	log_start = clock_ms();
	log_in_utf8 = output_utf8();
}

bool log_utf8(void)
{
	return log_in_utf8;
}

static void print_line(const char *prefix, const char *format,
		       va_list arguments)
{
	char text[LINE_LONGEST];
	struct buffer line = {0};

	vsnprintf(text, sizeof(text), format, arguments);
	buffer_print(&line, "redlock: %s", prefix);
	output_visible(&line, text, strlen(text), log_in_utf8);
	buffer_append(&line, "\n", 1);
	/* a log that cannot be written must not stop what it tells of */
	(void)!write(STDERR_FILENO, line.data, line.length);
	buffer_release(&line);
}

void log_error(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_line("", format, arguments);
	va_end(arguments);
}

void log_notice(const char *format, ...)
{
	va_list arguments;

	if (log_level < LOG_NORMAL)
		return;
	va_start(arguments, format);
	print_line("", format, arguments);
	va_end(arguments);
}

void log_step(const char *format, ...)
{
	int64_t since;
	char prefix[32];
	va_list arguments;

	if (log_level < LOG_VERBOSE)
		return;
	since = clock_ms() - log_start;
	snprintf(prefix, sizeof(prefix),
		 "%" PRId64 ".%03" PRId64 "s: ", since / 1000, since % 1000);
	va_start(arguments, format);
	print_line(prefix, format, arguments);
	va_end(arguments);
}
