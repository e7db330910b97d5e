#include "wait/queue.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lock/attempt.h"
#include "base/log.h"
#include "lock/script.h"
#include "lock/silence.h"
#include "lock/trust.h"

#define PARTIAL_LONGEST 500 /* ms */
#define PARTIAL_TIME 5 /* ms, and two round trips, to get the missing votes */
#define FIRST_RENEWAL 100 /* ms: a command that ends sooner needs none */

/* --- from votes to a lock ----------------------------------------------- */

static size_t granted(const struct lock *lock)
{
	return ballot_count(lock, VOTE_YES) +
	       ballot_count(lock, VOTE_QUARANTINED);
}

/* The end of validity of the last vote that a quorum needs. */
static struct deadline quorum_validity(const struct queue *queue)
{
	const struct lock *lock = queue->lock;
	struct deadline best = deadline_at(0);

	for (size_t i = 0; i < lock->quorum->count; i++) {
		struct deadline valid = queue->requests.at[i].valid;
		size_t as_good = 0;

		for (size_t k = 0; k < lock->quorum->count; k++)
			as_good += lock->vote[k] == VOTE_YES &&
				   queue->requests.at[k].valid.at >= valid.at;
		if (lock->vote[i] == VOTE_YES && valid.at > best.at &&
		    as_good >= quorum_size(lock->quorum))
			best = valid;
	}
	return best;
}

/* The servers that were not needed get the lock, too, or lose our place. */
static void tidy(struct queue *queue)
{
	struct lock *lock = queue->lock;

	for (size_t i = 0; i < lock->quorum->count; i++) {
		bool done = lock->kind == KIND_NONE
				    ? !requests_may_queue(&queue->requests, i)
				    : lock->vote[i] == VOTE_YES;

		if (done || lock->barred[i] || queue->requests.at[i].sent == 0)
			continue;
		if (lock->kind == KIND_NONE)
			script_release(lock, i, 0);
		else
			script_put_back(lock, i);
		quorum_forget(lock->quorum, i);
	}
}

/* A lease that is a message's does for those who renew it, as long as most of it
 * is left; where it is the whole ttl, as long as they have the time to begin
 * with. */
static bool is_enough(const struct queue *queue)
{
	const struct lock *lock = queue->lock;
	int64_t left = deadline_left(lock->valid);

	if (!queue->requests.by_message)
		return left > lock->room;
	return lock->room > 0 && left > lock->lease / 2 &&
	       (lock->lease < lock->ttl || left > lock->room);
}

static enum lock_result win(struct queue *queue, struct error *error)
{
	struct lock *lock = queue->lock;
	struct hearing hearing = {.lock = lock, .busy = queue->requests.busy};
	struct deadline until = deadline_in(lock->quorum->timeout);
	enum lock_result result = LOCK_OK;

	lock->quorum->mailbox = NULL; /* no vote is added from here on */
	if (lock->kind == KIND_NONE) {
		tidy(queue);
		return LOCK_OK;
	}
	lock->valid = quorum_validity(queue);
	lock->started = lock->acquired = clock_ms();
	lock->renew = deadline_in(FIRST_RENEWAL);
	lock->lease = requests_first_lease(lock);
	if (!queue->requests.by_message) {
		lock->lease = lock->ttl;
		lock->started =
			lock->valid.at + lock_drift(lock->ttl) - lock->ttl;
		lock->renew = deadline_at(lock->started + lock->ttl / 3);
	}
	result = attempt_raise(&hearing, until, error);
	if (result != LOCK_OK)
		return result == LOCK_INTERRUPTED ? result : LOCK_AGAIN;
	tidy(queue);
	if (deadline_passed(lock->valid))
		return LOCK_AGAIN;
	if (is_enough(queue))
		return LOCK_OK;
	result = attempt_confirm(lock, error);
	return result == LOCK_ERROR ? LOCK_AGAIN : result;
}

/* Whether the servers that refuse do it for whom we have waited for so far: its
 * release is on its way. */
static bool is_still_held(const struct queue *queue)
{
	const struct lock *lock = queue->lock;

	for (size_t i = 0; i < lock->quorum->count; i++)
		if (lock->vote[i] == VOTE_HELD &&
		    strcmp(queue->requests.mark[i], queue->before[i]) != 0)
			return false;
	return ballot_count(lock, VOTE_HELD) > 0;
}

/* Others hold it on a quorum; what we have is what they lack. */
static void give_back(struct queue *queue)
{
	for (size_t i = 0; i < queue->lock->quorum->count; i++)
		if (queue->lock->vote[i] == VOTE_YES ||
		    queue->lock->vote[i] == VOTE_QUARANTINED)
			requests_give_back(&queue->requests, i);
	queue->partial = 0;
}

