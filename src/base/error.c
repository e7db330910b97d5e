#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void append(struct error *error, const char *format, va_list arguments)
{
	size_t used = strlen(error->text);

	vsnprintf(error->text + used, sizeof(error->text) - used, format,
		  arguments);
}

static void start(struct error *error, int code)
{
	error->code = code;
	error->transient = false;
	error->text[0] = '\0';
}

void error_set(struct error *error, int code, const char *format, ...)
{
	va_list arguments;

	start(error, code);
	va_start(arguments, format);
	append(error, format, arguments);
	va_end(arguments);
}

void error_system(struct error *error, const char *format, ...)
{
	int cause = errno;
	va_list arguments;

	start(error, EXIT_SYSTEM);
	va_start(arguments, format);
	append(error, format, arguments);
	va_end(arguments);
	error_append(error, ": %s", strerror(cause));
}

void error_append(struct error *error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	append(error, format, arguments);
	va_end(arguments);
}

void error_prepend(struct error *error, const char *format, ...)
{
	char text[sizeof(error->text)];
	va_list arguments;

	memcpy(text, error->text, sizeof(text));
	error->text[0] = '\0';
	va_start(arguments, format);
	append(error, format, arguments);
	va_end(arguments);
	error_append(error, "%s", text);
}
