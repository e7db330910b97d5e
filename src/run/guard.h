/*
 * The guard: a small process that keeps the promise "COMMAND never outlives
 * the lease" when redlock itself cannot, because it was killed, stopped, or is
 * stuck. Nothing else stops COMMAND because its lease ends (max_hold.h stops it
 * when its time is up).
 *
 * It has a session of its own and the read end of one pipe. Each message says
 * until when the lease is good, and which process and group COMMAND is. The
 * first one is sent by COMMAND's own process before it becomes COMMAND, so
 * there is no moment without.
 *
 * The guard acts
 *  - when the time has come that the last message named: so a renewal that does
 *    not arrive, for whatever reason, is enough;
 *  - at end-of-file without a goodbye: redlock was killed;
 *  - when it is told that the lock is lost (times that have passed).
 * It sends SIGTERM (and SIGCONT, as a stopped process takes no SIGTERM), and
 * SIGKILL once the time for that has come. It never takes back what it has
 * begun: a later renewal is not believed. Its exit status says whether it has stopped
 * anybody.
 *
 * If redlock was stopped, COMMAND may have ended by itself when the guard acts. If the
 * guard finds nobody, it has stopped nobody, and its exit status says so. If it sees that before
 * the lease is over, and has heard of no loss, COMMAND ended under its lock
 * (in_time): that redlock is late to give KEY back is no loss. Later nobody knows when
 * COMMAND ended.
 *
 * If COMMAND needs several locks, the earliest time of them all counts. Each lock has
 * times of its own here, which only its own watchdog changes: so a renewal of one does
 * not make up for another that was lost or is late.
 *
 * It stops all of COMMAND's tree (tree.h), and ends only when nothing of the
 * tree is left; if it has begun, also after the goodbye.
 *
 * Why it hits no stranger: the goodbye is sent while COMMAND is still a zombie
 * that holds its pid, and COMMAND is reaped only after the guard has ended. If
 * redlock is dead, another process reaps COMMAND; then the guard looks every
 * few ms which processes are left.
 *
 * It may be made before there is a lock, while redlock waits for the first answers
 * (a fork costs as much as a server's answer). It has nothing to do before a
 * COMMAND is announced, and ends with redlock.
 *
 * A guard that was killed is replaced: the pipe and the last orders stay with
 * redlock. While there is no memory or no process for another, or another has died
 * within the last second, redlock tries again and again, and does the guard's work
 * itself (guard_check): only if it is killed as well is COMMAND stopped by nobody, so it
 * says that there is no guard.
 *
 * Somebody may stop the guard, even after it has begun. So it is woken when a loss is
 * seen, and again when it is time to kill. What it does not kill within 20 ms of that, redlock
 * kills itself (guard_urge).
 *
 * The first thing that a guard does is to change its process name and its command
 * line. They do not contain "redlock", so that pkill(1) does not hit both.
 */
#ifndef RUN_GUARD_H
#define RUN_GUARD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bounds.h"
#include "base/deadline.h"
#include "base/error.h"
#include "base/lease.h"
#include "run/ancestry.h"
#include "run/tree.h"

/* All that the guard is to know: each message has the whole of it. Shorter than
 * PIPE_BUF, so it is written and read whole. */
struct guard_orders {
	struct lease_times times;
	int64_t since; /* ms: COMMAND was there by then */
	pid_t command; /* 0: not yet announced */
	pid_t group;   /* COMMAND's; 0: the one that redlock is in */
	pid_t session; /* COMMAND's */
	int dismissed; /* COMMAND has exited */
	char badge[ANCESTRY_BADGE];
};

/* What a guard knows; and redlock, while none runs. */
struct guard_duty {
	int signal;
	bool kill;
	int64_t kill_after;
	struct guard_orders orders; /* the last ones */
	struct lease_times times;   /* those that it keeps to */
	struct tree tree;
	bool orphaned;  /* redlock is dead */
	bool dismissed; /* COMMAND has exited */
	bool fired;
	bool found;   /* somebody to stop */
	bool in_time; /* COMMAND had ended, and left nobody, before its lease */
};

