#include <string.h>

#include "base/lease.h"
#include "base/log.h"
#include "lock/alias.h"
#include "lock/explain.h"
#include "lock/lock.h"
#include "lock/script.h"
#include "lock/slots.h"

#define AWAY_PAUSE 500 /* ms, at least, and as much again at most */

static void note_left(struct lock *lock, const struct reply *reply, size_t at)
{
	int64_t left = at < reply->count ? reply->value[at].number : 0;

	if (left < lock->grant.left)
		lock->grant.left = left > 0 ? left : 0;
}

static int64_t slot_at(const struct reply *reply, size_t at)
{
	return at < reply->count ? reply->value[at].number : 0;
}

/* What it says is one server's word. */
static void note_broken(struct lock *lock, size_t i, const struct reply *reply)
{
	const struct value *said = reply->value;

	if (reply->count < 2 || said[1].text == NULL) {
		ballot_reject(&lock->ballot, i);
		return;
	}
	lock->ballot.vote[i] = VOTE_BROKEN;
	if (lock->breaker.name[0] == '\0')
		record_read_breaker(&lock->breaker, said[1].text,
				    strnlen(said[1].text, said[1].length));
}

static void on_extend(void *context, size_t i, const struct reply *reply)
{
	struct lock *lock = context;
	struct ballot *ballot = &lock->ballot;
	const struct value *said;
	int64_t answer = 0;

	if (!ballot_read(ballot, i, reply, -2, &answer))
		return;
	alias_warn(lock, i);
	if (answer == -2) {
		note_broken(lock, i, reply);
		return;
	}
	if (answer < 1) {
		ballot->vote[i] = answer == 0 ? VOTE_HELD : VOTE_GONE;
		return;
	}
	said = reply->value;
	if (reply->count < 3 || said[2].text == NULL ||
	    said[1].number > FENCE_LARGEST ||
	    !slots_hear(ballot, i, slot_at(reply, 3), "")) {
		ballot_reject(ballot, i);
		return;
	}
	ballot->vote[i] = VOTE_YES;
	slots_weigh(ballot);
	note_left(lock, reply, 4);
	if (said[1].number < lock->grant.seen || said[2].length == 0)
		return;
	lock->grant.seen = said[1].number;
	lock->wish.description.length = 0;
	buffer_append(&lock->wish.description, said[2].text,
		      strnlen(said[2].text, said[2].length));
}

/* Of an owner's hold that is to be put back, only the token is known, not the hold. Its
 * description has it: "since=TIME HOLD". */
static bool is_nameless(const struct lock *lock)
{
	const struct buffer *text = &lock->wish.description;
	const char *blank = text->length > 0 ? strchr(text->data, ' ') : NULL;

	return lock->grant.hold[0] == '*' && blank != NULL &&
	       strncmp(text->data, "since=", 6) == 0 &&
	       strncmp(blank, " -\n", 3) != 0;
}

/* A permit of which only the token is known cannot be put back: N is missing; nor can an
 * owner's hold. */
static bool is_to_be_put_back(const struct lock *lock, size_t i)
{
	const struct grant *grant = &lock->grant;

	return (lock->ballot.vote[i] == VOTE_GONE ||
		lock->ballot.vote[i] == VOTE_ELSEWHERE) &&
	       grant->fence + grant->seen > 0 && !lock->barred[i] &&
	       (grant->slot == 0 || lock->wish.kind == KIND_PERMITS) &&
	       !is_nameless(lock);
}

/* Gives the lock back to a server that has lost it, if a quorum keeps it: that one has been
 * restarted empty, or was out of reach when the lock was acquired, or granted another slot. */
static void heal(struct lock *lock, size_t i)
{
	struct ballot *ballot = &lock->ballot;

	if (!is_to_be_put_back(lock, i) || !ballot_has_quorum(ballot))
		return;
	log_step("%s: the lock is gone there, put back",
		 ballot->quorum->servers[i].url.name);
	script_put_back(lock, i);
	quorum_forget(ballot->quorum, i);
	ballot->vote[i] = VOTE_PENDING;
}

/*
 * Whether the validity was over before the servers had answered. Meanwhile another may have
 * had a quorum, and given KEY back, and a late request of ours may have come after that. So
 * the votes are there, but they are not for the lock that our fence belongs to. If the
 * validity is not known (lock_adopt), it is for the holder to know it.
 */
static bool is_late(const struct lock *lock)
{
	return lock->grant.valid.at != 0 && deadline_passed(lock->grant.valid);
}

/* It has not answered, and may yet: it had no connection, or has lost it, or was loading. Or
 * it was to get the lock back, and has to say whether it has. */
