/*
 * An attempt to take a lock. lock_acquire (lock.h) makes one at once, and
 * queue.h makes one that waits. Both need to read a vote, to raise the fences,
 * and to take an attempt back.
 */
#ifndef LOCK_ATTEMPT_H
#define LOCK_ATTEMPT_H

#include "lock/lock.h"

/* Draws the token and the hold. Neither is used for a second attempt, except
 * for the token of a reentrant lock's owner. */
void attempt_begin(struct lock *lock);

/* Reads an acquire's answer: the vote, and the fence of a grant. A refusal
 * (VOTE_HELD) fills *seen. */
void attempt_read(struct lock *lock, size_t server, const struct reply *reply,
		  struct busy *seen);

/* Counts a grant with this fence: it is a vote, unless the server may have
 * forgotten that somebody holds KEY. Call after trust_hear. */
void attempt_count(struct lock *lock, size_t server, int64_t fence);

/* Once a quorum has answered: lock->seen_busy is false if a quorum has granted us KEY, even
 * if the grants are no votes, and true otherwise. also: servers whose grant is no vote.
 * If too few answer, it stays as it was. */
void attempt_note_busy(struct lock *lock, size_t also);

/*
 * With a quorum of votes: the fence is the largest of them, and is stored on a
 * quorum before this returns. It takes a round at most, with a time of its own: the votes
 * may have taken all of theirs (trust.h). OK, or what lock_acquire returns.
 */
enum lock_result attempt_raise(struct lock *lock, int interrupt,
			       struct error *error);

/* A grant that leaves its taker too little time is renewed before it is relied
 * on. OK, ERROR or INTERRUPTED. */
enum lock_result attempt_confirm(struct lock *lock, int interrupt,
				 struct error *error);

/*
 * Takes back what this attempt may have left on the servers. A server that was
 * never sent anything has nothing. Nor has a server that said no, unless the
 * attempt queues there (keeps_place). It waits for the servers that granted it
 * or queue us, and for those whose connection broke before they could answer.
 * On the other connections the release follows the acquire. No signal ends
 * this: that is no reason to leave something on a server.
 */
void attempt_take_back(struct lock *lock, bool keeps_place);

/* Too few votes: BUSY if a quorum has answered, else ERROR with *error. */
enum lock_result attempt_conclude(const struct lock *lock, struct error *error);

#endif
