/*
 * COMMAND: started, told of signals, reaped.
 *
 * Without a terminal it has a process group of its own. With a terminal it
 * stays in redlock's group, in the foreground and in the background, so that
 * ^C, ^Z, fg, bg and pipelines work as they do for flock(1) (job.h).
 *
 * It does not lead its own group. A program that starts a session for itself
 * has to fork if it leads a group, and then its first process ends: with
 * setsid(1) the lock would be released while the program still runs. So
 * another process makes the group, and ends at once. The group keeps its
 * number as long as it has a member.
 *
 * COMMAND gets the dispositions and the mask that redlock was started with,
 * and no descriptor of redlock's (all are close-on-exec from birth). All
 * signals stay blocked from fork to exec, so a signal that comes in between
 * waits for COMMAND. A signal to the group that came before the fork has
 * reached redlock only: the new process looks for these, and COMMAND gets them
 * after exec.
 *
 * It is started as by vfork(2), as copying page tables and the page faults
 * after it would be a fifteenth of a run. With a terminal redlock shares its
 * memory with the new process, too, but does not sleep until exec, as ^Z may
 * stop that process before. Either way exec's errno is left in our own memory.
 *
 * Why it never runs without a lock: its process looks at the clock as the last
 * act before exec, and the guard knows it by then (guard.h).
 */
#ifndef CHILD_H
#define CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/deadline.h"
#include "run/guard.h"
#include "run/job.h"
#include "lock/lock.h"

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

/* Sends a signal to COMMAND's group, even if COMMAND has left the group that it
 * was started in; or to COMMAND alone if it shares redlock's group. */
void child_signal(const struct child *child, int number);

/* Whether COMMAND is in redlock's group now. */
bool child_shares_group(const struct child *child);

/* The signal that has stopped COMMAND, unless that was _noted; 0: none. */
int child_stopped(const struct child *child);

/* We have done what follows from this stop. */
void child_note_stop(const struct child *child);

/* Whether it has exited; it is not reaped and keeps its pid. */
bool child_has_exited(const struct child *child);

/* If redlock is the first process of a pid namespace (a container's): reaps
 * orphans until it comes to one of ours, which others reap. What is then left
 * is reaped at the next SIGCHLD. */
void child_reap_orphans(const pid_t *ours, size_t count);

/* Reaps it: fills exit and signal. */
void child_reap(struct child *child);

#endif
