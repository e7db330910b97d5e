#include <string.h>

#include "base/duration.h"
#include "base/log.h"
#include "base/signals.h"
#include "lock/alias.h"
#include "lock/explain.h"
#include "lock/lock.h"
#include "lock/script.h"

#define AGAIN_PAUSE 50 /* ms, after servers that could not be reached */
#define HUNG 2         /* rounds, after which a silent connection is replaced */

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

/* The token has holds there, but no untracked one. If the same request had found one
 * before, the server would say so again. */
static bool is_all_tracked(const struct lock *lock, const struct reply *reply,
			   int64_t answer)
{
	return strncmp(lock->grant.hold, "*+", 2) == 0 && answer == -1 &&
	       reply->count == 1;
}

static void on_release(void *context, size_t i, const struct reply *reply)
{
	struct lock *lock = context;
	struct ballot *ballot = &lock->ballot;
	int64_t answer = 0;
	bool tracked;

	if (!ballot_read(ballot, i, reply, -1, &answer))
		return;
	alias_warn(lock, i);
	if (answer == 1 && reply->count >= 2 && reply->value[1].text == NULL &&
	    reply->value[1].number > lock->kept)
		lock->kept = reply->value[1].number;
	tracked = is_all_tracked(lock, reply, answer);
	lock->has_tracked |= tracked;
	/* if an answer was lost, that request may have released the lock, and
	 * somebody else may hold it by now */
	if (answer == 1 || (!tracked && (ballot->unsure[i] ||
					 quorum_has_broken(ballot->quorum, i))))
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

static void note_unsure(struct ballot *ballot)
{
	for (size_t i = 0; i < ballot->quorum->count; i++)
		ballot->unsure[i] |= quorum_is_waiting(ballot->quorum, i) ||
				     quorum_has_broken(ballot->quorum, i);
}

bool lock_release_is_unsure(const struct lock *lock)
{
	const struct ballot *ballot = &lock->ballot;

	for (size_t i = 0; i < ballot->quorum->count; i++)
		if (ballot->unsure[i] || quorum_is_waiting(ballot->quorum, i) ||
		    quorum_has_broken(ballot->quorum, i))
			return true;
	return false;
}

/* Those that have not answered yet. */
static void ask_rest(struct lock *lock, int64_t min_hold)
{
	struct ballot *ballot = &lock->ballot;

	quorum_round(ballot->quorum);
	for (size_t i = 0; i < ballot->quorum->count; i++) {
		if (ballot->vote[i] != VOTE_PENDING &&
		    ballot->vote[i] != VOTE_FAILED)
			continue;
		ballot->vote[i] = VOTE_PENDING;
		script_release(lock, i, min_hold);
	}
}

/* Where KEY is gone nobody notes how the run ended: if a quorum has to, those that were
 * not reached have to be. */
static bool is_settled(struct lock *lock)
{
	const struct ballot *ballot = &lock->ballot;

	return ballot_has_quorum(ballot) || ballot_said_no(ballot) ||
	       (is_out_of_quorums(lock) && !lock->is_to_be_told) ||
	       ballot_is_hopeless(ballot);
}

static void tell_delay(const struct lock *lock, struct deadline until)
{
	struct error why;
	char text[DURATION_TEXT];

	explain_failure(&lock->ballot, &why);
	log_notice("%s: %s, trying for %s more: %s", lock->names.key.data,
		   is_out_of_quorums(lock)
			   ? "released, but its success is not noted yet"
			   : "not released yet",
		   duration_format(text, deadline_left(until)), why.text);
}

static int64_t min_hold_left(int64_t min_hold, int64_t passed)
{
	if (min_hold <= 0)
		return min_hold;
	return min_hold > passed ? min_hold - passed : 0;
}

/* Rounds until one has settled it, or somebody wants us to end. */
static void ask_in_rounds(struct lock *lock, int64_t min_hold,
			  struct deadline until, struct reply_handler *handler)
{
	struct quorum *quorum = lock->ballot.quorum;
	int64_t began = clock_ms();
	/* all may have failed: that is certain, and no end of the pause */
	struct reply_handler late = {lock, on_release, NULL};
	struct wait wait = wait_until(until);
	bool told = deadline_left(until) <= quorum->timeout;

	for (;;) {
		/* where an acquire may be executed yet, the release has to follow it */
		if (clock_ms() - began >= HUNG * quorum->timeout)
			quorum_renew_silent(quorum);
		ask_rest(lock, min_hold_left(min_hold, clock_ms() - began));
		quorum_gather(quorum,
			      wait_earlier(wait, deadline_in(quorum->timeout)),
			      handler);
		if (is_settled(lock))
			break;
		note_unsure(&lock->ballot);
		quorum_idle(quorum,
			    wait_earlier(wait, deadline_in(AGAIN_PAUSE)),
			    &late);
		if (is_settled(lock) || deadline_passed(until) ||
		    signals_tell_to_end())
			break;
		if (!told && clock_ms() - began >= quorum->timeout) {
			tell_delay(lock, until);
			told = true;
		}
	}
}

enum lock_result lock_release(struct lock *lock, int64_t min_hold,
			      struct deadline until, struct error *error)
{
	struct ballot *ballot = &lock->ballot;
	struct reply_handler handler = {lock, on_release, lock_is_decided};

	ballot_open(ballot, NULL);
	lock->kept = 0;
	lock->has_tracked = false;
	ask_in_rounds(lock, min_hold, until, &handler);
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

enum lock_result lock_release_adopted(struct lock *lock, struct deadline until,
				      struct error *error)
{
	char token[TOKEN_LONGEST + 1];
	enum lock_result result;

	lock_adopt_untracked(lock);
	result = lock_release(lock, 0, until, error);
	if (result != LOCK_NOT_HELD || !lock->has_tracked ||
	    ballot_count(&lock->ballot, VOTE_YES) > 0)
		return result;
	strlcpy(token, lock->grant.token, sizeof(token));
	lock_adopt(lock, token);
	return lock_release(lock, 0, until, error);
}

static void on_untracked(void *context, size_t i, const struct reply *reply)
{
	struct ballot *ballot = &((struct lock *)context)->ballot;
	int64_t answer = 0;

	if (ballot_read(ballot, i, reply, 0, &answer))
		ballot->vote[i] = answer == 1 ? VOTE_YES : VOTE_GONE;
}

bool lock_has_untracked(struct lock *lock, struct deadline until)
{
	struct ballot *ballot = &lock->ballot;
	struct reply_handler handler = {lock, on_untracked, lock_is_decided};

	ballot_open(ballot, NULL);
	for (size_t i = 0; i < ballot->quorum->count; i++)
		script_untracked(lock, i);
	quorum_gather(ballot->quorum, wait_until(until), &handler);
	return ballot_count(ballot, VOTE_YES) > 0 && !ballot_said_no(ballot);
}
