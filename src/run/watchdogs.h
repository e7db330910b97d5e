/*
 * The watchdogs of all locks that are held together: one each, so that a server that is
 * slow to renew one lock does not delay the renewal of another.
 *
 *	watchdogs_init(&watchdogs, locks, count, guard, kill_after);
 *	... _due, _act, _poll, _lost as in watchdog.h ...
 *	watchdogs_stop(&watchdogs);
 *	... _lost, _renewals ...
 *	watchdogs_release(&watchdogs);
 *
 * All are lost if one is. The others are renewed meanwhile, until _stop: what they
 * protect goes on until COMMAND has been stopped. If it is not to be stopped, the lost
 * one may be parted with.
 */
#ifndef RUN_WATCHDOGS_H
#define RUN_WATCHDOGS_H

#include "run/watchdog.h"

struct watchdogs {
	size_t count;
	struct watchdog first; /* one needs no memory of its own */
	struct watchdog *others;
	bool parted[LOCKS_MOST];
};

/* The locks in the order in which the guard was entrusted with them; guard NULL: there
 * is none. */
void watchdogs_init(struct watchdogs *watchdogs, struct lock *const *locks,
		    size_t count, struct guard *guard, int64_t kill_after);

struct deadline watchdogs_due(const struct watchdogs *watchdogs);
void watchdogs_act(struct watchdogs *watchdogs);

/* Starts the threads of all but the first `but`. 0, or an errno: not all run. */
int watchdogs_start(struct watchdogs *watchdogs, size_t but);

/* Fills in the descriptors of all: one is readable once its lock is lost. */
void watchdogs_poll(const struct watchdogs *watchdogs, struct pollfd *polled);

/* An epoll(7), for the caller to close, that is readable once interrupt is, or a lock is
 * lost; -1: there is none. */
int watchdogs_interrupt(const struct watchdogs *watchdogs, int interrupt);

/* A lock that is lost, and why; NULL: none is. */
const struct lock *watchdogs_lost(struct watchdogs *watchdogs,
				  struct error *why);

/* The watchdog of a lock that is lost ends: the connections of that lock are the
 * caller's again, and it counts as lost no more. Its index among the locks. */
size_t watchdogs_part(struct watchdogs *watchdogs, const struct lock *lost);

/* After _stop, if the guard was faster: the lock whose validity ends first, and why. */
const struct lock *watchdogs_explain(const struct watchdogs *watchdogs,
				     struct error *why);

/* Of all of them. */
unsigned watchdogs_renewals(const struct watchdogs *watchdogs);

void watchdogs_stop(struct watchdogs *watchdogs);

/* After _stop, or of zeros. */
void watchdogs_release(struct watchdogs *watchdogs);

#endif
