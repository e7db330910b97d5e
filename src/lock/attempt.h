/*
 * What every attempt to take a lock has in common, whether it is made at once
 * (lock_acquire) or waited for (queue.h): reading a vote, raising the fences,
 * and taking an attempt back.
 */
#ifndef ATTEMPT_H
#define ATTEMPT_H

#include "lock/ballot.h"

/* Draws the token and the hold: neither is used for a second attempt, but for
 * the token of a reentrant lock's owner. */
void attempt_begin(struct lock *lock);

/* Reads an acquire's answer into lock->vote and lock->fences. A refusal is
 * noted in hearing->busy; then *place is the place in the queue, -1 for none.
 * */
void attempt_read(struct hearing *hearing, size_t server,
		  const struct reply *reply, int64_t *place);

/* Counts a grant with this fence: a vote, unless the server may have forgotten
 * that somebody has KEY. After trust_hear. */
void attempt_count(struct lock *lock, size_t server, int64_t fence);

/*
 * With a quorum of votes: the fence is the largest of them, and is stored on a
 * quorum before this returns. OK, or what lock_acquire returns.
 */
enum lock_result attempt_raise(struct hearing *hearing, struct deadline until,
			       struct error *error);

/* A grant that leaves its taker too little time is renewed before it is relied
 * on. OK, ERROR or INTERRUPTED. */
enum lock_result attempt_confirm(struct lock *lock, struct error *error);

/*
 * Takes back what this attempt may have left. A server that was never sent
 * anything has nothing, nor has one that said no, unless the attempt queues
 * there (keeps_place). Waited for are those that said yes or queue us, and
 * those whose connection broke before they could answer; the others have the
 * release behind the acquire on their connection. A signal is no reason to
 * leave something behind.
 */
void attempt_take_back(struct hearing *hearing, bool keeps_place);

/* Too few votes: BUSY where a quorum has answered, else ERROR with *error. */
enum lock_result attempt_judge(const struct hearing *hearing,
			       struct error *error);

#endif
