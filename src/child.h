/*
 * COMMAND: started, told of signals, reaped.
 *
 * Without a terminal it has a process group of its own. With one it stays in
 * redlock's, in the foreground and in the background, so that ^C, ^Z, fg, bg and
 * pipelines work as they do for flock(1) (job.h).
 *
 * It does not lead its own group. A program that starts a session for itself
 * has to fork if it leads a group, and the parent that is left ends: with
 * setsid(1) the lock would be released under what it started. So the group is
 * made by another process, which has nothing else to do and ends at once. The
 * group keeps its number for as long as it has a member.
 *
 * It gets the dispositions and the mask that redlock was started with, and no
 * descriptor of redlock's (all are close-on-exec from birth). All signals stay
 * blocked from fork to exec, so one that comes in between waits for COMMAND. A
 * signal to the group that came before the fork has reached redlock only: the new
 * process finds out which these were, and COMMAND gets them once it is there.
 * It is started as by vfork(2): copying page tables, and the faults behind it,
 * would be a fifteenth of a run. With a terminal redlock shares its memory with
 * the new process, too, but does not sleep until exec: ^Z may stop that process
 * before. So exec's errno is left in our own memory.
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
#include "job.h"
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
int child_start(struct child *child, char *const command[], struct job *job,
		const struct guard *guard, struct deadline latest);

/* Sends a signal on, to its group; also if it has left the one that it was
 * started in. To it alone, if it shares redlock's. */
void child_signal(const struct child *child, int number);

/* Whether it is in redlock's group (now). */
bool child_shares_group(const struct child *child);

/* The signal that it has been stopped by since we looked last; 0: by none. */
int child_stopped(const struct child *child);

/* Whether it has exited; it is not reaped and keeps its pid. */
bool child_has_exited(const struct child *child);

/* As the first process of a pid namespace (a container's): reaps what others have
 * left to us, until it comes to COMMAND or one of the others of ours, whose ends
 * are looked at elsewhere; these are tried again at the next SIGCHLD. */
void child_reap_orphans(const pid_t *ours, size_t count);

/* Reaps it: fills exit and signal. */
void child_reap(struct child *child);

#endif
