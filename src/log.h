/*
 * What redlock says on standard error, a line at a time, each by one write(2),
 * so that lines of processes that share a log do not mix. Every byte that is
 * not printable is made visible. Failing to write changes nothing else.
 *
 * The one module below the commands that prints; only what -v asks for.
 */
#ifndef LOG_H
#define LOG_H

#include <stdbool.h>

enum log_level {
	LOG_QUIET, /* -q: errors only */
	LOG_NORMAL,
	LOG_VERBOSE, /* -v: each step, with the time since the start */
};

/* Call before the first line and before any thread: the environment is read
 * here, and not again. */
void log_init(enum log_level level);

/* Whether the locale says UTF-8. */
bool log_utf8(void);

void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_notice(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_step(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
