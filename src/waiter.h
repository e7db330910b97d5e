/*
 * Waiting for a lock: attempts with pauses between them, until it is granted,
 * the patience is over, or a signal comes.
 *
 * A pause is drawn from 0 to 1, 2, 4 ... 128 ms (full jitter, so that waiters
 * do not keep time with each other), or is what --poll says. Every attempt has
 * a token of its own and leaves nothing behind, so there is nothing to undo
 * between two of them.
 *
 * No attempt begins after the limit; one that has begun gets the time of a
 * whole round, as an answer cut short would be taken for an outage.
 *
 * Where no quorum answers the first attempt, nobody knows whether the servers
 * have ever been there: without a limit to wait for, that is an error at once.
 * Once a quorum has answered, an outage is waited through.
 */
#ifndef WAITER_H
#define WAITER_H

#include "lock.h"

struct patience {
	bool wait;           /* false: one attempt */
	int64_t limit;       /* ms, -1 for ever */
	int64_t every;       /* ms, 0: growing pauses */
	unsigned long tries; /* 0: any number */
};

/* As lock_acquire. The quorum's interrupt descriptor ends a pause too. */
enum lock_result waiter_acquire(struct lock *lock,
				const struct patience *patience,
				struct busy *busy, struct error *error);

#endif
