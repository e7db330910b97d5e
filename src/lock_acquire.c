#include <inttypes.h>
#include <string.h>

#include "ballot.h"
#include "lock.h"
#include "log.h"
#include "script.h"

static bool is_quarantined(const struct lock *lock, size_t i)
{
	const struct identity *identity = &lock->quorum->servers[i].identity;

	return lock->quarantine > 0 && !identity->durable &&
	       clock_ms() - identity->started < lock->quarantine;
}

/* Keeps what the most telling refusal says: one with a description, and of
 * those the one with the longest lease. */
static void note_busy(struct busy *busy, const struct reply *reply)
{
	const struct value *said = reply->value;
	struct busy seen = {
		.left = said[1].number,
		.held = said[2].number,
		.known = said[3].length > 0,
		.told = true,
	};

	if (reply->count < 4 || said[3].text == NULL || seen.left < -1 ||
	    seen.held < -1)
		return;
	if (busy->told &&
	    (busy->known > seen.known ||
	     (busy->known == seen.known && busy->left >= seen.left)))
		return;
	record_parse(&seen.holder, said[3].text, said[3].length);
	*busy = seen;
}

static void on_acquire(void *context, size_t i, const struct reply *reply)
{
	struct hearing *hearing = context;
	struct lock *lock = hearing->lock;
	const char *name = lock->quorum->servers[i].url.name;
	int64_t answer = 0;

	if (!ballot_read(lock, i, reply, 0, &answer))
		return;
	if (answer == 0) {
		lock->vote[i] = VOTE_HELD;
		note_busy(hearing->busy, reply);
		log_step("%s: held by another", name);
		return;
	}
	if (reply->count < 2 || reply->value[1].number <= 0 ||
	    reply->value[1].number > FENCE_LARGEST) {
		ballot_reject(lock, i);
		return;
	}
	lock->fences[i] = reply->value[1].number;
	lock->vote[i] = is_quarantined(lock, i) ? VOTE_QUARANTINED : VOTE_YES;
	log_step("%s: granted, fence %" PRId64 "%s", name, lock->fences[i],
		 lock->vote[i] == VOTE_YES
			 ? ""
			 : ", but up too short to have a vote");
}

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
static enum gathered raise_fences(struct hearing *hearing,
				  struct deadline until)
{
	struct judge judge = {hearing, on_raise, ballot_decided};
	struct lock *lock = hearing->lock;

	lock->fence = 0;
	for (size_t i = 0; i < lock->quorum->count; i++)
		if (lock->vote[i] == VOTE_YES && lock->fences[i] > lock->fence)
			lock->fence = lock->fences[i];
	quorum_round(lock->quorum);
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
	return quorum_gather(lock->quorum, until, &judge);
}

static void on_rollback(void *context, size_t i, const struct reply *reply)
{
	(void)context;
	(void)i;
	(void)reply;
}

static bool is_rolled_back(void *context)
{
	const struct hearing *hearing = context;
	const struct quorum *quorum = hearing->lock->quorum;

	for (size_t i = 0; i < quorum->count; i++)
		if (hearing->awaited[i] && quorum_is_waiting(quorum, i))
			return false;
	return true;
}

/*
 * Takes back what this attempt may have left: a server that said no has
 * nothing, nor has one that was never sent anything; all others are sent the
 * release. Waited for are those that said yes, and those whose connection
 * broke before they could; the others have it behind the acquire on their
 * connection. A signal is no reason to leave something behind.
 */
static void roll_back(struct hearing *hearing)
{
	struct judge judge = {hearing, on_rollback, is_rolled_back};
	struct lock *lock = hearing->lock;
	struct quorum *quorum = lock->quorum;
	int interrupt = quorum->interrupt;

	for (size_t i = 0; i < quorum->count; i++)
		hearing->awaited[i] =
			lock->fences[i] > 0 || quorum_has_broken(quorum, i);
	quorum_round(quorum);
	for (size_t i = 0; i < quorum->count; i++) {
		if (lock->vote[i] == VOTE_HELD)
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

/* An attempt that failed: others hold KEY, or too few servers answered. */
static enum lock_result judge_failure(const struct hearing *hearing,
				      struct error *error)
{
	const struct lock *lock = hearing->lock;

	if (!lock->alias && ballot_said_no(hearing))
		return LOCK_BUSY;
	ballot_explain_failure(lock, error);
	return LOCK_ERROR;
}

static enum lock_result take(struct hearing *hearing, struct deadline until,
			     struct error *error)
{
	struct judge judge = {hearing, on_acquire, ballot_decided};
	struct lock *lock = hearing->lock;
	int64_t started = clock_ms();

	ballot_open(lock);
	for (size_t i = 0; i < lock->quorum->count; i++) {
		lock->fences[i] = 0;
		script_acquire(lock, i);
	}
	if (quorum_gather(lock->quorum, until, &judge) == GATHER_INTERRUPTED)
		return LOCK_INTERRUPTED;
	if (!ballot_has_quorum(lock) || lock->alias)
		return judge_failure(hearing, error);
	if (raise_fences(hearing, until) == GATHER_INTERRUPTED)
		return LOCK_INTERRUPTED;
	if (!ballot_has_quorum(lock))
		return judge_failure(hearing, error);
	lock->started = started;
	lock->acquired = clock_ms();
	lock->valid = lock_validity(lock, started);
	if (!deadline_passed(lock->valid))
		return LOCK_OK;
	error_set(error, EXIT_UNREACHED,
		  "the servers granted it too late: "
		  "the lease (-t) was over when the answers came");
	error->passing = true;
	return LOCK_ERROR;
}

enum lock_result lock_acquire(struct lock *lock, struct deadline until,
			      struct busy *busy, struct error *error)
{
	struct hearing hearing = {.lock = lock, .busy = busy};
	enum lock_result result;

	*busy = (struct busy){.held = -1};
	token_make(lock->token);
	result = take(&hearing, until, error);
	if (result != LOCK_OK)
		roll_back(&hearing);
	return result;
}

bool lock_is_quarantined(const struct lock *lock)
{
	size_t quarantined = ballot_count(lock, VOTE_QUARANTINED);

	return quarantined > 0 &&
	       quarantined + ballot_count(lock, VOTE_YES) +
			       ballot_count(lock, VOTE_HELD) >=
		       quorum_size(lock->quorum);
}
