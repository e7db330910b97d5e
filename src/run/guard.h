/*
 * The guard: a small process that keeps the promise "COMMAND never outlives
 * the lease" when redlock itself cannot, because it was killed, stopped, or is
 * stuck. It is the one place where COMMAND is stopped for its lease's sake
 * (overdue.h stops it for its time's).
 *
 * It has a session of its own and the read end of one pipe. The other end says
 * until when the lease is good, and which group COMMAND is in (COMMAND's own
 * process says it before it becomes COMMAND, so there is no moment without).
 * It acts
 *  - when the time that it was told last has come: so a renewal that does not
 *    arrive, for whatever reason, is enough;
 *  - at end-of-file without a goodbye: redlock was killed;
 *  - when it is told that the lock is lost (times that have passed).
 * It sends SIGTERM (and SIGCONT, as a stopped process takes no SIGTERM), and
 * SIGKILL once the time for that has come. What it has begun is not taken
 * back: a later renewal is not believed, and its exit status says so.
 *
 * It stops all of COMMAND's tree (tree.h), and is not done before nothing of it
 * is left: after the goodbye, too, if it has begun.
 *
 * Why it hits no stranger: the goodbye is sent while COMMAND is still a zombie
 * that holds its pid, and it is reaped only when the guard has ended. Where
 * redlock is dead, somebody else reaps; then the guard looks every few ms who
 * is left.
 *
 * It may be made before there is a lock, while answers or the lock are waited
 * for (a fork costs as much as a server's answer). It has nothing to do before
 * a COMMAND is announced, and ends with redlock.
 *
 * A guard that was killed is replaced: the pipe and what it was told last stay
 * with redlock. From its first act on, its process name and its command line
 * are its own and do not contain "redlock", so that pkill(1) does not hit
 * both.
 */
#ifndef GUARD_H
#define GUARD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/deadline.h"
#include "base/error.h"
#include "run/ancestry.h"

struct guard_times {
	struct deadline term, kill; /* send SIGTERM, SIGKILL */
	struct deadline end;        /* of validity: no use in going on */
};

struct guard {
	pid_t pid;              /* 0: none runs */
	int readable, writable; /* the pipe */
	int signal;             /* the first one to send; 0: no guard */
	bool kill;              /* SIGKILL behind it */
	int64_t kill_after;     /* ms between the two */
	char mark[HELD_MARK];
	pthread_mutex_t mutex;    /* of what is told */
	struct guard_times times; /* as told last */
	bool dismissed;           /* the goodbye has been said */
	bool fired;               /* of one that has ended */
};

/*
 * When to stop COMMAND so that it is gone before validity ends: SIGKILL at
 * validity less the margin (from SIGKILL to reaped has taken 76 ms at p99 for
 * a process of 1 GiB), SIGTERM kill_after earlier.
 */
int64_t guard_margin(int64_t ttl);
struct guard_times guard_plan(struct deadline valid, int64_t margin,
			      int64_t kill_after);

/* signal, kill: as above. Fork while single-threaded: before there is anything
 * to guard, it waits for that. 0, or -1 with errno: there is none. */
int guard_start(struct guard *guard, int signal, bool kill, int64_t kill_after);

bool guard_is_there(const struct guard *guard);

/* The lock is held: COMMAND may be started, within these times. One that has
 * died meanwhile is replaced. 0, or -1 with errno. */
int guard_entrust(struct guard *guard, const char *key, const char *token,
		  struct guard_times times);

/* In COMMAND's process before exec: this is the process to stop, and its group
 * (0: the one that redlock is in). Async-signal-safe. -1 with errno where that
 * was not said: COMMAND must not be started. */
int guard_announce(const struct guard *guard, pid_t pid, pid_t group);

/* Any thread, one at a time. */
void guard_tell(struct guard *guard, struct guard_times times);

/* Whether COMMAND is being stopped by the guard, by SIGKILL in the end. */
bool guard_kills(struct guard *guard);

/* When the guard begins to stop COMMAND, if it is sent no newer deadline. */
struct deadline guard_begins(struct guard *guard);

/* When COMMAND ought to be dead after a loss that was told. */
struct deadline guard_done(struct guard *guard);

/*
 * COMMAND has exited; it must not be reaped before guard_wait. True where the
 * guard was told before its time to act: so it has not acted, and will not,
 * as it reads all that it was told before it looks at the clock.
 */
bool guard_goodbye(struct guard *guard);

/* After a SIGCHLD: replaces a guard that has died. */
void guard_check(struct guard *guard, pid_t command, pid_t group);

/* After the goodbye: waits for its end, which is at once unless it is stopping
 * COMMAND's tree. True where it has. */
bool guard_wait(struct guard *guard);

/* There is nothing to guard: ends one that may have been made. */
void guard_dismiss(struct guard *guard);

#endif
