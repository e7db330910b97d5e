/*
 * The room wait/ is how a lock is waited for. cmd/ may use it. Enter here.
 *
 * A waiter makes an attempt. If others hold the lock, it takes a place in the
 * servers' queues (queue.h), until the lock is granted, the time is over, or a
 * signal comes.
 *
 * With --poll, or if the servers let nobody subscribe, it makes more attempts
 * instead. The pauses between them are drawn from 0 to 1, 2, 4 ... 128 ms (full
 * jitter, so that waiters do not keep time with each other), or are as --poll
 * says. Each attempt has a token of its own and leaves nothing behind.
 *
 * No attempt begins after the limit. An attempt that has begun gets the time of
 * a whole round, as an answer that is cut short would be taken for an outage.
 *
 * If no quorum answers the first attempt, nobody knows whether the servers have
 * ever been there: without a limit to wait for, that is an error at once. Once
 * a quorum has answered, an outage is waited through.
 *
 * An attempt that does not wait (-n) may be granted by some servers only, while
 * nobody is seen to have a quorum. Then it has met others like it, and one of them must get
 * the lock: if each of them called it busy, a job that starts on many hosts at the same
 * second would run on none. So the attempt is made again, as long as it meets somebody new
 * within the time of a round (each attempt has a token of its own), and ten rounds at most.
 * Whoever meets the same one for a whole round has met no attempt, but a holder. It is made
 * five times at least, as one may take longer than a round, if servers are far or votes are
 * moved to another slot. It is also made again, as often, if a server fails between its
 * grant and the raising of its fence. If votes are only missing because servers have lost
 * KEY's record, it is made again until they count, or until the limit, if there is one;
 * for ten rounds at most if the command can do without the lock.
 */
#ifndef WAIT_WAITER_H
#define WAIT_WAITER_H

#include "lock/lock.h"
#include "wait/progress.h"

struct patience {
	bool wait;           /* false: one attempt */
	bool poll;           /* no place in the queue */
	bool unlocked;       /* the command would run without the lock */
	int64_t limit;       /* ms, -1 for ever */
	int64_t every;       /* ms, 0: growing pauses */
	unsigned long tries; /* 0: any number */
	int interrupt;       /* ends the wait if it is readable; -1: none */
};

/* One wait: for one lock, or for several one after the other. */
struct waiter {
	const struct patience *patience;
	struct deadline limit;
	int64_t began;
	int64_t met; /* when somebody was last met who had not been there before */
	char rivals[SERVERS_MAX]
		   [TOKEN_PREFIX_SIZE]; /* who was met, by server */
	unsigned long tries;
	bool poll;
	bool answered; /* a quorum has, at least once */
	bool outage_told, quarantine_told;
	struct progress progress;
};

/* The time that it has begins now. */
void waiter_init(struct waiter *waiter, const struct patience *patience);

/* As lock_acquire. */
enum lock_result waiter_acquire(struct waiter *waiter, struct lock *lock,
				struct busy *busy, struct error *error);

/* The same, after an attempt for this lock that has ended so: BUSY, or ERROR. */
enum lock_result waiter_go_on(struct waiter *waiter, struct lock *lock,
			      enum lock_result last, struct busy *busy,
			      struct error *error);

#endif
