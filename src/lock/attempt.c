#include "lock/attempt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lease.h"
#include "base/log.h"
#include "lock/alias.h"
#include "lock/explain.h"
#include "lock/rights.h"
#include "lock/script.h"
#include "lock/slots.h"
#include "lock/trust.h"

#define MOMENT 25            /* ms that servers may be slower than the quorum */
#define FENCE_AHEAD 86400000 /* that a clock may lift a fence */
#define LOOKED_AT 50         /* holders, at most (acquire.lua) */

/* Those who compete for KEY begin at different slots. */
static void draw_slot(struct lock *lock)
{
	struct grant *grant = &lock->grant;

	grant->moves = 0;
	grant->slot = lock->ballot.wanted = 0;
	if (lock->wish.kind == KIND_PERMITS)
		grant->slot =
			1 + arc4random_uniform((uint32_t)lock->wish.permits);
}

/* What a renewal has learned (extend.lua): since when it was held, and as which hold. */
static void forget_since(struct buffer *text)
{
	const char *end = text->length > 0 ? strchr(text->data, '\n') : NULL;
	size_t line;

	if (end == NULL || strncmp(text->data, "since=", 6) != 0)
		return;
	line = (size_t)(end + 1 - text->data);
	text->length -= line;
	memmove(text->data, end + 1, text->length + 1);
}

void attempt_begin(struct lock *lock)
{
	forget_since(&lock->wish.description);
	memset(lock->barred, 0, sizeof(lock->barred));
	lock->silence.read = lock->broken = false;
	trust_begin_attempt(&lock->ballot);
	draw_slot(lock);
	token_make(lock->grant.token);
	if (lock->wish.kind != KIND_REENTRANT)
		return;
	if (lock->wish.owner != NULL)
		strlcpy(lock->grant.token, lock->wish.owner,
			sizeof(lock->grant.token));
	lock->grant.hold[0] = '+';
	if (lock->wish.untracked)
		token_make_near(lock->grant.hold + 1);
	else
		token_make(lock->grant.hold);
}

/* --- reading a vote ----------------------------------------------------- */

/* So that sums and multiples of it stay in range. */
static int64_t bounded(int64_t number)
{
	return number < FENCE_LARGEST ? number : FENCE_LARGEST;
}

static int64_t not_less(int64_t number, int64_t least)
{
	return number > least ? number : least;
}

/* Value n of the reply, or what is safe to assume. */
static int64_t number_at(const struct reply *reply, size_t n)
{
	return n < reply->count && reply->value[n].text == NULL
		       ? reply->value[n].number
		       : 0;
}

/* If we only wait, or the server refuses our kind, nobody has forgotten -P. */
static enum misfit misfit_of(const struct lock *lock, const struct busy *seen)
{
	if (seen->left == -2 || !seen->has_description)
		return MISFIT_NONE;
	if (seen->permits > 0)
		return lock->wish.kind == KIND_EXCLUSIVE ||
				       lock->wish.kind == KIND_REENTRANT
			       ? MISFIT_OURS
			       : MISFIT_NONE;
	return lock->wish.kind == KIND_PERMITS ? MISFIT_THEIRS : MISFIT_NONE;
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
	struct ballot *ballot = &lock->ballot;
	char text[TRUST_TEXT], slot[32] = "";
	bool counts;

	ballot->fence[i] = fence;
	ballot->vote[i] = VOTE_YES;
	trust_weigh(ballot);
	counts = ballot->vote[i] != VOTE_QUARANTINED;
	if (ballot_has_quorum(ballot) && lock->wish.kind != KIND_NONE)
		lock_hurry(lock, true);
	if (lock->wish.kind == KIND_NONE) {
		log_step("%s: free%s%s", ballot->quorum->servers[i].url.name,
			 counts ? "" : ", but ",
			 counts ? "" : trust_explain(ballot, i, text));
		return;
	}
	if (ballot->slots[i].own > 0)
		snprintf(slot, sizeof(slot), "slot %" PRId64 ", ",
			 ballot->slots[i].own);
	log_step("%s: granted, %sfence %" PRId64 "%s%s",
		 ballot->quorum->servers[i].url.name, slot, fence,
		 counts ? "" : ", but ",
		 counts ? "" : trust_explain(ballot, i, text));
}

