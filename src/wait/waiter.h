/*
 * Waiting for a lock: an attempt, and where others hold it a place in the
 * servers' queues (queue.h), until it is granted, the patience is over, or a
 * signal comes.
 *
 * With --poll, or where the servers let nobody subscribe, there are attempts
 * instead, with pauses drawn from 0 to 1, 2, 4 ... 128 ms (full jitter, so that
 * waiters do not keep time with each other), or as --poll says. Each has a
 * token of its own and leaves nothing behind.
 *
 * No attempt begins after the limit; one that has begun gets the time of a
 * whole round, as an answer cut short would be taken for an outage.
 *
 * Where no quorum answers the first attempt, nobody knows whether the servers
 * have ever been there: without a limit to wait for, that is an error at once.
 * Once a quorum has answered, an outage is waited through.
 *
 * An attempt that does not wait (-n) and is granted by some servers only, with
 * nobody seen to have a quorum, has met others like it: it is made again for
 * the time of a round, lest none of them gets the lock.
 */
#ifndef WAITER_H
#define WAITER_H

#include "lock/lock.h"

struct patience {
	bool wait;           /* false: one attempt */
	bool poll;           /* no place in the queue */
	int64_t limit;       /* ms, -1 for ever */
	int64_t every;       /* ms, 0: growing pauses */
	unsigned long tries; /* 0: any number */
};

/* As lock_acquire. The quorum's interrupt descriptor ends a pause too. */
enum lock_result waiter_acquire(struct lock *lock,
				const struct patience *patience,
				struct busy *busy, struct error *error);

#endif
