#include "lock/attempt.h"

#include <inttypes.h>
#include <string.h>

#include "lock/alias.h"
#include "base/log.h"
#include "lock/script.h"
#include "lock/trust.h"

void attempt_begin(struct lock *lock)
{
	memset(lock->barred, 0, sizeof(lock->barred));
	lock->silence.read = false;
	trust_begin_attempt(lock);
	token_make(lock->token);
	if (lock->kind != KIND_REENTRANT)
		return;
	if (lock->owner != NULL)
		strlcpy(lock->token, lock->owner, sizeof(lock->token));
	lock->hold[0] = '+';
	token_make(lock->hold + lock->by_hand);
}

/* --- reading a vote ----------------------------------------------------- */

/* Such that sums and multiples of it stay numbers. */
static int64_t bounded(int64_t number)
{
	return number < FENCE_LARGEST ? number : FENCE_LARGEST;
}

static int64_t not_less(int64_t number, int64_t least)
{
	return number > least ? number : least;
}

/* What stands there, or what is safe to assume. */
static int64_t number_at(const struct reply *reply, size_t n)
{
	return n < reply->count && reply->value[n].text == NULL
		       ? reply->value[n].number
		       : 0;
}

/* One who only waits, or whose kind the server refuses, has forgotten nothing. */
static enum misfit misfit_of(const struct lock *lock, const struct busy *seen)
{
	if (seen->left == -2 || !seen->known)
		return MISFIT_NONE;
	if (seen->permits > 0)
		return lock->kind == KIND_EXCLUSIVE ||
				       lock->kind == KIND_REENTRANT
			       ? MISFIT_OURS
			       : MISFIT_NONE;
	return lock->kind == KIND_PERMITS ? MISFIT_THEIRS : MISFIT_NONE;
}

/* Keeps what the most telling refusal says: one with a description, and of
 * those the one with the longest lease. */
static void note_busy(struct busy *busy, const struct lock *lock,
		      const struct reply *reply)
{
	const struct value *said = reply->value;
	struct busy seen = {
		.left = bounded(said[1].number),
		.held = bounded(said[2].number),
		.known = said[3].length > 0,
		.place = bounded(said[4].number),
		.nested = busy->nested || said[5].number == 1,
		.holders = bounded(not_less(number_at(reply, 9), 0)),
		.permits = bounded(not_less(number_at(reply, 10), 0)),
		.told = true,
		.at = clock_ms(),
	};

	seen.misfit = misfit_of(lock, &seen);
	busy->nested = seen.nested;
	if (busy->told &&
	    (busy->known > seen.known ||
	     (busy->known == seen.known && busy->left >= seen.left)))
		return;
	record_parse(&seen.holder, said[3].text, said[3].length);
	*busy = seen;
}

static bool is_refusal(const struct reply *reply)
{
	const struct value *said = reply->value;

	for (size_t i = 1; i < 7 && i < reply->count; i++)
		if ((said[i].text != NULL) != (i == 3 || i == 6))
			return false;
	return reply->count >= 7 && said[1].number >= -2 &&
	       said[2].number >= -1 && said[4].number >= -1;
}

void attempt_count(struct lock *lock, size_t i, int64_t fence)
{
	char text[TRUST_TEXT];
	bool counts;

	lock->fences[i] = fence;
	lock->vote[i] = VOTE_YES;
	trust_weigh(lock);
	counts = lock->vote[i] == VOTE_YES;
	log_step("%s: granted, fence %" PRId64 "%s%s",
		 lock->quorum->servers[i].url.name, fence,
		 counts ? "" : ", but ",
		 counts ? "" : trust_explain(lock, i, text));
}

static const char *text_at(const struct reply *reply, size_t n)
{
	return n < reply->count && reply->value[n].text != NULL
		       ? reply->value[n].text
		       : "";
}

void attempt_read(struct hearing *hearing, size_t i, const struct reply *reply,
		  int64_t *place)
{
	struct lock *lock = hearing->lock;
	int64_t answer = 0, least = lock->kind == KIND_NONE ? 0 : 1;

	if (!ballot_read(lock, i, reply, 0, &answer))
		return;
	if (answer == 1 && reply->count >= 2 && reply->value[1].text == NULL &&
	    reply->value[1].number >= least &&
	    reply->value[1].number <= FENCE_LARGEST) {
		trust_hear(lock, i, number_at(reply, 2), text_at(reply, 3));
		attempt_count(lock, i, reply->value[1].number);
	} else if (answer == 0 && is_refusal(reply)) {
		lock->vote[i] = VOTE_HELD;
		log_step("%s: held by another",
			 lock->quorum->servers[i].url.name);
		*place = bounded(reply->value[4].number);
		note_busy(hearing->busy, lock, reply);
		trust_hear(lock, i, number_at(reply, 7), text_at(reply, 6));
		trust_hear_holder(lock, i, text_at(reply, 6),
				  reply->value[2].number,
				  reply->value[1].number, number_at(reply, 8));
		trust_weigh(lock);
		strlcpy(hearing->mark[i], reply->value[6].text,
			sizeof(hearing->mark[i]));
	} else {
		ballot_reject(lock, i);
	}
}

