#include "lock/lock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lock/alias.h"
#include "lock/ballot.h"
#include "base/duration.h"
#include "base/log.h"
#include "lock/script.h"

#define LAST_ANSWERS 50                   /* ms */
#define AFTERLIFE (7 * INT64_C(86400000)) /* ms */

int64_t lock_drift(int64_t ttl)
{
	return ttl / 100 + 2;
}

void lock_init(struct lock *lock, struct quorum *quorum, const char *key,
	       int64_t ttl, int64_t quarantine)
{
	*lock = (struct lock){
		.quorum = quorum,
		.key = {key, strlen(key)},
		.ttl = ttl,
		.quarantine = quarantine,
		.afterlife = AFTERLIFE,
	};
	lock->record = script_record_name(lock->key);
	lock->queue = script_name(lock->record, ":queue");
	lock->wishes = script_name(lock->record, ":wishes");
	lock->waits = script_name(lock->record, ":waits");
	lock->hold[0] = '-';
}

void lock_adopt(struct lock *lock, const char *token)
{
	strlcpy(lock->token, token, sizeof(lock->token));
	lock->hold[0] = '*';
	token_make(lock->hold + 1);
}

void lock_release_memory(struct lock *lock)
{
	free((char *)lock->record.data);
	free((char *)lock->queue.data);
	free((char *)lock->wishes.data);
	free((char *)lock->waits.data);
	buffer_release(&lock->description);
	*lock = (struct lock){0};
}

struct deadline lock_validity(const struct lock *lock, int64_t started)
{
	return deadline_at(started + lock->ttl - lock_drift(lock->ttl));
}

/* Who has only a token learns from the servers how many votes it needs. */
static void note_permits(struct lock *lock, const struct reply *reply,
			 size_t at)
{
	int64_t permits = at < reply->count ? reply->value[at].number : 0;

	if (permits > lock->quorum->permits && permits <= PERMITS_MOST)
		lock->quorum->permits = permits;
}

/*
 * Whether the token holds nothing, for certain. Under the second of two names of
 * one server a release finds nothing either: which it is only the others' answers
 * tell, so those that are on their way are heard.
 */
static bool is_not_held(struct hearing *hearing, struct judge *judge)
{
	struct lock *lock = hearing->lock;

	if (!ballot_said_no(hearing))
		return false;
	judge->certain = ballot_is_complete;
	quorum_gather(lock->quorum, deadline_in(LAST_ANSWERS), judge);
	return !ballot_has_quorum(lock);
}

/* --- extend ------------------------------------------------------------- */

static void note_left(struct lock *lock, const struct reply *reply, size_t at)
{
	int64_t left = at < reply->count ? reply->value[at].number : 0;

	if (left < lock->left)
		lock->left = left > 0 ? left : 0;
}

static void on_extend(void *context, size_t i, const struct reply *reply)
{
	struct hearing *hearing = context;
	struct lock *lock = hearing->lock;
	const struct value *said;
	int64_t answer = 0;

	if (!ballot_read_held(lock, i, reply, -1, &answer))
		return;
	alias_warn(lock, i);
	if (answer < 1) {
		lock->vote[i] = answer == 0 ? VOTE_HELD : VOTE_GONE;
		return;
	}
	said = reply->value;
	if (reply->count < 3 || said[2].text == NULL ||
	    said[1].number > FENCE_LARGEST) {
		ballot_reject(lock, i);
		return;
	}
	lock->vote[i] = VOTE_YES;
	note_permits(lock, reply, 3);
	note_left(lock, reply, 4);
	if (said[1].number < lock->seen || said[2].length == 0)
		return;
	lock->seen = said[1].number;
	lock->description.length = 0;
	buffer_append(&lock->description, said[2].text,
		      strnlen(said[2].text, said[2].length));
}

/* Gives the lock back to a server that has lost it: it has been restarted
 * empty, or was out of reach when the lock was acquired. */
static void heal(struct lock *lock, size_t i)
{
	if (lock->fence + lock->seen == 0 || lock->barred[i])
		return;
	log_step("%s: the lock is gone there, put back",
		 lock->quorum->servers[i].url.name);
	script_put_back(lock, i);
	quorum_forget(lock->quorum, i);
}

