/*
 * Signals as a descriptor, and the mask and dispositions we were started with.
 *
 * Signals that end a waiter or go to COMMAND are blocked and read from one
 * signalfd, so none can hit between two lines: it stays pending until somebody
 * looks, and whoever sleeps has the descriptor in its poll set. What the
 * parent had set to be ignored (nohup) stays so.
 *
 * The only module that touches masks and dispositions. Process-wide.
 */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <signal.h>
#include <stdbool.h>

struct signals_mask {
	sigset_t set;
};

/* First act of main: remembers what was inherited; SIGPIPE is ignored from
 * here on, SIGCHLD is not. */
void signals_init(void);

/* A descriptor that is readable once a signal has come that ends a waiter
 * (INT TERM HUP QUIT USR1 USR2); -1 with errno. */
int signals_open(void);

/* Takes the next such signal; 0 where there is none. */
int signals_ending(void);

/* From now on the descriptor also tells of CHLD, WINCH, CONT and TSTP. */
int signals_open_all(void);

struct signals_event {
	int number;
	bool by_terminal; /* the whole foreground group has got it */
};

/* Takes the next one; false where nothing is pending. */
bool signals_next(struct signals_event *event);

/* Around fork and pthread_create: nothing is delivered in between. */
void signals_block_all(struct signals_mask *before);
void signals_unblock(const struct signals_mask *before);

/* In a forked child: what was inherited, as it was. Async-signal-safe. */
void signals_reset(void);

/* In a forked child that is to know nothing of how we were started. */
void signals_set_default(void);

/* In a forked child that only a SIGKILL may end. */
void signals_ignore_all(void);

/* Ends the process by this signal, without a core. */
void signals_die(int number) __attribute__((noreturn));

/* "TERM", "SIGTERM" or "15"; 0 where there is no such signal. */
int signals_parse(const char *name);

#endif