static const char *text_at(const struct reply *reply, size_t n)
{
	return n < reply->count && reply->value[n].text != NULL
		       ? reply->value[n].text
		       : "";
}

static void read_refusal(const struct lock *lock, const struct reply *reply,
			 struct busy *seen)
{
	const struct value *said = reply->value;

	*seen = (struct busy){
		.left = bounded(said[1].number),
		.held = bounded(said[2].number),
		.has_description = said[3].length > 0,
		.place = bounded(said[4].number),
		.nested = said[5].number == 1,
		.holders = bounded(not_less(number_at(reply, 9), 0)),
		.permits = bounded(not_less(number_at(reply, 10), 0)),
		.is_hash = strcmp(text_at(reply, 11), "hash") == 0,
		.is_sorted = strcmp(text_at(reply, 11), "zset") == 0,
		.has_reply = true,
		.at = clock_ms(),
	};
	record_parse(&seen->holder, said[3].text, said[3].length);
	seen->some = seen->holders > LOOKED_AT;
	seen->misfit = misfit_of(lock, seen);
}

static bool is_grant(const struct lock *lock, const struct reply *reply)
{
	const struct value *fence = &reply->value[1];
	int64_t least = lock->wish.kind == KIND_NONE ? 0 : 1;
	int64_t slot = number_at(reply, 4);

	if ((slot > 0) != (lock->wish.kind == KIND_PERMITS) ||
	    slot > lock->wish.permits)
		return false;
	return reply->count >= 2 && fence->text == NULL &&
	       fence->number >= least && fence->number <= FENCE_LARGEST;
}

/* The run that makes this one needless: of several the last to begin. */
static bool read_success(struct lock *lock, const struct reply *reply)
{
	struct past_run run;

	if (lock->wish.once_in == 0 || reply->count < 3 ||
	    reply->value[1].text != NULL || reply->value[2].text == NULL ||
	    run_read(&run, reply->value[2].text, reply->value[2].length, 0) < 0)
		return false;
	run.age = bounded(reply->value[1].number);
	if (!lock->ballot.has_run || run.age < lock->success.age)
		lock->success = run;
	return true;
}

void attempt_read(struct lock *lock, size_t i, const struct reply *reply,
		  struct busy *seen)
{
	struct ballot *ballot = &lock->ballot;
	bool begins = lock->wish.kind != KIND_NONE;
	int64_t answer = 0;

	if (!alias_read(ballot, i, reply, -1, &answer))
		return;
	if (answer == -1 && read_success(lock, reply)) {
		log_step("%s: a run has succeeded",
			 ballot->quorum->servers[i].url.name);
		ballot->vote[i] = VOTE_GONE;
		ballot->has_run = true;
	} else if (answer == 1 && is_grant(lock, reply) &&
		   slots_hear(ballot, i, number_at(reply, 4),
			      text_at(reply, 5))) {
		trust_hear(ballot, i, begins, number_at(reply, 2),
			   text_at(reply, 3));
		trust_hear_tenants(ballot, i, text_at(reply, 7),
				   number_at(reply, 6));
		attempt_count(lock, i, reply->value[1].number);
	} else if (answer == 0 && is_refusal(reply)) {
		ballot->vote[i] = VOTE_HELD;
		log_step("%s: held by another",
			 ballot->quorum->servers[i].url.name);
		read_refusal(lock, reply, seen);
		trust_hear(ballot, i, begins, number_at(reply, 7),
			   text_at(reply, 6));
		trust_hear_holder(ballot, i, text_at(reply, 6),
				  reply->value[2].number,
				  reply->value[1].number, number_at(reply, 8));
		trust_hear_tenants(ballot, i, text_at(reply, 12),
				   number_at(reply, 8));
		trust_weigh(ballot);
	} else {
		ballot_reject(ballot, i);
	}
}

