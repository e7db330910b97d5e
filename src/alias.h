/*
 * Two names that are one server, by its run_id: a mistake in the configuration,
 * as fewer servers may fail than it seems.
 *
 * Exclusion does not suffer from it: two quorums of names have a name in common,
 * and with it a server. So a lock that is held goes on, is renewed and released
 * as ever, with one warning; but none is acquired as soon as it is known.
 *
 * The first quorum of votes may be in before the second name has said who it is.
 * So that it is no matter of luck whether the mistake is found, whoever acquires
 * hears the others, too: for a moment if nobody has compared these names of late,
 * for the time of a round if the last that did found two of them to be one. What
 * was found is remembered (hint.h); so servers that are away are waited for once in
 * a while only, and for a moment.
 */
#ifndef ALIAS_H
#define ALIAS_H

#include "lock.h"

/* Whether this server's name is another name of one that is known: lock->alias
 * then, and its vote is VOTE_FAILED. For whoever acquires, or only looks. */
bool alias_is_one(struct lock *lock, size_t server);

/* With a quorum of votes, before it is a lock. OK, or ERROR with *error and
 * lock->alias, or INTERRUPTED. */
enum lock_result alias_check(struct lock *lock, struct deadline until,
			     struct error *error);

/* For a lock that is held: warns of it once. */
void alias_warn(struct lock *lock, size_t server);

#endif
