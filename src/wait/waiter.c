#include "wait/waiter.h"

#include <string.h>

#include "base/log.h"
#include "wait/progress.h"
#include "wait/queue.h"
#include "base/signals.h"
#include "lock/trust.h"

#define PAUSE_LONGEST 128 /* ms, while others hold the lock */
#define OUTAGE_PAUSE 50   /* ms, at least, while servers are away */
#define OUTAGE_LONGEST 1000

#define HOPE_ROUNDS 4   /* until a silent connection is taken for dead */
#define HOPE_LEAST 4000 /* ms */

#define SPLIT_PAUSE 10 /* ms, after a split vote */
#define SPLIT_LONGEST 500
#define SPLIT_APART 30 /* ms, between two who came at once */
#define RIVALRY_TRIES 5
#define RIVALRY_ROUNDS 10

static int64_t doubled(int64_t first, unsigned long times, int64_t longest)
{
	while (times-- > 0 && first < longest)
		first *= 2;
	return first < longest ? first : longest;
}

static int64_t outage_pause(const struct waiter *waiter,
			    const struct lock *lock)
{
	int64_t pause = OUTAGE_PAUSE +
			deadline_jitter(doubled(OUTAGE_PAUSE, waiter->tries,
						OUTAGE_LONGEST));
	int64_t left = deadline_left(trust_next(&lock->ballot));

	return left < pause ? left + 1 : pause;
}

/* So long that one of those who are in step has its votes before the others ask again. */
static int64_t split_pause(const struct waiter *waiter,
			   const struct quorum *quorum)
{
	int64_t first = SPLIT_PAUSE, longest = SPLIT_LONGEST;

	for (size_t i = 0; i < quorum->count; i++)
		if (quorum->servers[i].conn.distance > first)
			first = quorum->servers[i].conn.distance;
	return deadline_jitter(doubled(first, waiter->tries,
				       first > longest ? first : longest));
}

static int64_t next_pause(const struct waiter *waiter, const struct lock *lock,
			  enum lock_result result)
{
	if (result == LOCK_ERROR)
		return outage_pause(waiter, lock);
	if (!waiter->patience->wait)
		return split_pause(waiter, lock->ballot.quorum);
	if (waiter->patience->every > 0)
		return waiter->patience->every;
	return deadline_jitter(doubled(1, waiter->tries - 1, PAUSE_LONGEST));
}

/* The servers are there, but for the one that failed after its grant. */
static bool is_unraised(enum lock_result result, const struct busy *busy,
			const struct error *error)
{
	return result == LOCK_ERROR && busy->unraised && error->transient;
}

/* Whether an attempt that does not wait was made often enough (waiter.h). */
static bool is_vain(const struct waiter *waiter, const struct lock *lock)
{
	int64_t now = clock_ms(), round = lock->ballot.quorum->timeout;

	return deadline_passed(waiter->limit) || /* there is a wait after it */
	       (waiter->tries >= RIVALRY_TRIES && now - waiter->met > round) ||
	       now - waiter->began > RIVALRY_ROUNDS * round;
}

/* How long votes are waited for that are missing for want of KEY's record (ms). */
static int64_t for_records(const struct waiter *waiter, const struct lock *lock)
{
	int64_t round = lock->ballot.quorum->timeout;
	int64_t all = trust_longest(&lock->ballot) + round;

	return waiter->patience->unlocked && all > RIVALRY_ROUNDS * round
		       ? RIVALRY_ROUNDS * round
		       : all;
}