enum lock_result attempt_conclude(const struct lock *lock, struct error *error)
{
	const struct ballot *ballot = &lock->ballot;

	if (!ballot->alias && (ballot->has_run || ballot_said_no(ballot)))
		return LOCK_BUSY;
	explain_failure(ballot, error);
	return LOCK_ERROR;
}

/* --- raising the fences ------------------------------------------------- */

static void on_raise(void *context, size_t i, const struct reply *reply)
{
	struct lock *lock = context;
	int64_t answer = 0;

	if (alias_read(&lock->ballot, i, reply, 0, &answer))
		lock->ballot.vote[i] = answer == 1 ? VOTE_YES : VOTE_GONE;
}

/*
 * Every server that may be below the quorum's fence is told the fence: a voter,
 * whose answer is waited for; a server without a vote, as it must know the fence
 * when it gets one; a server that has not answered the acquire, as it reads this
 * after the acquire. A server that granted another slot than the quorum's, or may
 * have, gets the quorum's slot with the fence.
 */
static void ask_raise(struct lock *lock)
{
	struct ballot *ballot = &lock->ballot;

	for (size_t i = 0; i < ballot->quorum->count; i++) {
		switch (ballot->vote[i]) {
		case VOTE_YES:
			if (ballot->fence[i] >= lock->grant.fence)
				break;
			ballot->vote[i] = VOTE_PENDING;
			script_raise(lock, i, true);
			break;
		case VOTE_QUARANTINED:
		case VOTE_ELSEWHERE:
		case VOTE_PENDING:
			if (lock->grant.slot > 0)
				script_put_back(lock, i);
			else
				script_raise(lock, i, false);
			quorum_forget(ballot->quorum, i);
			ballot->vote[i] = VOTE_FAILED;
			break;
		default:
			break;
		}
	}
}

/* The round before it may have used all of its time. */
static struct wait next_round(const struct lock *lock, int interrupt)
{
	return (struct wait){deadline_in(lock->ballot.quorum->timeout),
			     interrupt};
}

/*
 * The largest fence of the quorum. An owner that enters again keeps the fence, on which its
 * servers agree. If they do not, what they have may be left of attempts that others have
 * had KEY after, on servers that have forgotten that since: the clock tells how far the
 * fences may have come. A wrong one does not lift it by more than a day, as in settle.lua.
 */
static int64_t largest_fence(const struct lock *lock)
{
	const struct ballot *ballot = &lock->ballot;
	int64_t largest = 0, least = INT64_MAX, now = clock_wall_ms();

	for (size_t i = 0; i < ballot->quorum->count; i++) {
		if (ballot->vote[i] != VOTE_YES)
			continue;
		if (ballot->fence[i] > largest)
			largest = ballot->fence[i];
		if (ballot->fence[i] < least)
			least = ballot->fence[i];
	}
	if (lock->wish.kind != KIND_REENTRANT || least >= largest ||
	    now <= largest)
		return largest;
	return now - largest < FENCE_AHEAD ? now : largest + FENCE_AHEAD;
}

enum lock_result attempt_raise(struct lock *lock, int interrupt,
			       struct error *error)
{
	struct ballot *ballot = &lock->ballot;
	struct reply_handler handler = {lock, on_raise, lock_is_decided};
	struct wait wait = next_round(lock, interrupt);

	lock->grant.seen = 0;
	lock->grant.slot = slots_settle(ballot);
	lock->grant.fence = largest_fence(lock);
	quorum_round(ballot->quorum);
	ask_raise(lock);
	if (quorum_gather(ballot->quorum, wait, &handler) == GATHER_INTERRUPTED)
		return LOCK_INTERRUPTED;
	return ballot_has_quorum(ballot) ? alias_check(lock, wait, error)
					 : attempt_conclude(lock, error);
}