static void begin_partial(struct queue *queue)
{
	queue->asked_again = false;
	queue->patience =
		PARTIAL_TIME + 2 * requests_farthest(&queue->requests);
	queue->partial =
		clock_ms() + queue->patience + token_jitter(PARTIAL_TIME);
}

/* Asks those that have not granted it; later each time. */
static void ask_for_the_rest(struct queue *queue)
{
	queue->asked_again = true;
	queue->partial += queue->patience + token_jitter(PARTIAL_TIME);
	if (queue->patience < PARTIAL_LONGEST)
		queue->patience *= 2;
	for (size_t i = 0; i < queue->lock->quorum->count; i++)
		if (queue->lock->vote[i] == VOTE_HELD)
			queue->requests.at[i].due = deadline_at(0);
	requests_ask_due(&queue->requests);
}

/* Until when those that have not spoken may still make a quorum of our votes;
 * passed where they are too few. */
static struct deadline end_of_silence(const struct queue *queue)
{
	size_t possible = granted(queue->lock);
	struct deadline end = deadline_never();

	for (size_t i = 0; i < queue->lock->quorum->count; i++) {
		struct deadline hope = requests_hope(&queue->requests, i);

		if (deadline_passed(hope))
			continue;
		possible++;
		end = deadline_earlier(end, hope);
	}
	return possible < quorum_size(queue->lock->quorum) ? deadline_at(0)
							   : end;
}

/*
 * Some votes, but no quorum, and those that have not spoken yet can make none of
 * them: it is not known before that the vote is split. The other servers are asked
 * once more, and when they have had the time to answer:
 *  - where the missing votes are those of servers that are up too short, or
 *    where the holder so far has not released it everywhere, they are waited
 *    for;
 *  - where a quorum of servers names one holder, ours are a minority that it
 *    lacks (a server that has lost its data): they are given back;
 *  - else others have the rest, and may wait for ours: a split vote.
 * Who waits for no more than that KEY is free has nothing that others lack.
 */
static bool is_split(struct queue *queue, struct deadline *wake)
{
	struct lock *lock = queue->lock;
	size_t quorum = quorum_size(lock->quorum);
	size_t held = granted(lock);
	struct deadline silence = end_of_silence(queue);

	if (held == 0 || held >= quorum || lock->kind == KIND_NONE) {
		queue->partial = 0;
		memcpy(queue->before, queue->requests.mark,
		       sizeof(queue->before));
		return false;
	}
	if (!deadline_passed(silence)) {
		queue->partial = 0;
		*wake = deadline_earlier(*wake, silence);
		return false;
	}
	if (queue->partial == 0)
		begin_partial(queue);
	if (deadline_passed(deadline_at(queue->partial))) {
		if (queue->asked_again &&
		    ballot_same_holder(lock, queue->requests.mark) >= quorum)
			give_back(queue);
		else if (queue->asked_again && !is_still_held(queue))
			return true;
		else
			ask_for_the_rest(queue);
	}
	if (queue->partial > 0)
		*wake = deadline_earlier(*wake, deadline_at(queue->partial));
	return false;
}

/*
 * Whether all that have yet to say something of KEY have had the time for it, if
 * the votes cannot be relied on without them (trust.h).
 */
static struct deadline end_of_hearing(const struct queue *queue, size_t i)
{
	struct lock *lock = queue->lock;
	struct deadline end = requests_hope(&queue->requests, i);

	if (trust_needs_all(lock))
		return deadline_at((lock->told[i].asked > 0
					    ? lock->told[i].asked
					    : queue->requests.listening) +
				   lock->quorum->timeout);
	if (lock->quorum->servers[i].distance > 0)
		return end;
	end = silence_end(lock, i, queue->requests.listening);
	if (deadline_passed(end))
		silence_note(lock, i);
	return end;
}

static bool is_heard(const struct queue *queue, struct deadline *wake)
{
	const struct lock *lock = queue->lock;
	bool heard = true;

	if (trust_is_firm(lock))
		return true;
	for (size_t i = 0; i < lock->quorum->count; i++) {
		struct deadline end;

		if (lock->vote[i] != VOTE_PENDING || lock->told[i].heard)
			continue;
		end = end_of_hearing(queue, i);
		if (deadline_passed(end))
			continue;
		*wake = deadline_earlier(*wake, end);
		heard = false;
	}
	return heard;
}

/* --- waiting ------------------------------------------------------------ */