static bool is_over(const struct waiter *waiter, enum lock_result result,
		    const struct lock *lock, const struct busy *busy,
		    const struct error *error)
{
	const struct patience *patience = waiter->patience;
	bool unraised = is_unraised(result, busy, error);

	if (result == LOCK_OK || result == LOCK_INTERRUPTED)
		return true;
	if (result == LOCK_BUSY && (busy->nested || busy->has_run))
		return true;
	if (!patience->wait && (result == LOCK_BUSY ? busy->split : unraised))
		return is_vain(waiter, lock);
	if (result == LOCK_BUSY && !patience->wait)
		return true;
	if (result == LOCK_ERROR && !patience->wait)
		return deadline_passed(waiter->limit) ||
		       !trust_is_short_of_records(&lock->ballot) ||
		       clock_ms() - waiter->began > for_records(waiter, lock);
	if (deadline_passed(waiter->limit) ||
	    (patience->tries > 0 && waiter->tries >= patience->tries))
		return true;
	if (result != LOCK_ERROR)
		return false;
	return !error->transient ||
	       (!waiter->answered && !unraised && patience->limit < 0 &&
		!lock_is_quarantined(lock));
}

static void tell_outage(struct waiter *waiter, const struct lock *lock,
			const struct error *error)
{
	bool *told = lock_is_quarantined(lock) ? &waiter->quarantine_told
					       : &waiter->outage_told;

	if (!*told)
		log_notice("%.*s: still waiting: %s",
			   (int)lock->names.key.length, lock->names.key.data,
			   error->text);
	*told = true;
}

/* False if a signal came. busy: who has KEY; NULL if that is not known. */
static bool pause_for(int64_t ms, struct waiter *waiter,
		      const struct busy *busy)
{
	struct pollfd polled = {.fd = waiter->patience->interrupt,
				.events = POLLIN};
	struct deadline until =
		deadline_earlier(deadline_in(ms), waiter->limit);
	struct deadline wake = until;

	while (!deadline_passed(until)) {
		if (busy != NULL)
			wake = deadline_earlier(until,
						progress_show(&waiter->progress,
							      busy, 0, NULL));
		if (deadline_poll(&polled, 1, wake) > 0 &&
		    signals_have_come(waiter->patience->interrupt))
			return false;
	}
	return true;
}

/* --- what is seen of it ------------------------------------------------- */

/* Our place in the longest of the servers' queues, from 1; 0 if we take nothing
 * and so stand in none; -1 until a server has said it. */
static int64_t place_in_line(const struct queue *queue)
{
	int64_t place = -1;

	if (queue->lock->wish.kind == KIND_NONE)
		return 0;
	for (size_t i = 0; i < queue->lock->ballot.quorum->count; i++)
		if (queue->requests.at[i].place > place)
			place = queue->requests.at[i].place;
	return place < 0 ? -1 : place + 1;
}

static struct deadline show(void *context, struct queue *queue)
{
	int64_t place = place_in_line(queue);
	struct error why;

	if (progress_is_due(context, place) && !queue_look(queue))
		return deadline_earlier(requests_next(&queue->requests),
					requests_end_of_look(&queue->requests));
	return progress_show(context, queue->requests.busy, place,
			     queue_lacks_quorum(queue, &why) ? why.text : NULL);
}

/* --- waiting ------------------------------------------------------------ */

/* Waits until it is granted or the time is over. AGAIN: the servers let nobody
 * subscribe, so we can only ask again. */
static enum lock_result stand_in_line(struct waiter *waiter, struct lock *lock,
				      struct busy *busy, struct error *error)
{
	struct queue queue;
	enum lock_result result;
	unsigned long splits = 0;
	const struct server *subscriber;

	queue_init(&queue, lock, busy);
	queue.requests.began = waiter->began;
	queue.show = show;
	queue.context = &waiter->progress;
	for (;;) {
		result = queue_wait(&queue,
				    (struct wait){waiter->limit,
						  waiter->patience->interrupt},
				    error);
		if (result != LOCK_AGAIN)
			break;
		log_step("split vote: given back, and asked for again");
		/* so that all servers tell them apart */
		queue.requests.began += deadline_jitter(SPLIT_APART);
		if (!pause_for(deadline_jitter(doubled(SPLIT_PAUSE, splits++,
						       SPLIT_LONGEST)),
			       waiter, NULL)) {
			result = LOCK_INTERRUPTED;
			break;
		}
	}
	if (result == LOCK_ERROR && queue_is_deaf(&queue, &subscriber)) {
		queue_tell_deaf(&queue, subscriber);
		waiter->poll = true;
		result = LOCK_AGAIN;
	}
	queue_release(&queue);
	return result;
}

