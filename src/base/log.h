/*
 * What redlock says on standard error, a line at a time, each by one write(2),
 * so that lines of processes that share a log do not mix. Every byte that is
 * not printable is made visible. Failing to write changes nothing else.
 *
 * And, for a user who looks on while it waits, one live line that is drawn again
 * and again in its place: only if standard error is the terminal in whose
 * foreground redlock is, and neither -q nor -v is given. If it is wider than the
 * terminal, the description of who has KEY is cut first, then "redlock: " is
 * left out, then the description, and at last KEY is cut: what stands at the
 * end, the place and the time, stays. Any other line erases it first.
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

bool log_is_verbose(void);

/* Whether a live line would be shown, now: who waits need not wake for one
 * that would not. */
bool log_is_live(void);

/* "redlock: NAME: WHOTIMES, REST" */
void log_live(const char *name, const char *who, const char *times,
	      const char *rest);

/* Erases the live line. Call it before the process ends or others print. */
void log_live_end(void);

#endif
