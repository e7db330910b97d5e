#include "waiter.h"

#include <inttypes.h>
#include <stdio.h>

#include "duration.h"
#include "log.h"
#include "queue.h"
#include "signals.h"
#include "title.h"
#include "trust.h"

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

/* False where a signal came. */
static bool pause_for(int64_t ms, const struct wait *wait, int interrupt)
{
	struct pollfd polled = {.fd = interrupt, .events = POLLIN};
	struct deadline until = deadline_earlier(deadline_in(ms), wait->limit);

	while (!deadline_passed(until))
		if (deadline_poll(&polled, 1, until) > 0 &&
		    signals_have_come(interrupt))
			return false;
	return true;
}

/* --- what is seen of it ------------------------------------------------- */

static const char *ordinal(char text[24], int64_t number)
{
	int64_t last = number % 10;
	const char *end = number / 10 % 10 == 1 || last < 1 || last > 3 ? "th"
			  : last == 1                                   ? "st"
			  : last == 2                                   ? "nd"
									: "rd";

	snprintf(text, 24, "%" PRId64 "%s", number, end);
	return text;
}

/* The worst of the servers' queues, from 1; 0 where we stand in none, as those
 * who only wait. */
static int64_t place_in_line(const struct queue *queue)
{
	int64_t place = -1;

	if (queue->lock->kind == KIND_NONE)
		return 0;
	for (size_t i = 0; i < queue->lock->quorum->count; i++)
		if (queue->requests.at[i].place > place)
			place = queue->requests.at[i].place;
	return place + 1;
}

static void show_line(const struct lock *lock, const struct busy *busy,
		      const char *place, int64_t began)
{
	struct buffer text = {0};
	char waited[DURATION_TEXT];

	if (!log_is_live())
		return;
	record_print_busy(&text, busy);
	log_live("%.*s: %s%s, waiting for %s", (int)lock->key.length,
		 lock->key.data, text.data, place,
		 duration_format(waited, clock_ms() - began));
	buffer_release(&text);
}

static void show(struct queue *queue)
{
	const struct lock *lock = queue->lock;
	int64_t place = place_in_line(queue);
	char number[24], text[40] = "";

	if (place > 0)
		snprintf(text, sizeof(text), ", %s in line",
			 ordinal(number, place));
	if (place != queue->shown || !title_is_set())
		title_set("%.*s: waiting%s", (int)lock->key.length,
			  lock->key.data, text);
	queue->shown = place;
	show_line(lock, queue->requests.busy, text, queue->requests.began);
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
	const char *server, *why;

	queue_init(&queue, lock, busy);
	queue.requests.began = wait->began;
	queue.show = show;
	for (;;) {
		result = queue_wait(&queue, wait->limit, error);
		if (result != LOCK_AGAIN)
			break;
		log_step("split vote: given back, and asked for again");
		/* so that all servers tell them apart */
		queue.requests.began += token_jitter(SPLIT_APART);
		if (!pause_for(token_jitter(doubled(SPLIT_PAUSE, splits++,
						    SPLIT_LONGEST)),
			       wait, lock->quorum->interrupt)) {
			result = LOCK_INTERRUPTED;
			break;
		}
	}
	if (result == LOCK_ERROR && queue_is_deaf(&queue, &server, &why)) {
		log_notice("%.*s: no place in the queue, so asking again and "
			   "again: %s: %s",
			   (int)lock->key.length, lock->key.data, server, why);
		wait->poll = true;
		result = LOCK_AGAIN;
	}
	queue_release(&queue);
	log_live_end();
	return result;
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

	trust_begin(lock);
	for (;;) {
		enum lock_result result = lock_acquire(
			lock, deadline_in(lock->quorum->timeout), busy, error);

		wait.tries++;
		if (is_over(&wait, result, lock, busy, error))
			return result;
		if (result == LOCK_ERROR)
			tell_outage(&wait, lock, error);
		else
			wait.answered = true;
		if (result == LOCK_BUSY && patience->wait && !wait.poll) {
			result = stand_in_line(&wait, lock, busy, error);
			if (result != LOCK_AGAIN)
				return result;
		}
		if (!pause_for(next_pause(&wait, lock, result), &wait,
			       lock->quorum->interrupt))
			return LOCK_INTERRUPTED;
	}
}