struct guard {
	pid_t pid;              /* 0: none runs */
	int readable, writable; /* the pipe */
	int signal;             /* the first one to send; 0: no guard */
	bool kill;              /* SIGKILL after it */
	int64_t kill_after;     /* ms between the two */
	pthread_mutex_t mutex;  /* of these two, from the watchdogs' start */
	struct guard_orders orders;
	struct lease_times times[LOCKS_MOST]; /* of each lock */
	size_t locks;
	struct guard_duty duty; /* of redlock */
	struct deadline again;  /* not before: another that replaces one */
	bool said;              /* why there is none */
	bool urged;             /* to kill */
	bool dismissed;         /* the goodbye has been said */
	bool stopped; /* somebody: by one that has ended, or redlock */
	bool in_time; /* after guard_wait: it saw that COMMAND ended in time */
};

/* signal, kill: as above. Before there is anything to guard, it waits for that. A
 * thread that looks a name up may run meanwhile: it shares no lock with the guard but
 * malloc's, which fork(3) keeps in order. 0, or -1 with errno: there is none. */
int guard_start(struct guard *guard, int signal, bool kill, int64_t kill_after);

bool guard_is_there(const struct guard *guard);

/* The locks are held: COMMAND may be started, within the times of each. key, token: of
 * the lock whose badge COMMAND will carry. One that has died since then is replaced.
 * 0, or -1 with errno. */
int guard_entrust(struct guard *guard, const char *key, const char *token,
		  const struct lease_times *times, size_t locks);

/* In COMMAND's process before exec: this is the process to stop, and its group
 * (0: the one that redlock is in). Async-signal-safe. -1 with errno if the guard
 * could not be told: COMMAND must not be started. */
int guard_announce(const struct guard *guard, pid_t pid, pid_t group);

/* In redlock: that process has become COMMAND. */
void guard_note(struct guard *guard, pid_t pid, pid_t group);

/* New times of one of the locks, by its index among those entrusted. Any thread. */
void guard_tell(struct guard *guard, size_t lock, struct lease_times times);

/* The guard has something to do: should somebody have stopped it, it goes on. */
void guard_wake(const struct guard *guard);

/* Some of COMMAND's tree are left: if it is time to kill, wakes the guard again, and from the
 * second call on kills them as well. To be called every few ms. */
void guard_urge(struct guard *guard);

/* Whether COMMAND is being stopped by the guard, by SIGKILL in the end. */
bool guard_kills(struct guard *guard);

/* When the guard begins to stop COMMAND, if it is sent no newer deadline. */
struct deadline guard_begins(struct guard *guard);

/* When the guard sends SIGKILL, if it was told about a loss. */
struct deadline guard_kill_at(struct guard *guard);

/*
 * COMMAND has exited; it must not be reaped before guard_wait. True if the
 * guard was told before its time to act: so it has not acted, and will not,
 * as it reads all messages before it looks at the clock.
 */
bool guard_goodbye(struct guard *guard);

/* After a SIGCHLD, and when guard_next says so: replaces a guard that has died. If that
 * cannot be done, stops COMMAND if it is time to. Why it cannot, the first time; or else
 * NULL. */
const char *guard_check(struct guard *guard);

struct deadline guard_next(const struct guard *guard);

/* After the goodbye: whether it ends before until. If not, it is stopping COMMAND's
 * tree. */
bool guard_ends(struct guard *guard, struct deadline until);

/* After the goodbye: waits for its end, which is at once unless it is stopping
 * COMMAND's tree. True if it has stopped some of it. */
bool guard_wait(struct guard *guard);

/* There is nothing to guard: ends one that may have been made. */
void guard_dismiss(struct guard *guard);

#endif
