/*
 * What redlock says on standard error, a line at a time, each by one write(2),
 * so that lines of processes that share a log do not mix. Every unprintable byte is
 * made visible. A failure to write changes nothing else.
 *
 * While redlock waits for a lock or holds one, or COMMAND runs, no line waits for its
 * reader, as the lock has to be renewed meanwhile, and COMMAND stopped in time. A line of
 * -v that a full pipe or a stopped terminal does not take at once is dropped. How many
 * were dropped is said before the next line, or in the end. Errors and notices are never
 * dropped: they are few, and are kept until there is room, or until the end, as COMMAND
 * may fill the same pipe as fast as it is read. Then they wait for their reader, unless
 * a signal tells redlock to end.
 *
 * Nor does a line stop the job, even in the background of a terminal with `stty tostop`.
 * A waiter would lose its place in the queue, and COMMAND, which is in the same job, would
 * stop as well, or outlive its --max-hold.
 *
 * A user who looks on while redlock waits sees one live line, drawn again and again in
 * its place. It is drawn only if redlock is in the foreground of the terminal that
 * standard error is, and neither -q nor -v is given. If the line is wider than the
 * terminal, first the holder's description is cut, then "redlock: " is left out, then
 * the description, and at last KEY is cut. The end of the line, with the place and the
 * time, stays. Any other line erases the live line first.
 *
 * This is the one module below the commands that prints: only what -v asks for.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

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

/* Call with true when a wait or a hold begins, and once with false when it ends. Any
 * thread. The last false waits until what was kept is written. */
void log_hurry(bool hurry);

/* Writes what was kept, as far as there is room. False: there is more; call it again. */
bool log_catch_up(void);

/* Waits until all is written. Call it before the process ends, if a lock is still held. */
void log_end(void);

bool log_is_verbose(void);
bool log_is_quiet(void);

/* Whether a live line would be shown now. If not, a waiter need not wake for it. */
bool log_is_live(void);

/* "redlock: NAME: WHOTIMES, REST" */
void log_live(const char *name, const char *who, const char *times,
	      const char *rest);

/* Erases the live line. Call it before the process ends or others print. */
void log_live_end(void);

#endif
