/*
 * base/: small modules that know nothing of locks and servers: text, errors, clocks,
 * signals, and the arithmetic of a lease. Every room may come in.
 *
 * This one: errors as values, and the exit codes that scripts may rely on.
 *
 * A function that can fail returns 0, or -1 with *error filled: one line of
 * text without "redlock:" and without a newline, in the style of err(3), and
 * the status to exit with. The text may hold bytes that a server or a user
 * sent; log.c makes them visible when it prints. Secrets never enter it.
 *
 * If nothing is wrong, and a lock is just busy, lost or not held, that is a value of an
 * enum in lock.h, not an error. Codes follow sysexits(3) as far as it has a meaning for
 * them.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdbool.h>

enum exit_code {
	EXIT_DONE = 0,
	EXIT_NOT_HELD = 1, /* release, extend */
	EXIT_USAGE = 64,
	EXIT_MISUSED = 65,   /* KEY is no lock, or one of another kind */
	EXIT_UNREACHED = 69, /* no quorum of servers */
	EXIT_BUG = 70,
	EXIT_SYSTEM = 71, /* the operating system refused something */
	EXIT_BUSY = 75,
	EXIT_LOST = 76,
	EXIT_REFUSED = 77, /* login, permission, certificate */
	EXIT_CONFIG = 78,
	EXIT_OVERDUE = 124, /* stopped after --max-hold; as timeout(1) says */
	EXIT_NOT_EXECUTABLE = 126,
	EXIT_NOT_FOUND = 127,
};

struct error {
	int code;       /* enum exit_code */
	bool transient; /* may be gone at the next try */
	char text[2048];
};

/* Fills *error; text that does not fit is cut. */
void error_set(struct error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same, followed by ": " and strerror(errno), and with EXIT_SYSTEM. */
void error_system(struct error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Appends to error->text, or puts something in front of it. */
void error_append(struct error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void error_prepend(struct error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