static bool is_away(const struct lock *lock, size_t i)
{
	const struct ballot *ballot = &lock->ballot;
	const struct quorum *quorum = ballot->quorum;

	if (ballot->vote[i] == VOTE_PENDING)
		return !server_is_up(&quorum->servers[i]) ||
		       !quorum_is_waiting(quorum, i);
	return is_to_be_put_back(lock, i) ||
	       (ballot->vote[i] == VOTE_FAILED &&
		!ballot_failed_for_good(ballot, i));
}

static bool is_any_away(const struct lock *lock)
{
	for (size_t i = 0; i < lock->ballot.quorum->count; i++)
		if (is_away(lock, i))
			return true;
	return false;
}

bool lock_misses_servers(const struct lock *lock)
{
	return ballot_has_quorum(&lock->ballot) && is_any_away(lock);
}

/* When to ask those that are away. A connection has the time of a round before it is given
 * up for a new one. */
static struct deadline next_call(const struct lock *lock)
{
	int64_t round = lock->ballot.quorum->timeout;

	if (!is_any_away(lock))
		return deadline_never();
	return deadline_in((round > AWAY_PAUSE ? round : AWAY_PAUSE) +
			   deadline_jitter(AWAY_PAUSE));
}

enum lock_result lock_extend(struct lock *lock, struct wait wait,
			     struct error *error)
{
	struct ballot *ballot = &lock->ballot;
	struct reply_handler handler = {lock, on_extend, lock_is_decided};
	int64_t started = clock_ms();
	enum gathered gathered;

	ballot_open(ballot, NULL);
	lock->grant.left = INT64_MAX;
	lock->breaker = (struct breaker){.asked = -1};
	for (size_t i = 0; i < ballot->quorum->count; i++)
		script_extend(lock, i);
	gathered = quorum_gather(ballot->quorum, wait, &handler);
	if (ballot_has_quorum(ballot) && is_late(lock)) {
		error_set(error, EXIT_LOST,
			  "its lease was over before it was renewed");
		return LOCK_NOT_HELD;
	}
	if (ballot_has_quorum(ballot)) {
		lock->grant.slot = slots_settle(ballot);
		for (size_t i = 0; i < ballot->quorum->count; i++)
			heal(lock, i);
		lock->grant.started = started;
		lock->grant.lease = lock->wish.ttl;
		lock->grant.valid = lock_validity(lock, started);
		lock->grant.renew =
			deadline_at(started + lease_renewal(lock->wish.ttl));
		ballot->renewed = true;
		lock->next_call = next_call(lock);
		return LOCK_OK;
	}
	if (lock_is_lost(lock, &handler)) {
		lock->broken = ballot_count(ballot, VOTE_BROKEN) > 0;
		explain_loss(ballot, error);
		if (lock->broken)
			explain_break(ballot, &lock->breaker, error);
		return LOCK_NOT_HELD;
	}
	if (gathered == GATHER_INTERRUPTED)
		return LOCK_INTERRUPTED;
	explain_failure(ballot, error);
	return LOCK_ERROR;
}

/* They belong to the renewal that was good: its late answers are heard. */
static void call_those_away(struct lock *lock)
{
	struct quorum *quorum = lock->ballot.quorum;

	for (size_t i = 0; i < quorum->count; i++) {
		if (!is_away(lock, i))
			continue;
		if (!server_is_up(&quorum->servers[i]))
			server_renew(&quorum->servers[i]);
		lock->ballot.vote[i] = VOTE_PENDING;
		script_extend(lock, i);
	}
	lock->next_call = next_call(lock);
}

static void on_late(void *context, size_t i, const struct reply *reply)
{
	struct lock *lock = context;

	if (!lock->ballot.renewed || is_late(lock))
		return;
	on_extend(context, i, reply);
	heal(lock, i);
}

/* Since nobody was away a connection has broken. */
static bool is_to_call(const struct lock *lock)
{
	return lock->ballot.renewed && lock->next_call.at == INT64_MAX &&
	       is_any_away(lock);
}

static bool has_news(void *context)
{
	const struct lock *lock = context;

	return lock->listening.news || is_to_call(lock);
}

enum gathered lock_idle(struct lock *lock, struct wait wait)
{
	struct reply_handler handler = {lock, on_late, has_news};

	while (!deadline_passed(wait.until)) {
		struct deadline call = lock->ballot.renewed ? lock->next_call
							    : deadline_never();

		if (quorum_idle(lock->ballot.quorum, wait_earlier(wait, call),
				&handler) == GATHER_INTERRUPTED)
			return GATHER_INTERRUPTED;
		if (lock->listening.news) {
			lock->listening.news = false;
			return GATHER_CERTAIN;
		}
		if (is_to_call(lock))
			lock->next_call = next_call(lock);
		else if (deadline_passed(call))
			call_those_away(lock);
	}
	return GATHER_OVER;
}
