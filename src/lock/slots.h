/*
 * Permits (-P N) are N numbered slots. A vote is for one slot, and votes for the same
 * slot from a majority of the servers are a permit. So each slot is an exclusive lock.
 *
 *	slots_hear(ballot, i, slot, free);  a grant tells its slot, and free ones
 *	slots_weigh(ballot);                VOTE_YES or VOTE_ELSEWHERE
 *	slots_are_split(ballot);            a majority, but for different slots
 *	slots_most(ballot, contested);      how many grants are for one slot
 *	slots_target(ballot, moves);        where to move those votes
 *	slots_settle(ballot);               a quorum: from here on only its slot counts
 *
 * Why no two hold one slot: a server gives it to one token at a time. So what lock.h says
 * about KEY holds for each slot, with one difference: a server can move a token to another
 * slot. A vote therefore counts only if no move is still to come there:
 *
 *  - A request has the number of the moves before it. A server may move a token at the
 *    first request with a number, but not at others with the same number or a smaller
 *    one. So a request that comes late, or twice, takes no token out of a slot that a
 *    later answer has named.
 *  - Once a server was asked for a move, only the answer to that request, or to a later
 *    one, is its vote. A message names its slot and the request that it answers: one
 *    from before the move is stale.
 *  - Once there is a quorum, a request only puts the token into that quorum's slot,
 *    whatever came before. A renewal counts only where the token has that slot, and
 *    settles it there: no move that is still on its way changes that.
 *
 * Why fences rise: a token that was moved gets a new fence. Its old one could be smaller
 * than that of the new slot's last holder.
 *
 * With each grant a server tells which slots are free. So votes for different slots can
 * be moved to the slot that is free, or ours already, on most servers, if these are a
 * quorum. That is done SLOTS_MOVES times at most.
 */
#ifndef LOCK_SLOTS_H
#define LOCK_SLOTS_H

#include "lock/ballot.h"

#define SLOTS_MOVES 2 /* of an attempt */

/* The slot of a grant (0: it has none), and the server's list of free slots. False if
 * either makes no sense. */
bool slots_hear(struct ballot *ballot, size_t server, int64_t slot,
		const char *free);

/* Separates the votes for one slot from those for others. It is ballot->wanted, or else
 * the slot with most votes, or the lowest of several: so those who compete give up the
 * same slots. */
void slots_weigh(struct ballot *ballot);

/* Whether a quorum has granted a permit, but for different slots. */
bool slots_are_split(const struct ballot *ballot);

/* On how many servers we have one slot, at most, whether that counts yet or not. contested:
 * with those where perhaps another has it. */
size_t slots_most(const struct ballot *ballot, bool contested);

/* The slot that is free or ours on most servers; 0 if these are no quorum, or the votes
 * were moved too often. */
int64_t slots_target(const struct ballot *ballot, int moves);

/* With a quorum: the slot that it has granted (0: none), which is wanted from then on. */
int64_t slots_settle(struct ballot *ballot);

#endif
