/*
 * COMMAND: started, told of signals, reaped.
 *
 * It has a process group of its own, but for one case: if redlock is in the
 * foreground of a terminal COMMAND stays in redlock's group, so that ^C, ^Z and
 * pipelines work as they do for flock(1); a signal from the terminal has then
 * reached it already and is not sent again.
 *
 * It does not lead its own group. A program that starts a session for itself
 * has to fork if it leads a group, and the parent that is left ends: with
 * setsid(1) the lock would be released under what it started. So the group is
 * made by another process, which has nothing else to do and ends at once. The
 * group keeps its number for as long as it has a member.
 *
 * It gets the dispositions and the mask that redlock was started with, and no
 * descriptor of redlock's (all are close-on-exec from birth). All signals stay
 * blocked from fork to exec, so one that comes in between waits for COMMAND.
 * It is started as by vfork(2): copying page tables, and the faults behind it,
 * would be a fifteenth of a run. So exec's errno is left in our own memory.
 *
 * Why it never runs without a lock: its process looks at the clock as the last
 * act before exec, and the guard knows it by then (guard.h).
 */
#ifndef CHILD_H
#define CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "deadline.h"
#include "guard.h"
#include "lock.h"

struct child {
	pid_t pid;   /* 0: not started, or reaped */
	pid_t group; /* 0: the one that redlock is in */
	int exit;    /* -1 where it did not exit */
	int signal;  /* that killed it, else 0 */
};

/* What COMMAND learns of its lock; before child_start. 0, or -1 with errno. */
int child_set_environment(const struct lock *lock);

/*
 * Starts command (NULL-terminated, in the current environment) unless the
 * moment latest has passed. 0, or the errno of what failed (ETIME: too late);
 * nothing is left running then.
 */
int child_start(struct child *child, char *const command[],
		const struct guard *guard, struct deadline latest);

/* Sends a signal on, to its group; also if it has left the one that it was
 * started in. by_terminal: the foreground group has it already. */
void child_signal(const struct child *child, int number, bool by_terminal);

/* Whether it has exited; it is not reaped and keeps its pid. */
bool child_has_exited(const struct child *child);

/* Reaps it: fills exit and signal. */
void child_reap(struct child *child);

#endif