enum lock_result lock_extend(struct lock *lock, struct deadline until,
			     struct error *error)
{
	struct hearing hearing = {.lock = lock};
	struct judge judge = {&hearing, on_extend, ballot_decided};
	int64_t started = clock_ms();
	enum gathered gathered;

	ballot_open(lock);
	lock->left = INT64_MAX;
	for (size_t i = 0; i < lock->quorum->count; i++)
		script_extend(lock, i);
	gathered = quorum_gather(lock->quorum, until, &judge);
	if (ballot_has_quorum(lock)) {
		for (size_t i = 0; i < lock->quorum->count; i++)
			if (lock->vote[i] == VOTE_GONE)
				heal(lock, i);
		lock->started = started;
		lock->lease = lock->ttl;
		lock->valid = lock_validity(lock, started);
		lock->renewed = true;
		return LOCK_OK;
	}
	if (is_not_held(&hearing, &judge)) {
		ballot_explain_loss(lock, error);
		return LOCK_NOT_HELD;
	}
	if (gathered == GATHER_INTERRUPTED)
		return LOCK_INTERRUPTED;
	ballot_explain_failure(lock, error);
	return LOCK_ERROR;
}

static void on_late(void *context, size_t i, const struct reply *reply)
{
	struct hearing *hearing = context;
	struct lock *lock = hearing->lock;

	if (!lock->renewed)
		return;
	on_extend(context, i, reply);
	if (lock->vote[i] == VOTE_GONE)
		heal(lock, i);
}

enum gathered lock_idle(struct lock *lock, struct deadline until)
{
	struct hearing hearing = {.lock = lock};
	struct judge judge = {&hearing, on_late, NULL};

	return quorum_idle(lock->quorum, until, &judge);
}

/* --- release ------------------------------------------------------------ */

/* A server that has released it under one of its names has nothing left to
 * release under another. */
static void share_release(struct lock *lock, size_t i)
{
	for (size_t k = 0; k < lock->quorum->count; k++) {
		if (!quorum_is_one(lock->quorum, i, k))
			continue;
		if (lock->vote[k] == VOTE_YES)
			lock->vote[i] = VOTE_YES;
		else if (lock->vote[i] == VOTE_YES &&
			 (lock->vote[k] == VOTE_GONE ||
			  lock->vote[k] == VOTE_HELD))
			lock->vote[k] = VOTE_YES;
	}
}

static void on_release(void *context, size_t i, const struct reply *reply)
{
	struct lock *lock = ((struct hearing *)context)->lock;
	int64_t answer = 0;

	if (!ballot_read_held(lock, i, reply, -1, &answer))
		return;
	alias_warn(lock, i);
	/* where the first answer was lost, that may have been the one that
	 * released it, and somebody else has it by now */
	if (answer == 1 || quorum_has_broken(lock->quorum, i))
		lock->vote[i] = VOTE_YES;
	else
		lock->vote[i] = answer == 0 ? VOTE_HELD : VOTE_GONE;
	if (answer == 1)
		note_permits(lock, reply, 1);
	share_release(lock, i);
}

/* Released where it was, and where it may still be no quorum needs it. */
static bool is_out_of_quorums(const struct lock *lock)
{
	return ballot_count(lock, VOTE_YES) + ballot_count(lock, VOTE_GONE) +
		       ballot_count(lock, VOTE_HELD) >=
	       quorum_size(lock->quorum);
}

enum lock_result lock_release(struct lock *lock, int64_t linger,
			      struct deadline until, struct error *error)
{
	struct hearing hearing = {.lock = lock};
	struct judge judge = {&hearing, on_release, ballot_decided};

	ballot_open(lock);
	for (size_t i = 0; i < lock->quorum->count; i++)
		script_release(lock, i, linger);
	quorum_gather(lock->quorum, until, &judge);
	if (ballot_has_quorum(lock))
		return LOCK_OK;
	if (is_not_held(&hearing, &judge)) {
		ballot_explain_loss(lock, error);
		return LOCK_NOT_HELD;
	}
	if (is_out_of_quorums(lock))
		return LOCK_OK;
	ballot_explain_failure(lock, error);
	return LOCK_ERROR;
}
