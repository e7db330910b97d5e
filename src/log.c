#include "log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "deadline.h"
#include "output.h"

#define LINE_LONGEST 8192 /* bytes before they are made visible */
#define COLUMNS 80        /* where the terminal does not say */
#define ERASE "\r\033[K"

static enum log_level log_level = LOG_NORMAL;
static int64_t log_start;
static bool log_in_utf8;
static bool log_dumb;  /* the terminal: it takes no ERASE */
static bool log_drawn; /* a live line is there */

void log_init(enum log_level level)
{
	const char *terminal = getenv("TERM");

	log_level = level;
	log_start = clock_ms();
	log_in_utf8 = output_utf8();
	log_dumb = terminal != NULL && strcmp(terminal, "dumb") == 0;
}

bool log_utf8(void)
{
	return log_in_utf8;
}

bool log_is_live(void)
{
	/* -1 where it is no terminal, or not ours */
	return log_level == LOG_NORMAL && !log_dumb &&
	       tcgetpgrp(STDERR_FILENO) == getpgrp();
}

/* A log that cannot be written must not stop what it tells of. */
static void write_line(struct buffer *line)
{
	(void)!write(STDERR_FILENO, line->data, line->length);
	buffer_release(line);
}

/* Not from the background: what is there now is another program's. */
static void erase(struct buffer *line)
{
	if (log_drawn && log_is_live())
		buffer_print(line, ERASE);
	log_drawn = false;
}

static size_t columns(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return COLUMNS;
	return size.ws_col;
}

void log_live(const char *format, ...)
{
	char text[LINE_LONGEST];
	struct buffer line = {0}, drawn = {0};
	va_list arguments;

	if (!log_is_live())
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	buffer_print(&line, "redlock: ");
	output_visible(&line, text, strlen(text), log_in_utf8);
	/* the last column stays free: some terminals wrap at it */
	buffer_print(&drawn, "\r");
	buffer_append(&drawn, line.data,
		      output_fit(line.data, line.length, columns() - 1));
	buffer_print(&drawn, "\033[K");
	buffer_release(&line);
	write_line(&drawn);
	log_drawn = true;
}

void log_live_end(void)
{
	struct buffer line = {0};

	erase(&line);
	if (line.length > 0)
		write_line(&line);
}

static void print_line(const char *prefix, const char *format,
		       va_list arguments)
{
	char text[LINE_LONGEST];
	struct buffer line = {0};

	vsnprintf(text, sizeof(text), format, arguments);
	erase(&line);
	buffer_print(&line, "redlock: %s", prefix);
	output_visible(&line, text, strlen(text), log_in_utf8);
	buffer_append(&line, "\n", 1);
	write_line(&line);
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
