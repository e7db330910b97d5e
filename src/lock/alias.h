/*
 * Two names of one server, found by its run_id. This is a mistake in the
 * configuration, as fewer servers may fail than it seems.
 *
 * Exclusion does not suffer from it: two quorums of names have a name in
 * common, and with it a server. So a lock that is held is renewed and released
 * as usual, with one warning. But no lock is acquired once the mistake is
 * known.
 *
 * A quorum of votes may be complete before the second name has said which
 * server it is. The mistake must not be found by luck, so an acquisition also
 * waits for the other servers: for a moment if nobody has compared these names
 * in the last two hours, and for a whole round if the last comparison found
 * two of them to be one. The result is remembered (hint.h), so unreachable
 * servers cost this moment only once in a while.
 */
#ifndef ALIAS_H
#define ALIAS_H

#include "lock/lock.h"

/* Whether this server is another one's second name. If so, sets lock->alias,
 * and its vote to VOTE_FAILED. For an acquisition, or a look. */
bool alias_is_one(struct lock *lock, size_t server);

/* After a quorum of votes, before it counts as a lock. OK, or ERROR with *error
 * and lock->alias, or INTERRUPTED. */
enum lock_result alias_check(struct lock *lock, struct deadline until,
			     struct error *error);

/* Warns of it once, for a lock that is held. */
void alias_warn(struct lock *lock, size_t server);

#endif
