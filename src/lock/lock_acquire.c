#include "lock/attempt.h"
#include "lock/lock.h"
#include "lock/script.h"
#include "lock/silence.h"
#include "lock/trust.h"

static void on_acquire(void *context, size_t i, const struct reply *reply)
{
	int64_t place;

	attempt_read(context, i, reply, &place);
}

#define MOMENT 25 /* ms */

/* Until when those that have not answered may teach us something: as long again
 * as the quorum took, if not all of the round is due to them. */
static struct deadline end_of_hearing(const struct lock *lock,
				      struct deadline until)
{
	int64_t took = clock_ms() - lock->quorum->asked_at;

	return trust_needs_all(lock)
		       ? until
		       : deadline_earlier(until, deadline_in(took + MOMENT));
}

/* Until when to hear those that are slower than that, or silent. A lease that has
 * mostly passed meanwhile is confirmed. */
static struct deadline end_of_silence(struct lock *lock, struct deadline until)
{
	struct deadline end = deadline_at(0);

	for (size_t i = 0; i < lock->quorum->count; i++) {
		struct deadline its =
			silence_end(lock, i, lock->quorum->asked_at);

		if (quorum_is_waiting(lock->quorum, i) && its.at > end.at)
			end = its;
	}
	until = deadline_earlier(
		until, deadline_at(lock->quorum->asked_at + lock->ttl / 2));
	return deadline_earlier(until, end);
}

/* What the others say, where the votes alone cannot be relied on. */
static enum gathered hear_others(struct hearing *hearing, struct deadline until)
{
	struct judge judge = {hearing, on_acquire, ballot_is_heard};
	struct lock *lock = hearing->lock;
	struct quorum *quorum = lock->quorum;
	enum gathered gathered =
		quorum_gather(quorum, end_of_hearing(lock, until), &judge);
	struct deadline end;

	if (gathered != GATHER_OVER || trust_needs_all(lock))
		return gathered;
	end = end_of_silence(lock, until);
	if (deadline_passed(end))
		return gathered;
	gathered = quorum_gather(quorum, end, &judge);
	for (size_t i = 0; gathered == GATHER_OVER && i < quorum->count; i++)
		if (quorum_is_waiting(quorum, i) &&
		    deadline_passed(silence_end(lock, i, quorum->asked_at)))
			silence_note(lock, i);
	return gathered;
}

/* The votes, and what is to be heard beside them. */
static enum gathered hear(struct hearing *hearing, struct deadline until)
{
	struct judge votes = {hearing, on_acquire, ballot_decided};
	enum gathered gathered;

	do {
		gathered = quorum_gather(hearing->lock->quorum, until, &votes);
		if (gathered != GATHER_CERTAIN || ballot_is_heard(hearing))
			break;
		gathered = hear_others(hearing, until);
	} while (gathered == GATHER_CERTAIN && !ballot_decided(hearing));
	return gathered;
}

static enum lock_result take(struct hearing *hearing, struct deadline until,
			     struct error *error)
{
	struct lock *lock = hearing->lock;
	int64_t started = clock_ms();
	enum lock_result result;

	ballot_open(lock);
	for (size_t i = 0; i < lock->quorum->count; i++) {
		lock->fences[i] = 0;
		script_acquire(lock, i);
	}
	if (hear(hearing, until) == GATHER_INTERRUPTED)
		return LOCK_INTERRUPTED;
	if (!ballot_has_quorum(lock) || lock->alias)
		return attempt_judge(hearing, error);
	if (lock->kind == KIND_NONE)
		return LOCK_OK;
	result = attempt_raise(hearing, until, error);
	if (result != LOCK_OK)
		return result;
	lock->started = started;
	lock->acquired = clock_ms();
	lock->lease = lock->ttl;
	lock->valid = lock_validity(lock, started);
	lock->renew = deadline_at(started + lock->ttl / 3);
	if (deadline_passed(lock->valid)) {
		error_set(error, EXIT_UNREACHED,
			  "the servers granted it too late: "
			  "the lease (-t) was over when the answers came");
		error->passing = true;
		return LOCK_ERROR;
	}
	return deadline_left(lock->valid) > lock->room
		       ? LOCK_OK
		       : attempt_confirm(lock, error);
}

enum lock_result lock_acquire(struct lock *lock, struct deadline until,
			      struct busy *busy, struct error *error)
{
	struct hearing hearing = {.lock = lock, .busy = busy};
	enum lock_result result;

	*busy = (struct busy){.held = -1, .place = -1};
	attempt_begin(lock);
	result = take(&hearing, until, error);
	if (result == LOCK_OK)
		return result;
	busy->split = ballot_is_split(&hearing);
	attempt_take_back(&hearing, false);
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
