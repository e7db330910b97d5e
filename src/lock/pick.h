/*
 * Picks the hold for a release that knows only the token of a reentrant lock.
 *
 *	pick_init(&pick, untracked);
 *	pick_open(&pick);                 ask: script_release of "*"
 *	pick_hear(&pick, reply);          each server's holds
 *	pick_is_clear(&pick, ballot);     whether these answers suffice
 *	pick_choose(&pick, hold);         one of them; claim: script_release of that
 *	pick_hear_taker(&pick, i, ...);   which release has given it back there
 *	pick_is_known(&pick, ballot);     whether these answers suffice
 *	pick_is_others(&pick, ballot);    another one has: ask again
 *
 * Why all servers give back the same hold: they may have different ones. One server may
 * have been away while the first was acquired, and another one during the second. If
 * each server picked one by itself, a release could give back both, here the one and
 * there the other: another owner would be granted KEY by a quorum while one of the two
 * has it. So servers first only list their holds. Then the picked one is given back by
 * its name, and no other loses a vote. (A server that has lost the record cannot name its
 * holds: there it is any.)
 *
 * The order: the script's own, as far as names tell (token.h); others that nobody keeps; the
 * rest. Of equals, the one on most servers, as an earlier release may have left its hold
 * on a few: so if no hold is on a quorum yet, all answers are waited for. Then the oldest:
 * one whose acquire has not ended may be entered once more, and lasts for a lease then.
 *
 * Why two releases give back two holds: they may pick the same one. Each server notes the
 * first, and says so to all. The release that was first on most servers has it; in a tie, the
 * smaller number. The others ask again, and after each loss pick among twice as many.
 *
 * Why they never give back three: a release asks again only if it knows that the other one
 * knows. Another was first on a quorum; or all servers have answered, so that the other one
 * counts the same if it has heard them all, too, and else takes the hold for its own. If an
 * answer is missing, a release takes the hold for its own. So if two do, a hold is
 * left until its lease ends, and nobody loses KEY. A repeated request finds its own number,
 * or, if there was no memory for the note, a hold that is gone.
 */
#ifndef LOCK_PICK_H
#define LOCK_PICK_H

#include "lock/ballot.h"

#define HOLD_SIZE (TOKEN_SIZE + 2) /* of lock.h's grant.hold, with the NUL */
#define PICK_HOLDS 100             /* at most, in a server's list and in all */

struct pick {
	bool untracked; /* none that somebody keeps */
	bool gives; /* the next request gives one back: that which is named, or on
			 * a single server that which the server picks */
	char draw[TOKEN_SIZE];
	int tries;
	bool told[SERVERS_MAX]; /* it has answered with a list */
	size_t lost; /* servers that count holds which they cannot name */
	struct candidate {
		char hold[HOLD_SIZE];
		int rank; /* the largest is first */
		size_t servers;
		int64_t age; /* ms, where it is youngest */
	} candidates[PICK_HOLDS];
	size_t count;
	char taker[SERVERS_MAX][TOKEN_SIZE]; /* "": nobody */
	/* what it says of that is certain: no answer was lost */
	bool heard[SERVERS_MAX];
};

void pick_init(struct pick *pick, bool untracked);

/* Forgets the servers' answers. */
void pick_open(struct pick *pick);

/* False if the answer makes no sense. */
bool pick_hear(struct pick *pick, size_t server, const struct reply *reply);
bool pick_was_told(const struct pick *pick);

bool pick_is_clear(struct pick *pick, const struct ballot *ballot);

/* False if there is none. If it may be one that the servers cannot name, as they have lost
 * the record, it is '*' and a number, which each of these counts once. quorum: how many
 * servers are one. */
bool pick_choose(struct pick *pick, size_t quorum, char hold[HOLD_SIZE]);

/* The next requests give back what was chosen. */
void pick_claim(struct pick *pick);

/* sure: no earlier answer to the same was lost. */
void pick_hear_taker(struct pick *pick, size_t server,
		     const struct reply *reply, bool sure);
bool pick_is_known(const struct pick *pick, const struct ballot *ballot);
bool pick_is_others(const struct pick *pick, const struct ballot *ballot);

#endif