enum lock_result attempt_confirm(struct lock *lock, int interrupt,
				 struct error *error)
{
	enum lock_result result;

	log_step("confirmed by a round, as little of the lease is left");
	result = lock_extend(lock, next_round(lock, interrupt), error);
	if (result != LOCK_NOT_HELD)
		return result;
	error->code = EXIT_UNREACHED; /* nothing has run that could lose it */
	error->transient = true;
	return LOCK_ERROR;
}

/* --- taking it back ----------------------------------------------------- */

static void on_taken_back(void *context, size_t i, const struct reply *reply)
{
	(void)context;
	(void)i;
	(void)reply;
}

struct taking_back {
	const struct quorum *quorum;
	bool awaited[SERVERS_MAX]; /* whose answer counts */
};

static bool is_taken_back(void *context)
{
	const struct taking_back *taking = context;

	for (size_t i = 0; i < taking->quorum->count; i++)
		if (taking->awaited[i] && quorum_is_waiting(taking->quorum, i))
			return false;
	return true;
}

void attempt_take_back(struct lock *lock, bool keeps_place)
{
	const struct ballot *ballot = &lock->ballot;
	struct quorum *quorum = ballot->quorum;
	struct taking_back taking = {.quorum = quorum};
	struct reply_handler handler = {&taking, on_taken_back, is_taken_back};

	for (size_t i = 0; i < quorum->count; i++)
		taking.awaited[i] =
			ballot->fence[i] > 0 || quorum_has_broken(quorum, i) ||
			ballot_is_unacknowledged(ballot, i) ||
			(keeps_place && ballot->vote[i] == VOTE_HELD);
	quorum_round(quorum);
	for (size_t i = 0; i < quorum->count; i++) {
		if (ballot->vote[i] == VOTE_HELD && !keeps_place)
			continue;
		if (taking.awaited[i] || server_is_up(&quorum->servers[i]))
			script_release(lock, i, 0);
		else
			server_withdraw(&quorum->servers[i]);
	}
	quorum_gather(quorum, wait_until(deadline_in(quorum->timeout)),
		      &handler);
	lock_hurry(lock, false);
}

/* --- one attempt -------------------------------------------------------- */

/* Keeps the refusal that says most: one with a description, and among those the
 * one with the longest lease. */
static void note_busy(struct busy *busy, struct busy *seen)
{
	seen->nested |= busy->nested;
	busy->nested = seen->nested;
	if (!busy->has_reply || busy->has_description < seen->has_description ||
	    (busy->has_description == seen->has_description &&
	     busy->left < seen->left))
		*busy = *seen;
}

static void on_acquire(void *context, size_t i, const struct reply *reply)
{
	struct lock *lock = context;
	struct ballot *ballot = &lock->ballot;
	struct busy seen = {0};

	attempt_read(lock, i, reply, &seen);
	if (ballot->vote[i] != VOTE_HELD)
		return;
	note_busy(ballot->busy, &seen);
	strlcpy(ballot->token_prefix[i], reply->value[6].text,
		sizeof(ballot->token_prefix[i]));
}

void attempt_note_busy(struct lock *lock, size_t also)
{
	const struct ballot *ballot = &lock->ballot;
	size_t given = ballot_count(ballot, VOTE_YES) + also;

	for (size_t i = 0; i < ballot->quorum->count; i++)
		given += ballot_is_unacknowledged(ballot, i);
	if (given >= quorum_size(ballot->quorum))
		lock->seen_busy = false;
	else if (ballot_said_no(ballot))
		lock->seen_busy = true;
}

/* Whether the missing answers need not be heard before the votes count
 * (trust.h), or no quorum is possible. */
static bool is_heard(void *context)
{
	const struct ballot *ballot = &((struct lock *)context)->ballot;

	return ballot_is_complete(ballot) || ballot->has_run ||
	       !ballot_has_quorum(ballot) || trust_is_firm(ballot);
}

/* Until when to wait for the others: as long again as the quorum took, or for
 * all of the round if it needs them all. */
