#include "lock/alias.h"
#include "lock/explain.h"
#include "lock/lock.h"
#include "lock/script.h"

/* A server that has released it under one of its names has nothing left to
 * release under another. */
static void share_release(struct lock *lock, size_t i)
{
	struct ballot *ballot = &lock->ballot;

	for (size_t k = 0; k < ballot->quorum->count; k++) {
		if (!quorum_is_one(ballot->quorum, i, k))
			continue;
		if (ballot->vote[k] == VOTE_YES)
			ballot->vote[i] = VOTE_YES;
		else if (ballot->vote[i] == VOTE_YES &&
			 (ballot->vote[k] == VOTE_GONE ||
			  ballot->vote[k] == VOTE_HELD))
			ballot->vote[k] = VOTE_YES;
	}
}

static void on_release(void *context, size_t i, const struct reply *reply)
{
	struct lock *lock = context;
	struct ballot *ballot = &lock->ballot;
	int64_t answer = 0;

	if (!ballot_read(ballot, i, reply, -1, &answer))
		return;
	alias_warn(lock, i);
	if (answer == 1 && reply->count >= 2 && reply->value[1].text == NULL &&
	    reply->value[1].number > lock->kept)
		lock->kept = reply->value[1].number;
	/* if the first answer was lost, that request may have released the
	 * lock, and somebody else may hold it by now */
	if (answer == 1 || quorum_has_broken(ballot->quorum, i))
		ballot->vote[i] = VOTE_YES;
	else
		ballot->vote[i] = answer == 0 ? VOTE_HELD : VOTE_GONE;
	share_release(lock, i);
}

/* So few servers may still have it that they make no quorum. */
static bool is_out_of_quorums(const struct lock *lock)
{
	const struct ballot *ballot = &lock->ballot;

	return ballot_count(ballot, VOTE_YES) +
		       ballot_count(ballot, VOTE_GONE) +
		       ballot_count(ballot, VOTE_HELD) >=
	       quorum_size(ballot->quorum);
}

enum lock_result lock_release(struct lock *lock, int64_t min_hold,
			      struct deadline until, struct error *error)
{
	struct ballot *ballot = &lock->ballot;
	struct reply_handler handler = {lock, on_release, lock_is_decided};

	ballot_open(ballot, NULL);
	lock->kept = 0;
	for (size_t i = 0; i < ballot->quorum->count; i++)
		script_release(lock, i, min_hold);
	quorum_gather(ballot->quorum, wait_until(until), &handler);
	listening_end(&lock->listening, ballot->quorum);
	lock_hurry(lock, false);
	if (ballot_has_quorum(ballot))
		return LOCK_OK;
	if (lock_is_lost(lock, &handler)) {
		explain_loss(ballot, error);
		return LOCK_NOT_HELD;
	}
	if (is_out_of_quorums(lock))
		return LOCK_OK;
	explain_failure(ballot, error);
	return LOCK_ERROR;
}
