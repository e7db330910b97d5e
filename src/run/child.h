/*
 * The room of COMMAND: what runs under a lock, from its start until nothing of
 * it is left. `child` starts it, `job` shares a terminal with it, `watchdog`
 * renews the lock meanwhile, and `guard` and `max_hold` stop it, with all
 * processes that belong to it (`tree`, `process`). `ancestry` is what it
 * inherits. cmd/supervisor.h enters here; wait/ and show/ stay outside. No
 * other room forks, signals or reaps, but for server/drain and net/local.
 *
 * This is COMMAND's own process: it is started, gets signals, and is reaped.
 *
 * Without a terminal it has a process group of its own. With a terminal it
 * stays in redlock's group, in the foreground and in the background, so that
 * ^C, ^Z, fg, bg and pipelines work as they do for flock(1) (job.h).
 *
 * It does not lead its own group. A program that starts a session for itself
 * has to fork if it leads a group, and then its first process ends: with
 * setsid(1) the lock would be released while the program still runs. So
 * another process leads the group. It has nothing to do and ends at once, but
 * nobody waits for that: the group exists from the start of its leader until the
 * leader is reaped. That is done after COMMAND has joined the group, which
 * then keeps its number as long as it has a member. The leader is killed first,
 * as a SIGSTOP to the group may have come before its end.
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
 * Where processes cannot share memory (qemu-user(1), which runs programs of another
 * processor, refuses it) COMMAND is started by fork(2).
 *
 * Why it never runs without a lock: its process looks at the clock as the last
 * act before exec, and the guard knows it by then (guard.h).
 */
#ifndef RUN_CHILD_H
#define RUN_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/deadline.h"
#include "run/guard.h"
#include "run/job.h"
#include "lock/lock.h"

struct child {
	pid_t pid;    /* 0: not started, or reaped */
	pid_t group;  /* 0: the one that redlock is in */
	pid_t leader; /* that has made the group; 0: there is none, or reaped */
	int exit;     /* -1: it did not exit */
	int signal;   /* that killed it, else 0 */
};

/* What COMMAND learns about its locks, the first above all; before child_start. count 0:
 * it runs without the first, and its token, which no server knows, is only there to
 * recognise processes by (ancestry.h). 0, or -1 with errno. */
int child_set_environment(struct lock *const *locks, size_t count);

/*
 * Starts command (NULL-terminated, in the current environment) unless the
 * moment latest has passed. 0, or the errno of what failed (ETIME: too late);
 * nothing is left running then.
 */
int child_start(struct child *child, char *const command[], struct job *job,
		struct guard *guard, struct deadline latest);

/* Sends a signal to COMMAND's group, even if COMMAND has left the group that it
 * was started in; or to COMMAND alone if it shares redlock's group. A signal that is to
 * end it continues it as well. */
void child_signal(const struct child *child, int number);

/* Whether COMMAND is in redlock's group now. */
bool child_shares_group(const struct child *child);

/* The signal that has stopped COMMAND, unless that stop was _noted; 0: none. */
int child_stopped(const struct child *child);

/* What follows from this stop is done. */
void child_note_stop(const struct child *child);

/* Whether it has exited, and how (exit, signal); it is not reaped and keeps its pid. To
 * be asked again at _next, even if no SIGCHLD comes: then the leader of its group is reaped. */
bool child_has_exited(struct child *child);
struct deadline child_next(const struct child *child);

/* If redlock is the first process of a pid namespace (a container's): reaps
 * orphans until it comes to one of redlock's own children, which are reaped
 * elsewhere. The rest is reaped at the next SIGCHLD. */
void child_reap_orphans(const pid_t *ours, size_t count);

/* Reaps it: fills exit and signal. */
void child_reap(struct child *child);

#endif