static struct deadline end_of_hearing(const struct lock *lock,
				      struct deadline until)
{
	int64_t took = clock_ms() - lock->ballot.quorum->asked_at;

	return trust_needs_all(&lock->ballot)
		       ? until
		       : deadline_earlier(until, deadline_in(took + MOMENT));
}

/* Until when to wait for those that are slower than that, or silent. If most of
 * the lease has passed by then, it is confirmed. */
static struct deadline end_of_silence(struct lock *lock, struct deadline until)
{
	struct ballot *ballot = &lock->ballot;
	struct deadline end = deadline_at(0);

	for (size_t i = 0; i < ballot->quorum->count; i++) {
		struct deadline its =
			silence_end(&lock->silence, ballot->quorum, i,
				    ballot->quorum->asked_at);

		if (quorum_is_waiting(ballot->quorum, i) && its.at > end.at)
			end = its;
	}
	until = deadline_earlier(
		until, deadline_at(ballot->quorum->asked_at +
				   lease_for_slow_servers(lock->wish.ttl)));
	return deadline_earlier(until, end);
}

static void note_silence(struct lock *lock)
{
	struct quorum *quorum = lock->ballot.quorum;

	for (size_t i = 0; i < quorum->count; i++)
		if (quorum_is_waiting(quorum, i) &&
		    deadline_passed(silence_end(&lock->silence, quorum, i,
						quorum->asked_at)))
			silence_note(&lock->silence, quorum, i);
}

/* What the others say, if the votes alone cannot be relied on. */
static enum gathered hear_others(struct lock *lock, struct wait wait)
{
	struct ballot *ballot = &lock->ballot;
	struct reply_handler handler = {lock, on_acquire, is_heard};
	struct quorum *quorum = ballot->quorum;
	enum gathered gathered = quorum_gather(
		quorum, wait_earlier(wait, end_of_hearing(lock, wait.until)),
		&handler);
	struct deadline end;

	if (gathered != GATHER_OVER || trust_needs_all(ballot))
		return gathered;
	end = end_of_silence(lock, wait.until);
	if (deadline_passed(end))
		return gathered;
	gathered = quorum_gather(quorum, wait_earlier(wait, end), &handler);
	if (gathered == GATHER_OVER)
		note_silence(lock);
	return gathered;
}

/* Whether a quorum has answered, and others have the votes that we lack. */
static bool is_contested(const struct ballot *ballot)
{
	return ballot_said_no(ballot) && ballot_is_split(ballot);
}

/* Whether the missing votes can change nothing; or a quorum has answered, and the votes
 * are for different slots, or others have some of them. */
static bool is_known(void *context)
{
	const struct ballot *ballot = &((struct lock *)context)->ballot;

	return ballot_is_decided(ballot) || slots_are_split(ballot) ||
	       is_contested(ballot);
}

/*
 * The votes. Those that are still missing after a quorum has answered may complete a
 * quorum of votes for us, so these servers get as long again as the quorum took. If others
 * have the rest, a silent server gets its time, too (silence.h), but no more: if it has
 * stopped, each of us would wait a whole round for the vote that gives one of us the lock,
 * and then come too late to try again.
 */
static enum gathered hear_votes(struct lock *lock, struct wait wait)
{
	struct quorum *quorum = lock->ballot.quorum;
	struct reply_handler handler = {lock, on_acquire, is_known};
	enum gathered gathered = quorum_gather(quorum, wait, &handler);
	int64_t took = clock_ms() - quorum->asked_at;
	struct deadline end = deadline_in(took + 1);

	if (gathered != GATHER_CERTAIN || lock_is_decided(lock))
		return gathered;
	handler.certain = lock_is_decided;
	if (!slots_are_split(&lock->ballot))
		end = deadline_later(deadline_in(took + MOMENT),
				     end_of_silence(lock, wait.until));
	gathered = quorum_gather(quorum, wait_earlier(wait, end), &handler);
	if (gathered == GATHER_OVER)
		note_silence(lock);
	return gathered;
}