enum lock_result attempt_judge(const struct hearing *hearing,
			       struct error *error)
{
	const struct lock *lock = hearing->lock;

	if (!lock->alias && ballot_said_no(hearing))
		return LOCK_BUSY;
	ballot_explain_failure(lock, error);
	return LOCK_ERROR;
}

/* --- raising the fences ------------------------------------------------- */

static void on_raise(void *context, size_t i, const struct reply *reply)
{
	struct hearing *hearing = context;
	int64_t answer = 0;

	if (ballot_read(hearing->lock, i, reply, 0, &answer))
		hearing->lock->vote[i] = answer == 1 ? VOTE_YES : VOTE_GONE;
}

/*
 * Every server that may be below the quorum's fence is told it: a voter, whose
 * answer is waited for; one without a vote, as it must know the fence once it
 * has one; one that has not answered the acquire, behind which this goes.
 */
static void ask_raise(struct lock *lock)
{
	for (size_t i = 0; i < lock->quorum->count; i++) {
		switch (lock->vote[i]) {
		case VOTE_YES:
			if (lock->fences[i] >= lock->fence)
				break;
			lock->vote[i] = VOTE_PENDING;
			script_raise(lock, i);
			break;
		case VOTE_QUARANTINED:
		case VOTE_PENDING:
			script_raise(lock, i);
			quorum_forget(lock->quorum, i);
			lock->vote[i] = VOTE_FAILED;
			break;
		default:
			break;
		}
	}
}

enum lock_result attempt_raise(struct hearing *hearing, struct deadline until,
			       struct error *error)
{
	struct judge judge = {hearing, on_raise, ballot_decided};
	struct lock *lock = hearing->lock;

	lock->fence = lock->seen = 0;
	for (size_t i = 0; i < lock->quorum->count; i++)
		if (lock->vote[i] == VOTE_YES && lock->fences[i] > lock->fence)
			lock->fence = lock->fences[i];
	quorum_round(lock->quorum);
	ask_raise(lock);
	if (quorum_gather(lock->quorum, until, &judge) == GATHER_INTERRUPTED)
		return LOCK_INTERRUPTED;
	return ballot_has_quorum(lock) ? alias_check(lock, until, error)
				       : attempt_judge(hearing, error);
}

enum lock_result attempt_confirm(struct lock *lock, struct error *error)
{
	enum lock_result result;

	log_step("confirmed by a round, as little of the lease is left");
	result = lock_extend(lock, deadline_in(lock->quorum->timeout), error);
	lock->renew = deadline_at(lock->started + lock->ttl / 3);
	if (result != LOCK_NOT_HELD)
		return result;
	error->code = EXIT_UNREACHED; /* nothing has run that could lose it */
	error->passing = true;
	return LOCK_ERROR;
}

/* --- taking it back ----------------------------------------------------- */

static void on_taken_back(void *context, size_t i, const struct reply *reply)
{
	(void)context;
	(void)i;
	(void)reply;
}

static bool is_taken_back(void *context)
{
	const struct hearing *hearing = context;
	const struct quorum *quorum = hearing->lock->quorum;

	for (size_t i = 0; i < quorum->count; i++)
		if (hearing->awaited[i] && quorum_is_waiting(quorum, i))
			return false;
	return true;
}

void attempt_take_back(struct hearing *hearing, bool keeps_place)
{
	struct judge judge = {hearing, on_taken_back, is_taken_back};
	struct lock *lock = hearing->lock;
	struct quorum *quorum = lock->quorum;
	int interrupt = quorum->interrupt;

	for (size_t i = 0; i < quorum->count; i++)
		hearing->awaited[i] =
			lock->fences[i] > 0 || quorum_has_broken(quorum, i) ||
			(keeps_place && lock->vote[i] == VOTE_HELD);
	quorum_round(quorum);
	for (size_t i = 0; i < quorum->count; i++) {
		if (lock->vote[i] == VOTE_HELD && !keeps_place)
			continue;
		if (hearing->awaited[i] || server_is_up(&quorum->servers[i]))
			script_release(lock, i, 0);
		else
			server_withdraw(&quorum->servers[i]);
	}
	quorum->interrupt = -1;
	quorum_gather(quorum, deadline_in(quorum->timeout), &judge);
	quorum->interrupt = interrupt;
}
