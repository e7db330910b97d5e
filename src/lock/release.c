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

static void on_release(void *context, size_t i, const struct reply *reply)
{
	struct lock *lock = context;
	struct ballot *ballot = &lock->ballot;
	int64_t answer = 0;

	if (!ballot_read(ballot, i, reply, -2, &answer))
		return;
	alias_warn(lock, i);
	if (answer == -2) {
		if (lock->pick != NULL && pick_hear(lock->pick, i, reply))
			ballot->vote[i] = VOTE_YES;
		else
			ballot_reject(ballot, i);
		return;
	}
	if (lock->pick != NULL)
		pick_hear_taker(lock->pick, i, reply,
				!ballot->unsure[i] &&
					!quorum_has_broken(ballot->quorum, i));
	if (answer == 1 && reply->count >= 2 && reply->value[1].text == NULL &&
	    reply->value[1].number > lock->kept)
		lock->kept = reply->value[1].number;
	/* if an answer was lost, that request may have released the lock, and
	 * somebody else may hold it by now */
	if (answer == 1 || ballot->unsure[i] ||
	    quorum_has_broken(ballot->quorum, i))
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

/* Rounds until one has settled it, or somebody wants us to end. There is one more after
 * `until` if older connections were silent: a firewall may have forgotten them, and the server
 * may answer at once on a new one. */
static void ask_in_rounds(struct lock *lock, int64_t min_hold,
			  struct deadline until, struct reply_handler *handler)
{
	struct quorum *quorum = lock->ballot.quorum;
	int64_t began = clock_ms();
	/* all may have failed: that is certain, and no end of the pause */
	struct reply_handler late = {lock, on_release, NULL};
	struct wait wait = wait_until(until);
	bool told = deadline_left(until) <= quorum->timeout;
	bool connected = quorum_is_connected(quorum);

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
		if (is_settled(lock) || signals_tell_to_end())
			break;
		if (deadline_passed(until)) {
			if (!connected || !quorum_renew_silent(quorum))
				break;
			connected = false;
			until = deadline_in(quorum->timeout);
			wait = wait_until(until);
		}
		if (!told && clock_ms() - began >= quorum->timeout) {
			tell_delay(lock, until);
			told = true;
		}
	}
}

/* Of a release of any hold a quorum of answers is not enough if it leaves open which hold is
 * to be picked, or who has given it back. */
static bool is_decided(void *context)
{
	const struct lock *lock = context;
	const struct ballot *ballot = &lock->ballot;

	if (!lock_is_decided(context))
		return false;
	if (lock->pick == NULL || ballot->alias || ballot_said_no(ballot))
		return true;
	return lock->pick->gives ? pick_is_known(lock->pick, ballot)
				 : pick_is_clear(lock->pick, ballot);
}

static enum lock_result release(struct lock *lock, int64_t min_hold,
				struct deadline until, struct error *error)
{
	struct ballot *ballot = &lock->ballot;
	struct reply_handler handler = {lock, on_release, is_decided};

	ballot_open(ballot, NULL);
	lock->kept = 0;
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

/* Servers that have listed their holds have given none back. */
static void take_votes_back(struct lock *lock, enum vote vote)
{
	for (size_t i = 0; i < lock->ballot.quorum->count; i++)
		if (lock->pick->told[i])
			lock->ballot.vote[i] = vote;
}

/* Asks which holds there are, and gives back the one that was picked. Locks of other kinds
 * are released at once. False: another release has given that one back. */
static bool release_picked(struct lock *lock, int64_t min_hold,
			   struct deadline until, enum lock_result *result,
			   struct error *error)
{
	const struct quorum *quorum = lock->ballot.quorum;
	struct pick *pick = lock->pick;

	pick_open(pick);
	if (quorum->count == 1)
		pick_claim(pick);
	*result = release(lock, min_hold, until, error);
	if (!pick_was_told(pick))
		return true; /* of another kind, or by a single server */
	if (*result == LOCK_ERROR) {
		take_votes_back(lock, VOTE_PENDING);
		return true;
	}
	if (!pick_choose(pick, quorum_size(quorum), lock->grant.hold)) {
		take_votes_back(lock, VOTE_GONE);
		explain_loss(&lock->ballot, error);
		*result = LOCK_NOT_HELD;
		return true;
	}
	pick_claim(pick);
	*result = release(lock, min_hold, until, error);
	return *result != LOCK_OK || !pick_is_others(pick, &lock->ballot);
}

/* Each loss means that another release has ended, so losses end; but a broken server may say
 * anything. */
#define LOSSES_MOST 1000

static enum lock_result release_any(struct lock *lock, int64_t min_hold,
				    struct deadline until, struct error *error)
{
	char any[HOLD_SIZE];
	int64_t limit = deadline_left(until);
	enum lock_result result;
	struct pick pick;
	bool done = false;

	strlcpy(any, lock->grant.hold, sizeof(any));
	pick_init(&pick, any[1] == '+');
	lock->pick = &pick;
	for (int losses = 0; !done && losses < LOSSES_MOST; losses++) {
		strlcpy(lock->grant.hold, any, sizeof(lock->grant.hold));
		done = release_picked(lock, min_hold, deadline_in(limit),
				      &result, error);
	}
	strlcpy(lock->grant.hold, any, sizeof(lock->grant.hold));
	lock->pick = NULL;
	if (done)
		return result;
	error_set(error, EXIT_UNREACHED,
		  "other releases with this token came first, %d times",
		  LOSSES_MOST);
	return LOCK_ERROR;
}

enum lock_result lock_release(struct lock *lock, int64_t min_hold,
			      struct deadline until, struct error *error)
{
	if (lock->grant.hold[0] == '*')
		return release_any(lock, min_hold, until, error);
	return release(lock, min_hold, until, error);
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
