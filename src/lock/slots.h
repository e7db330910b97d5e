/*
 * Permits (-P N) are N numbered slots, each of which is an exclusive lock: a vote
 * names a slot, and a majority of votes for one slot is a permit.
 *
 *	slots_hear(ballot, i, slot, free);  a grant tells its slot, and free ones
 *	slots_weigh(ballot);                VOTE_YES or VOTE_ELSEWHERE
 *	slots_are_split(ballot);            a majority granted it, but not one slot
 *	slots_target(ballot);               where to move those votes
 *	slots_settle(ballot);               a quorum: from here on only its slot counts
 *
 * Why no two hold one slot: a server gives it to one token at a time, and all that
 * lock.h says of one KEY is true of one slot. What is new is that a token can be moved
 * from one slot to another on a server. So a vote is worth something only while it is
 * known that no move is still to come there:
 *
 *  - A request has the number of the moves before it. A server moves a token once for
 *    each number, and never for a smaller one, also if it could not move it then. So a
 *    request that comes late, or twice, moves nothing that was told since.
 *  - Once a move was asked for, only the answer to that request, or to a later one, is a
 *    vote of that server. A message names its slot and the request that it answers: one
 *    from before the move is stale.
 *  - When there is a quorum, nothing is asked but to put the token into that quorum's
 *    slot, which it does whatever came before. A renewal counts only where the token has
 *    that slot, and settles it there: no move that is still on its way changes that.
 *
 * Why fences rise: whoever has moved gets a fence as if it had just come. With that of
 * its first slot it could be below the last holder of the new slot.
 *
 * If votes are for different slots, a free one is not far: the servers tell which are
 * free. The votes are moved to the slot that is free, or ours already, on most servers,
 * if these are a quorum; that is done SLOTS_MOVES times at most.
 */
#ifndef LOCK_SLOTS_H
#define LOCK_SLOTS_H

#include "lock/ballot.h"

#define SLOTS_MOVES 2 /* of an attempt */

/* The slot of a grant (0: it has none), and the server's list of free slots. False if
 * either makes no sense. */
bool slots_hear(struct ballot *ballot, size_t server, int64_t slot,
		const char *free);

/* Separates the votes for the slot that has most of them, or for ballot->wanted, from
 * those for other slots. Of several it is the lowest, so that those who compete agree on
 * who gives up what. */
void slots_weigh(struct ballot *ballot);

/* Whether a quorum has granted it, but not one slot. */
bool slots_are_split(const struct ballot *ballot);

/* The slot that is free or ours on most servers; 0 if these are no quorum, or the votes
 * were moved too often. */
int64_t slots_target(const struct ballot *ballot, int moves);

/* With a quorum: the slot that it has granted (0: none), which is wanted from then on. */
int64_t slots_settle(struct ballot *ballot);

#endif
