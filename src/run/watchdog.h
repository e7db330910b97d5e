/*
 * The watchdog: a thread that renews the lock while COMMAND runs.
 *
 * It extends every third of the ttl, or halfway to SIGTERM if that is sooner, on its
 * own schedule however slow the last round was. A failed round is repeated at once on
 * fresh connections, then every tenth of the lease. Each new validity is told to the
 * guard. If a server was away when the lock was taken, the first round is due after a
 * second; from then on such a server is asked by itself (lock_idle).
 *
 * Why the lease is not believed too long: validity counts from the start of a
 * round that a quorum has kept. An answer that arrives when it is time to stop
 * COMMAND is believed neither by the watchdog (it looks at the clock after
 * each round) nor by the guard. A thread that is late, stopped or stuck tells
 * the guard nothing, and that is enough to stop COMMAND in time.
 *
 * The thread is started when it is due: before the first renewal, soon if it has
 * somebody to listen to (listening.h), or at once if a server has not answered yet. A
 * command that has ended before does not
 * pay for it. If the thread cannot be started, because COMMAND has filled the
 * limit of processes or of memory, the calling thread makes the round, and
 * hands no signals on during that round (the server timeout, 1 s by default).
 * The next round tries to start the thread again. The guard knows the end of
 * validity from the beginning.
 *
 * From the thread's start to _stop, the connections and the lock belong to the
 * thread. While it sleeps it reads late answers, and notices connections that
 * were closed. All signals are blocked in it; _stop ends its sleep at once.
 * Each renewal of the guard's first lock sets the process title (title.h).
 */
#ifndef RUN_WATCHDOG_H
#define RUN_WATCHDOG_H

#include <pthread.h>
#include <stdbool.h>

#include "run/guard.h"
#include "lock/lock.h"

struct watchdog {
	struct lock *lock;
	struct guard *guard;
	size_t index;              /* of the lock among those of the guard */
	int64_t kill_after;        /* ms */
	struct deadline due;       /* _act */
	struct deadline next, end; /* of rounds: the next one, and the last */
	int64_t began;             /* ms: when the last round did */
	unsigned failures;         /* in a row */
	struct error last;         /* of them */
	pthread_t thread;
	bool running;
	int stop;              /* eventfd, or -1: end the thread */
	int lost_event;        /* eventfd, or -1: readable once it is lost */
	pthread_mutex_t mutex; /* of what follows */
	bool lost;
	struct error why;
	unsigned renewals;
};

/* As kill_after: COMMAND does not run yet, so the lock is renewed until its validity ends. */
#define NOTHING_TO_STOP (-1)

/* When COMMAND is to be stopped. Under the short first lease of a grant by
 * message (queue.h), at most a sixth of it lies between SIGTERM and SIGKILL. */
struct lease_times watchdog_plan(const struct lock *lock, int64_t kill_after);

/* index: of the lock among those that the guard was entrusted with; guard NULL: there
 * is none (keeper.h). */
void watchdog_init(struct watchdog *watchdog, struct lock *lock,
		   struct guard *guard, size_t index, int64_t kill_after);

/* When to call _act; never, once the thread runs. */
struct deadline watchdog_due(const struct watchdog *watchdog);

/* If it is due, starts the thread, or makes its round. */
void watchdog_act(struct watchdog *watchdog);

/* Starts the thread now. 0, or an errno: there is none, and _act will try again. */
int watchdog_start(struct watchdog *watchdog);

/* Instead of _act: makes the rounds in the calling thread. True if interrupt is readable
 * between two of them, false if the lock is lost. */
bool watchdog_watch(struct watchdog *watchdog, int interrupt);

/* Readable once the thread has lost the lock; -1 without one. */
int watchdog_fd(const struct watchdog *watchdog);

/* Whether the lock is lost, and why. */
bool watchdog_lost(struct watchdog *watchdog, struct error *why);

/* Ends the thread, promptly; the connections are the caller's again. Once more: nothing. */
void watchdog_stop(struct watchdog *watchdog);

/* After _stop, if the guard was faster: since when the lock was not renewed, and why. */
void watchdog_explain(const struct watchdog *watchdog, struct error *why);

#endif
