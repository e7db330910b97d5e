/*
 * Signals as a descriptor, and the mask and dispositions we were started with.
 *
 * Signals that end a waiter or go to COMMAND are blocked and read from one
 * signalfd. So none can arrive between two lines: it stays pending until
 * somebody looks, and every sleep has the descriptor in its poll set. These
 * are all signals that would end us, whatever they are for, as any of them
 * would leave the lock behind. A fault of our own still ends us, as the kernel
 * lets nobody block that. What the parent had set to be ignored (nohup) stays
 * so; that is looked at when a signal comes, as most starts see none.
 *
 * This is the only module that touches masks and dispositions. They are
 * process-wide.
 */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct signals_mask {
	sigset_t set;
};

/* First act of main: remembers what was inherited; SIGPIPE and SIGXFSZ are
 * ignored from here on (a write then fails), SIGCHLD is not. */
void signals_init(void);

/* A descriptor that is readable once a signal has come that would end us;
 * -1 with errno. From now on the first process of a pid namespace (a container's)
 * leaves all its children to the kernel, which reaps them. */
int signals_open(void);

/* From now on the descriptor also tells of CHLD, WINCH, CONT and TSTP, and all
 * children are ours to reap. */
int signals_open_all(void);

/* For any descriptor that is readable: false if it is this one, and only signals
 * have come that are to be ignored. They are taken. */
bool signals_have_come(int fd);

/* Takes the next one; 0 if nothing is pending. _from: with the process that has
 * sent it, 0 if none of our pid namespace has. */
int signals_next(void);
int signals_next_from(pid_t *sender);

/* The signals that are blocked and pending for this process: bit N - 1 for
 * signal N. _take takes those that are in which. Async-signal-safe. */
uint64_t signals_pending(void);
uint64_t signals_take(uint64_t which);

/* Stops us by this signal, until we are continued. */
void signals_stop(int number);

/* Around fork and pthread_create: nothing is delivered in between. */
void signals_block_all(struct signals_mask *before);
void signals_unblock(const struct signals_mask *before);

/* In a forked child: what was inherited, as it was. Async-signal-safe. */
void signals_reset(void);

/* In a forked child that is to know nothing of how we were started. */
void signals_set_default(void);

/* In a forked child that only a SIGKILL may end. */
void signals_ignore_all(void);

/* Ends the process as SIGPIPE does, unless it was ignored when redlock began. */
void signals_end_by_pipe(void);

/* Ends the process by this signal, without a core. */
void signals_die(int number) __attribute__((noreturn));

/* "TERM", "SIGTERM" or "15"; 0 where there is no such signal. */
int signals_parse(const char *name);

#endif