/* Those who have a vote that we lack. If they are others than before, they are trying, as
 * we are: each attempt has a token of its own. Who has the slot that we were not given is
 * not said: they may be others each time. */
static void meet(struct waiter *waiter, const struct ballot *ballot)
{
	if (ballot_count(ballot, VOTE_ELSEWHERE) > 0)
		waiter->met = clock_ms();
	for (size_t i = 0; i < ballot->quorum->count; i++) {
		if (ballot->vote[i] != VOTE_HELD ||
		    strcmp(waiter->rivals[i], ballot->token_prefix[i]) == 0)
			continue;
		strlcpy(waiter->rivals[i], ballot->token_prefix[i],
			sizeof(waiter->rivals[i]));
		waiter->met = clock_ms();
	}
}

/* A connection that nobody has closed: an attempt and its release are on it, and the next
 * attempt has another token, so that it may come on a fresh one. */
static void renew_dead(struct quorum *quorum)
{
	int64_t hope = HOPE_ROUNDS * quorum->timeout;

	quorum_renew_hung(quorum, hope > HOPE_LEAST ? hope : HOPE_LEAST);
}

static enum lock_result attempt(struct waiter *waiter, struct lock *lock,
				struct busy *busy, struct error *error)
{
	struct busy before = *busy;
	enum lock_result result;

	waiter->tries++;
	result = lock_acquire(
		lock,
		(struct wait){deadline_in(lock->ballot.quorum->timeout),
			      waiter->patience->interrupt},
		busy, error);
	meet(waiter, &lock->ballot);
	if (result == LOCK_ERROR && lock->seen_busy)
		*busy = before; /* who had it when that was last said */
	if (result == LOCK_ERROR)
		renew_dead(lock->ballot.quorum);
	return result;
}

/* result: of an attempt. */
static enum lock_result go_on(struct waiter *waiter, struct lock *lock,
			      enum lock_result result, struct busy *busy,
			      struct error *error)
{
	const struct patience *patience = waiter->patience;

	for (;; result = attempt(waiter, lock, busy, error)) {
		bool waits = result == LOCK_BUSY && patience->wait;

		if (is_over(waiter, result, lock, busy, error))
			return result;
		if (result == LOCK_ERROR && !busy->unraised)
			tell_outage(waiter, lock, error);
		if (result != LOCK_ERROR || busy->unraised ||
		    lock_is_quarantined(lock))
			waiter->answered = true;
		if (waits && !waiter->poll) {
			result = stand_in_line(waiter, lock, busy, error);
			if (result != LOCK_AGAIN)
				return result;
		}
		if (!pause_for(next_pause(waiter, lock, result), waiter,
			       waits ? busy : NULL))
			return LOCK_INTERRUPTED;
	}
}

void waiter_init(struct waiter *waiter, const struct patience *patience)
{
	*waiter = (struct waiter){
		.patience = patience,
		.limit = patience->limit < 0 ? deadline_never()
					     : deadline_in(patience->limit),
		.began = clock_ms(),
		.poll = patience->poll,
	};
	waiter->met = waiter->began;
}

enum lock_result waiter_go_on(struct waiter *waiter, struct lock *lock,
			      enum lock_result last, struct busy *busy,
			      struct error *error)
{
	enum lock_result result;

	progress_init(&waiter->progress, lock, waiter->began);
	result = go_on(waiter, lock, last, busy, error);
	progress_end();
	return result;
}

enum lock_result waiter_acquire(struct waiter *waiter, struct lock *lock,
				struct busy *busy, struct error *error)
{
	trust_begin(&lock->ballot);
	return waiter_go_on(waiter, lock, attempt(waiter, lock, busy, error),
			    busy, error);
}
