/*
 * Two names of one server, found by its run_id. This is a mistake in the
 * configuration: fewer servers may fail than it seems.
 *
 * Exclusion does not suffer from it: two quorums of names share a name, and
 * with it a server. So a lock that is held is renewed and released as usual,
 * with one warning. But no lock is acquired once the mistake is known. A name that moves
 * to another one's server while we run (stream.h) is found in the same way: a new
 * connection tells its run_id before an answer counts.
 *
 * A quorum of votes may be complete before the second name has said which
 * server it is. Whether the mistake is found must not depend on luck, so an
 * acquisition also waits for the other servers: for a moment if nobody has
 * compared these names in the last two hours, and for a whole round if the last
 * comparison found two of them to be one server. The result is remembered
 * (last_place.h), so unreachable servers cost this moment only once in a while.
 */
#ifndef LOCK_ALIAS_H
#define LOCK_ALIAS_H

#include "lock/lock.h"

/* Whether this server is another one's second name. If so, sets ballot->alias,
 * and its vote to VOTE_FAILED. For an acquisition, or a look. */
bool alias_is_one(struct ballot *ballot, size_t server);

/* ballot_read, but false if the server turns out to be a second name. */
bool alias_read(struct ballot *ballot, size_t server, const struct reply *reply,
		int64_t least, int64_t *answer);

/* After a quorum of votes, before it counts as a lock. OK, or ERROR with *error
 * and ballot.alias, or INTERRUPTED. */
enum lock_result alias_check(struct lock *lock, struct wait wait,
			     struct error *error);

/* Warns of it once, for a lock that is held. */
void alias_warn(struct lock *lock, size_t server);

#endif
