/*
 * Which hold a release gives back that knows only the token of a reentrant lock.
 *
 *	pick_init(&pick, untracked);
 *	pick_open(&pick);                 ask: script_release of "*"
 *	pick_hear(&pick, reply);          each server's holds
 *	pick_choose(&pick, hold);         one of them; claim: script_release of that
 *	pick_hear_taker(&pick, i, reply); who has given it back there
 *	pick_is_known(&pick, ballot);     no further answer is needed for
 *	pick_is_others(&pick, ballot);    somebody else has: ask again
 *
 * Why it is one hold, the same on every server: servers need not have the same holds. One
 * may have been away while the first was acquired, and another during the second. If each
 * server chose by itself, a release could give back both of them, here the one and there
 * the other: another owner would be granted KEY by a quorum while one of the two has it.
 * So servers only tell which holds they have, nothing is given back by that, and what was
 * picked is given back by its name. Each hold lasts by itself: whichever is
 * picked, no other loses a vote.
 *
 * It matters little which: holds of one owner are alike. But one that is just being
 * acquired may be entered once more by its acquire, after which a hold is left when all
 * have been given back, until its lease ends. So the first to be picked are those that the
 * releasing script has acquired itself, as their names tell (token.h), then
 * others that nobody keeps; of these the one on most servers, as one whose acquire has
 * failed may be left on some; and of several the one that was entered or renewed longest
 * ago. After each time that others came first, lots are drawn among more of the oldest.
 *
 * Why two releases at once give back two holds: both may pick the same one. The server
 * notes who has given it back first, and tells everybody who tries. It is that one's who
 * was first on most servers, of several the one with the smallest number; the others ask
 * again. Both have to count the same servers: so if no majority is seen, and somebody else
 * is, all answers are waited for. A request that comes twice finds its own number.
 */
#ifndef LOCK_PICK_H
#define LOCK_PICK_H

#include "lock/ballot.h"

#define HOLD_SIZE (TOKEN_SIZE + 2) /* of lock.h's grant.hold, with the NUL */
#define PICK_HOLDS 100 /* that are looked at, and that a server tells */

struct pick {
	bool untracked; /* none that somebody keeps */
	bool gives; /* the next request gives one back: that which is named, or on
			 * a single server that which the server picks */
	char draw[TOKEN_SIZE];
	int tries;
	bool told[SERVERS_MAX]; /* it has holds of the token */
	size_t lost; /* servers that count holds which they cannot name */
	struct candidate {
		char hold[HOLD_SIZE];
		int rank; /* the largest is first */
		size_t servers;
		int64_t age; /* ms, where it is youngest */
	} candidates[PICK_HOLDS];
	size_t count;
	char taker[SERVERS_MAX][TOKEN_SIZE]; /* "": nobody */
	bool unsure; /* an answer was lost: it may have been given back by us, and
		      * the note be gone since */
};

void pick_init(struct pick *pick, bool untracked);

/* Forgets what servers have told. */
void pick_open(struct pick *pick);

/* False if the answer makes no sense. */
bool pick_hear(struct pick *pick, size_t server, const struct reply *reply);
bool pick_was_told(const struct pick *pick);

/* False if there is none. If it may be one that the servers cannot name, as they have lost
 * the record, it is '*' and a number, which each of these counts once. quorum: of how many
 * servers each hold has a quorum. */
bool pick_choose(struct pick *pick, size_t quorum, char hold[HOLD_SIZE]);

void pick_hear_taker(struct pick *pick, size_t server,
		     const struct reply *reply);
bool pick_is_known(const struct pick *pick, const struct ballot *ballot);
bool pick_is_others(const struct pick *pick, const struct ballot *ballot);

#endif
