#include "wait/waiter.h"

#include "base/log.h"
#include "wait/progress.h"
#include "wait/queue.h"
#include "base/signals.h"
#include "lock/trust.h"

#define PAUSE_LONGEST 128 /* ms, while others hold the lock */
#define OUTAGE_PAUSE 50   /* ms, at least, while servers are away */
#define OUTAGE_LONGEST 1000

#define SPLIT_PAUSE 10 /* ms, after a split vote */
#define SPLIT_LONGEST 500
#define SPLIT_APART 30 /* ms, between two who came at once */

struct wait {
	const struct patience *patience;
	struct deadline limit;
	int64_t began;
	unsigned long tries;
	bool poll;
	bool answered; /* a quorum has, at least once */
	bool told;     /* of an outage */
	struct progress progress;
};

static int64_t doubled(int64_t first, unsigned long times, int64_t longest)
{
	while (times-- > 0 && first < longest)
		first *= 2;
	return first < longest ? first : longest;
}

static int64_t outage_pause(const struct wait *wait, const struct lock *lock)
{
	int64_t pause =
		OUTAGE_PAUSE + token_jitter(doubled(OUTAGE_PAUSE, wait->tries,
						    OUTAGE_LONGEST));
	int64_t left = deadline_left(trust_next(lock));

	return left < pause ? left + 1 : pause;
}

static int64_t next_pause(const struct wait *wait, const struct lock *lock,
			  enum lock_result result)
{
	if (result == LOCK_ERROR)
		return outage_pause(wait, lock);
	if (!wait->patience->wait)
		return token_jitter(
			doubled(SPLIT_PAUSE, wait->tries, SPLIT_LONGEST));
	if (wait->patience->every > 0)
		return wait->patience->every;
	return token_jitter(doubled(1, wait->tries - 1, PAUSE_LONGEST));
}

static bool is_over(const struct wait *wait, enum lock_result result,
		    const struct lock *lock, const struct busy *busy,
		    const struct error *error)
{
	const struct patience *patience = wait->patience;

	if (result == LOCK_OK || result == LOCK_INTERRUPTED)
		return true;
	if (result == LOCK_BUSY && busy->nested)
		return true;
	if (result == LOCK_BUSY && !patience->wait)
		return !busy->split ||
		       clock_ms() - wait->began > lock->quorum->timeout;
	if (result == LOCK_ERROR && !patience->wait)
		return !trust_is_short_of_records(lock) ||
		       clock_ms() - wait->began >
			       trust_longest(lock) + lock->quorum->timeout;
	if (deadline_passed(wait->limit) ||
	    (patience->tries > 0 && wait->tries >= patience->tries))
		return true;
	if (result != LOCK_ERROR)
		return false;
	return !error->passing || (!wait->answered && patience->limit < 0 &&
				   !lock_is_quarantined(lock));
}

static void tell_outage(struct wait *wait, const struct lock *lock,
			const struct error *error)
{
	if (!wait->told)
		log_notice("%.*s: still waiting: %s", (int)lock->key.length,
			   lock->key.data, error->text);
	wait->told = true;
}

/* False if a signal came. busy: who has KEY; NULL if that is not known. */
static bool pause_for(int64_t ms, struct wait *wait, const struct busy *busy,
		      int interrupt)
{
	struct pollfd polled = {.fd = interrupt, .events = POLLIN};
	struct deadline until = deadline_earlier(deadline_in(ms), wait->limit);
	struct deadline wake = until;

	while (!deadline_passed(until)) {
		if (busy != NULL)
			wake = deadline_earlier(
				until,
				progress_show(&wait->progress, busy, 0, NULL));
		if (deadline_poll(&polled, 1, wake) > 0 &&
		    signals_have_come(interrupt))
			return false;
	}
	return true;
}

/* --- what is seen of it ------------------------------------------------- */

/* The worst of the servers' queues, from 1; 0 if we stand in none, as those who
 * only wait do; -1 until a server has said it. */
static int64_t place_in_line(const struct queue *queue)
{
	int64_t place = -1;

	if (queue->lock->kind == KIND_NONE)
		return 0;
	for (size_t i = 0; i < queue->lock->quorum->count; i++)
		if (queue->requests.at[i].place > place)
			place = queue->requests.at[i].place;
	return place < 0 ? -1 : place + 1;
}

static struct deadline show(void *context, struct queue *queue)
{
	return progress_show(
		context, queue->requests.busy, place_in_line(queue),
		queue->outage.code != 0 ? queue->outage.text : NULL);
}

/* --- waiting ------------------------------------------------------------ */

/* Until it is granted or waiting is over. AGAIN: the servers let nobody listen,
 * so there is no way but to ask. */
static enum lock_result stand_in_line(struct wait *wait, struct lock *lock,
				      struct busy *busy, struct error *error)
{
	struct queue queue;
	enum lock_result result;
	unsigned long splits = 0;
	const struct server *ear;

	queue_init(&queue, lock, busy);
	queue.requests.began = wait->began;
	queue.show = show;
	queue.context = &wait->progress;
	for (;;) {
		result = queue_wait(&queue, wait->limit, error);
		if (result != LOCK_AGAIN)
			break;
		log_step("split vote: given back, and asked for again");
		/* so that all servers tell them apart */
		queue.requests.began += token_jitter(SPLIT_APART);
		if (!pause_for(token_jitter(doubled(SPLIT_PAUSE, splits++,
						    SPLIT_LONGEST)),
			       wait, NULL, lock->quorum->interrupt)) {
			result = LOCK_INTERRUPTED;
			break;
		}
	}
	if (result == LOCK_ERROR && queue_is_deaf(&queue, &ear)) {
		const char *remedy = server_remedy(ear);

		log_notice("%.*s: no place in the queue, so asking again and "
			   "again: %s: %s%s%s",
			   (int)lock->key.length, lock->key.data, ear->url.name,
			   ear->why, *remedy != '\0' ? ": " : "", remedy);
		wait->poll = true;
		result = LOCK_AGAIN;
	}
	queue_release(&queue);
	return result;
}

static enum lock_result acquire(struct wait *wait, struct lock *lock,
				struct busy *busy, struct error *error)
{
	const struct patience *patience = wait->patience;

	for (;;) {
		enum lock_result result = lock_acquire(
			lock, deadline_in(lock->quorum->timeout), busy, error);
		bool waits = result == LOCK_BUSY && patience->wait;

		wait->tries++;
		if (is_over(wait, result, lock, busy, error))
			return result;
		if (result == LOCK_ERROR)
			tell_outage(wait, lock, error);
		else
			wait->answered = true;
		if (waits && !wait->poll) {
			result = stand_in_line(wait, lock, busy, error);
			if (result != LOCK_AGAIN)
				return result;
		}
		if (!pause_for(next_pause(wait, lock, result), wait,
			       waits ? busy : NULL, lock->quorum->interrupt))
			return LOCK_INTERRUPTED;
	}
}

enum lock_result waiter_acquire(struct lock *lock,
				const struct patience *patience,
				struct busy *busy, struct error *error)
{
	struct wait wait = {
		.patience = patience,
		.limit = patience->limit < 0 ? deadline_never()
					     : deadline_in(patience->limit),
		.began = clock_ms(),
		.poll = patience->poll,
	};
	enum lock_result result;

	trust_begin(lock);
	progress_init(&wait.progress, lock, wait.began);
	result = acquire(&wait, lock, busy, error);
	progress_end();
	return result;
}