void queue_init(struct queue *queue, struct lock *lock, struct busy *busy)
{
	*queue = (struct queue){
		.lock = lock,
		.listener = {&queue->requests, requests_opened, requests_deaf,
			     requests_message},
		.requests = {.lock = lock,
			     .busy = busy,
			     .mailbox = &queue->mailbox,
			     .began = clock_ms()},
	};
	mailbox_init(&queue->mailbox, lock->quorum->servers,
		     lock->quorum->count, lock->quorum->timeout,
		     &queue->listener);
}

void queue_release(struct queue *queue)
{
	queue->lock->quorum->mailbox = NULL;
	mailbox_release(&queue->mailbox);
	free((char *)queue->channel.data);
}

bool queue_is_deaf(const struct queue *queue, const struct server **ear)
{
	const struct quorum *quorum = queue->lock->quorum;

	return mailbox_refused(&queue->mailbox, ear) >
	       quorum->count - quorum_size(quorum);
}

/* A new token, a new channel, no vote. */
static void begin(struct queue *queue)
{
	struct lock *lock = queue->lock;
	struct argument last = queue->channel;

	attempt_begin(lock);
	ballot_open(lock);
	for (size_t i = 0; i < lock->quorum->count; i++) {
		lock->fences[i] = 0;
		queue->requests.at[i] = (struct standing){.place = -1};
	}
	memset(queue->requests.mark, 0, sizeof(queue->requests.mark));
	queue->requests.by_message = false;
	queue->partial = 0;
	queue->requests.listening = clock_ms();
	queue->channel = script_channel(lock);
	lock->quorum->mailbox = &queue->mailbox;
	mailbox_subscribe(&queue->mailbox, queue->channel);
	free((char *)last.data);
}

static bool is_cut_off(const struct lock *lock)
{
	return ballot_count(lock, VOTE_FAILED) >
	       lock->quorum->count - quorum_size(lock->quorum);
}

/* Says once that too few servers are left, until a quorum has answered again.
 * A new attempt knows nothing of the outage yet, so it is remembered. */
static void watch_outage(struct queue *queue)
{
	const struct lock *lock = queue->lock;

	if (granted(lock) + ballot_count(lock, VOTE_HELD) >=
	    quorum_size(lock->quorum))
		queue->outage.code = 0;
	if (!is_cut_off(lock) || queue->outage.code != 0)
		return;
	ballot_explain_failure(lock, &queue->outage);
	log_notice("%.*s: still waiting: %s", (int)lock->key.length,
		   lock->key.data, queue->outage.text);
}

/* BUSY, unless too few servers can be reached. */
static enum lock_result judge_end(struct queue *queue, struct error *error)
{
	const struct lock *lock = queue->lock;

	if (is_cut_off(lock))
		ballot_explain_failure(lock, error);
	else if (queue->outage.code != 0)
		*error = queue->outage;
	else
		return LOCK_BUSY;
	return LOCK_ERROR;
}

static void use_the_time(struct lock *lock)
{
	struct meanwhile once = lock->meanwhile;

	lock->meanwhile.act = NULL;
	if (once.act != NULL)
		once.act(once.context);
}

static enum lock_result wait_for_votes(struct queue *queue,
				       struct deadline until,
				       struct error *error)
{
	struct lock *lock = queue->lock;
	struct judge judge = {&queue->requests, requests_reply,
			      requests_have_news};
	const struct server *ear;

	for (;;) {
		struct deadline wake;

		requests_drop_late(&queue->requests);
		requests_blame_silent(&queue->requests);
		if (lock->alias || ballot_is_hopeless(lock) ||
		    queue_is_deaf(queue, &ear)) {
			ballot_explain_failure(lock, error);
			return LOCK_ERROR;
		}
		trust_weigh(lock);
		wake = deadline_earlier(until, trust_next(lock));
		if (ballot_has_quorum(lock) && is_heard(queue, &wake))
			return win(queue, error);
		if (deadline_passed(until))
			return judge_end(queue, error);
		watch_outage(queue);
		requests_ask_due(&queue->requests);
		wake = deadline_earlier(wake, requests_next(&queue->requests));
		if (is_split(queue, &wake))
			return LOCK_AGAIN;
		if (queue->show != NULL)
			wake = deadline_earlier(
				wake, queue->show(queue->context, queue));
		use_the_time(lock);
		queue->requests.news = false;
		if (quorum_idle(lock->quorum, wake, &judge) ==
		    GATHER_INTERRUPTED)
			return LOCK_INTERRUPTED;
	}
}

enum lock_result queue_wait(struct queue *queue, struct deadline until,
			    struct error *error)
{
	struct hearing hearing = {.lock = queue->lock,
				  .busy = queue->requests.busy};
	enum lock_result result;

	begin(queue);
	result = wait_for_votes(queue, until, error);
	queue->lock->quorum->mailbox = NULL;
	if (result != LOCK_OK)
		attempt_take_back(&hearing, true);
	return result;
}