/* The votes, and then the others, if they may matter. */
static enum gathered hear(struct lock *lock, struct wait wait)
{
	enum gathered gathered;

	do {
		gathered = hear_votes(lock, wait);
		if (gathered != GATHER_CERTAIN || is_heard(lock))
			break;
		gathered = hear_others(lock, wait);
	} while (gathered == GATHER_CERTAIN && !lock_is_decided(lock));
	return gathered;
}

/* Moves the votes for different slots to one; false if there is none for a quorum, or
 * it was done too often. */
static bool move(struct lock *lock)
{
	struct ballot *ballot = &lock->ballot;
	struct grant *grant = &lock->grant;
	int64_t slot = 0;

	if (slots_are_split(ballot) && !ballot->alias && !ballot->has_run)
		slot = slots_target(ballot, grant->moves);
	if (slot == 0)
		return false;
	log_step("votes for different slots, moved to slot %" PRId64, slot);
	grant->slot = slot;
	grant->moves++;
	quorum_round(ballot->quorum);
	for (size_t i = 0; i < ballot->quorum->count; i++) {
		if (ballot->vote[i] == VOTE_FAILED ||
		    (ballot_is_granted(ballot, i) &&
		     ballot->slots[i].own == slot))
			continue;
		ballot->vote[i] = VOTE_PENDING;
		script_acquire(lock, i);
	}
	slots_weigh(ballot);
	return true;
}

static enum lock_result take(struct lock *lock, struct wait wait,
			     struct busy *busy, struct error *error)
{
	struct ballot *ballot = &lock->ballot;
	int64_t started = clock_ms();
	enum lock_result result;

	ballot_open(ballot, busy);
	for (size_t i = 0; i < ballot->quorum->count; i++) {
		ballot->fence[i] = 0;
		script_acquire(lock, i);
	}
	lock_use_the_time(lock);
	for (;;) {
		if (hear(lock, wait) == GATHER_INTERRUPTED)
			return LOCK_INTERRUPTED;
		if (!move(lock))
			break;
		wait = next_round(lock, wait.interrupt);
	}
	attempt_note_busy(lock, 0);
	busy->has_run = ballot->has_run;
	if (!ballot_has_quorum(ballot) || ballot->alias || ballot->has_run)
		return attempt_conclude(lock, error);
	if (lock->wish.kind == KIND_NONE)
		return LOCK_OK;
	result = attempt_raise(lock, wait.interrupt, error);
	if (result != LOCK_OK) {
		busy->unraised = !ballot_lacks_replicas(ballot);
		return result;
	}
	lock->grant.started = started;
	lock->grant.acquired = clock_ms();
	lock->grant.lease = lock->wish.ttl;
	lock->grant.valid = lock_validity(lock, started);
	lock->grant.renew =
		deadline_at(started + lease_renewal(lock->wish.ttl));
	if (deadline_passed(lock->grant.valid)) {
		error_set(error, EXIT_UNREACHED,
			  "the servers granted it too late: "
			  "the lease (-t) was over when the answers came");
		error->transient = true;
		return LOCK_ERROR;
	}
	return deadline_left(lock->grant.valid) > lock->wish.validity_needed
		       ? LOCK_OK
		       : attempt_confirm(lock, wait.interrupt, error);
}

enum lock_result lock_acquire(struct lock *lock, struct wait wait,
			      struct busy *busy, struct error *error)
{
	enum lock_result result;

	*busy = (struct busy){.held = -1, .place = -1};
	attempt_begin(lock);
	result = take(lock, wait, busy, error);
	if (result == LOCK_OK)
		return result;
	busy->split = ballot_is_split(&lock->ballot);
	if (!busy->has_reply) /* not one slot, and nobody is named */
		busy->left = -2;
	if (result == LOCK_ERROR)
		rights_explain(lock, wait.interrupt, error);
	attempt_take_back(lock, false);
	return result;
}
