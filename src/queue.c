#include "queue.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "attempt.h"
#include "log.h"
#include "script.h"

#define HEARTBEAT 5000     /* ms between requests, at most */
#define GRANT_LEASE 10000  /* ms, the longest lease of a message (settle.lua) */
#define PLACE_TIME 10      /* ms that each place in the queue waits longer */
#define FOREIGN_FIRST 50   /* ms between looks at another program's lock */
#define FOREIGN_LONGEST 500
#define OUTAGE_FIRST 50 /* ms between requests to a server that fails */
#define OUTAGE_LONGEST 1000
#define PARTIAL_TIME 5 /* ms, and two round trips, to get the missing votes */
#define FIRST_RENEWAL 100 /* ms: a command that ends sooner needs none */

/* --- what is asked ------------------------------------------------------ */

static int64_t heartbeat(const struct lock *lock)
{
	return lock->ttl / 3 < HEARTBEAT ? lock->ttl / 3 : HEARTBEAT;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void ask(struct queue *queue, size_t i)
{
	struct standing *at = &queue->at[i];
	int64_t now = clock_ms();

	at->sent++;
	at->sent_at[at->sent % QUEUE_RECENT] = now;
	if (at->oldest + QUEUE_RECENT <= at->sent)
		at->oldest = at->sent - QUEUE_RECENT + 1;
	at->due = deadline_at(now + heartbeat(queue->lock));
	queue->lock->clock = clock_wall_ms();
	script_queue(queue->lock, i, at->sent, now - queue->began);
}

/* A server that listens to us may be asked; one request at a time. */
static bool may_ask(const struct queue *queue, size_t i)
{
	return mailbox_is_open(&queue->mailbox, i) &&
	       !quorum_is_waiting(queue->lock->quorum, i);
}

static void ask_those_due(struct queue *queue)
{
	for (size_t i = 0; i < queue->lock->quorum->count; i++)
		if (queue->lock->vote[i] != VOTE_YES && may_ask(queue, i) &&
		    deadline_passed(queue->at[i].due))
			ask(queue, i);
}

/* --- what is heard ------------------------------------------------------ */

/* When to ask again one that has refused. */
static void plan_next(struct queue *queue, size_t i, const struct value *said)
{
	struct standing *at = &queue->at[i];
	bool foreign = said[1].number != -2 && said[3].length == 0;
	int64_t after = -1;

	if (said[1].number >= 0)
		after = said[1].number + PLACE_TIME * (at->place + 1);
	if (foreign && at->place == 0) {
		/* its holder will tell nobody: the head looks, for all */
		at->pause = at->pause == 0 ? FOREIGN_FIRST
					   : least(2 * at->pause, FOREIGN_LONGEST);
		after = after < 0 ? at->pause : least(after, at->pause);
	}
	if (after >= 0)
		at->due = deadline_earlier(at->due, deadline_in(after));
}

static void take_refusal(struct queue *queue, size_t i,
			 const struct reply *reply)
{
	queue->at[i].oldest = queue->at[i].sent;
	plan_next(queue, i, reply->value);
}

static void on_reply(void *context, size_t i, const struct reply *reply)
{
	struct queue *queue = context;
	struct lock *lock = queue->lock;
	struct standing *at = &queue->at[i];
	struct busy seen = {.held = -1, .place = -1};
	struct hearing hearing = {.lock = lock, .busy = &seen};
	int64_t sent_at = at->sent_at[at->sent % QUEUE_RECENT];
	int64_t took = clock_ms() - sent_at;

	queue->news = true;
	attempt_read(&hearing, i, reply, &at->place);
	switch (lock->vote[i]) {
	case VOTE_YES:
	case VOTE_QUARANTINED:
		at->oldest = at->sent + 1;
		at->valid = lock_validity(lock, sent_at);
		at->pause = 0;
		break;
	case VOTE_HELD:
		take_refusal(queue, i, reply);
		if (seen.known || !queue->busy->known)
			*queue->busy = seen;
		break;
	default:
		at->pause = at->pause == 0 ? OUTAGE_FIRST
					   : least(2 * at->pause, OUTAGE_LONGEST);
		at->due = deadline_in(at->pause);
		return;
	}
	if (took > queue->slowest)
		queue->slowest = took;
}

static void on_opened(void *context, size_t i)
{
	struct queue *queue = context;
	struct quorum *quorum = queue->lock->quorum;
	int64_t sent_at = queue->at[i].sent_at[queue->at[i].sent % QUEUE_RECENT];

	queue->news = true;
	/* it listens, but leaves an old request without an answer: a connection
	 * that nobody has closed */
	if (quorum_is_waiting(quorum, i) &&
	    clock_ms() - sent_at > quorum->timeout)
		quorum_abandon(quorum, i);
	queue->at[i].due = deadline_at(0);
}

/* What a server publishes: "request fence lease hold". */
struct message {
	int64_t request, fence, lease;
	char hold[TOKEN_SIZE + 1];
};

static bool read_number(const char **text, int64_t *number)
{
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	*number = strtoll(*text, &end, 10);
	*text = end + 1;
	return *end == ' ' && *number <= FENCE_LARGEST;
}

static bool parse(struct message *message, const char *text, size_t length)
{
	char copy[128];
	const char *at = copy;

	if (length >= sizeof(copy))
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	return read_number(&at, &message->request) &&
	       read_number(&at, &message->fence) &&
	       read_number(&at, &message->lease) &&
	       strlcpy(message->hold, at, sizeof(message->hold)) <
		       sizeof(message->hold);
}

/* Whether it answers what was asked, and has not been answered since. */
static bool is_current(const struct queue *queue, size_t i,
		       const struct message *message)
{
	const struct standing *at = &queue->at[i];
	const struct lock *lock = queue->lock;
	uint64_t n = (uint64_t)message->request;

	return n >= at->oldest && n <= at->sent &&
	       message->lease <= lock->ttl &&
	       (message->fence == 0) == (lock->kind == KIND_NONE) &&
	       strcmp(message->hold, lock->hold) == 0;
}

static void take_grant(struct queue *queue, size_t i,
		       const struct message *message)
{
	struct standing *at = &queue->at[i];
	uint64_t n = (uint64_t)message->request;
	struct deadline valid = deadline_at(at->sent_at[n % QUEUE_RECENT] +
					    message->lease -
					    lock_drift(message->lease));

	at->oldest = n + 1;
	if (deadline_passed(valid) || queue->lock->vote[i] == VOTE_YES)
		return;
	at->valid = valid;
	at->pause = 0;
	queue->by_message = true;
	attempt_count(queue->lock, i, message->fence);
}

static void on_message(void *context, size_t i, const char *text, size_t length)
{
	struct queue *queue = context;
	struct message message;

	queue->news = true;
	if (!parse(&message, text, length))
		return;
	if (message.request == 0) /* KEY ends sooner than we were told */
		queue->at[i].due = deadline_earlier(
			queue->at[i].due,
			deadline_in(message.lease + PLACE_TIME));
	else if (is_current(queue, i, &message))
		take_grant(queue, i, &message);
	else
		log_step("%s: a stale message, passed over",
			 queue->lock->quorum->servers[i].url.name);
}

static bool has_news(void *context)
{
	return ((struct queue *)context)->news;
}

/* --- from votes to a lock ----------------------------------------------- */

static size_t granted(const struct lock *lock)
{
	return ballot_count(lock, VOTE_YES) +
	       ballot_count(lock, VOTE_QUARANTINED);
}

/* What has been granted and is over is no vote. */
static void drop_late_votes(struct queue *queue)
{
	struct lock *lock = queue->lock;

	for (size_t i = 0; i < lock->quorum->count; i++) {
		if ((lock->vote[i] != VOTE_YES &&
		     lock->vote[i] != VOTE_QUARANTINED) ||
		    lock->kind == KIND_NONE ||
		    !deadline_passed(queue->at[i].valid))
			continue;
		lock->vote[i] = VOTE_PENDING;
		queue->at[i].due = deadline_at(0);
	}
}

/* The end of validity of the last vote that a quorum needs. */
static struct deadline quorum_validity(const struct queue *queue)
{
	const struct lock *lock = queue->lock;
	struct deadline best = deadline_at(0);

	for (size_t i = 0; i < lock->quorum->count; i++) {
		struct deadline valid = queue->at[i].valid;
		size_t as_good = 0;

		for (size_t k = 0; k < lock->quorum->count; k++)
			as_good += lock->vote[k] == VOTE_YES &&
				   queue->at[k].valid.at >= valid.at;
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
		if (lock->vote[i] == VOTE_YES || queue->at[i].sent == 0)
			continue;
		if (lock->kind == KIND_NONE)
			script_release(lock, i, 0);
		else
			script_put_back(lock, i);
		quorum_forget(lock->quorum, i);
	}
}

static bool has_room(const struct lock *lock)
{
	int64_t left = deadline_left(lock->valid);

	return left > lock->room && left > least(lock->ttl, GRANT_LEASE) / 2;
}

static enum lock_result win(struct queue *queue, struct error *error)
{
	struct lock *lock = queue->lock;
	struct hearing hearing = {.lock = lock, .busy = queue->busy};
	struct deadline until = deadline_in(lock->quorum->timeout);
	enum lock_result result = LOCK_OK;

	if (lock->kind == KIND_NONE) {
		tidy(queue);
		return LOCK_OK;
	}
	lock->valid = quorum_validity(queue);
	lock->started = lock->acquired = clock_ms();
	result = attempt_raise(&hearing, until, error);
	if (result != LOCK_OK)
		return result == LOCK_INTERRUPTED ? result : LOCK_AGAIN;
	tidy(queue);
	lock->renew = deadline_in(queue->by_message ? FIRST_RENEWAL
						    : lock->ttl / 3);
	if (!queue->by_message || has_room(lock))
		return deadline_passed(lock->valid) ? LOCK_AGAIN : LOCK_OK;
	log_step("granted by message, confirmed by a round");
	result = lock_extend(lock, until, error);
	lock->renew = deadline_at(lock->started + lock->ttl / 3);
	return result == LOCK_OK || result == LOCK_INTERRUPTED ? result
							       : LOCK_AGAIN;
}

/*
 * Some votes, but no quorum: others may have the rest. The servers are asked
 * once more, and when they have had the time to answer it is given up.
 */
static bool is_split(struct queue *queue, struct deadline *wake)
{
	struct lock *lock = queue->lock;
	int64_t patience = PARTIAL_TIME + 2 * queue->slowest;

	if (granted(lock) == 0) {
		queue->partial = 0;
		return false;
	}
	if (queue->partial == 0) {
		queue->asked_again = false;
		queue->partial =
			clock_ms() + patience + token_jitter(PARTIAL_TIME);
	}
	*wake = deadline_earlier(*wake, deadline_at(queue->partial));
	if (!deadline_passed(deadline_at(queue->partial)))
		return false;
	if (queue->asked_again)
		return true;
	queue->asked_again = true;
	queue->partial += patience + token_jitter(PARTIAL_TIME);
	for (size_t i = 0; i < lock->quorum->count; i++)
		queue->at[i].due = deadline_at(0);
	ask_those_due(queue);
	return false;
}

/* --- waiting ------------------------------------------------------------ */

void queue_init(struct queue *queue, struct lock *lock, struct busy *busy)
{
	*queue = (struct queue){
		.lock = lock,
		.busy = busy,
		.began = clock_ms(),
		.listener = {queue, on_opened, on_message},
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

bool queue_is_deaf(const struct queue *queue, const char **server,
		   const char **why)
{
	const struct quorum *quorum = queue->lock->quorum;

	return mailbox_refused(&queue->mailbox, server, why) >
	       quorum->count - quorum_size(quorum);
}

/* A new token, a new channel, no vote. */
static void begin(struct queue *queue)
{
	struct lock *lock = queue->lock;
	char suffix[TOKEN_LONGEST + 2];
	struct argument last = queue->channel;

	attempt_begin(lock);
	ballot_open(lock);
	for (size_t i = 0; i < lock->quorum->count; i++) {
		lock->fences[i] = 0;
		queue->at[i] = (struct standing){.place = -1};
	}
	queue->by_message = false;
	queue->partial = 0;
	suffix[0] = ':';
	strlcpy(suffix + 1, lock->token, sizeof(suffix) - 1);
	queue->channel = script_name(lock->record, suffix);
	lock->quorum->mailbox = &queue->mailbox;
	mailbox_subscribe(&queue->mailbox, queue->channel);
	free((char *)last.data);
}

/* BUSY where a quorum has answered, not long ago; else ERROR. */
static enum lock_result judge_end(const struct queue *queue,
				  struct error *error)
{
	struct lock *lock = queue->lock;
	struct hearing hearing = {.lock = lock, .busy = queue->busy};
	int64_t now = clock_ms();

	for (size_t i = 0; i < lock->quorum->count; i++) {
		const struct standing *at = &queue->at[i];
		int64_t sent_at = at->sent_at[at->sent % QUEUE_RECENT];

		if (!quorum_is_waiting(lock->quorum, i) ||
		    now - sent_at < lock->quorum->timeout)
			continue;
		lock->vote[i] = VOTE_FAILED;
		server_blame_silence(&lock->quorum->servers[i], now - sent_at);
	}
	return attempt_judge(&hearing, error);
}

static struct deadline next_wake(const struct queue *queue)
{
	struct deadline wake = deadline_never();

	for (size_t i = 0; i < queue->lock->quorum->count; i++)
		if (queue->lock->vote[i] != VOTE_YES && may_ask(queue, i))
			wake = deadline_earlier(wake, queue->at[i].due);
	return wake;
}

static enum lock_result wait_for_votes(struct queue *queue,
				       struct deadline until,
				       struct error *error)
{
	struct lock *lock = queue->lock;
	struct judge judge = {queue, on_reply, has_news};
	const char *server, *why;

	for (;;) {
		struct deadline wake;

		drop_late_votes(queue);
		if (lock->alias || ballot_is_hopeless(lock) ||
		    queue_is_deaf(queue, &server, &why)) {
			ballot_explain_failure(lock, error);
			return LOCK_ERROR;
		}
		if (ballot_has_quorum(lock))
			return win(queue, error);
		if (deadline_passed(until))
			return judge_end(queue, error);
		ask_those_due(queue);
		wake = deadline_earlier(until, next_wake(queue));
		if (is_split(queue, &wake))
			return LOCK_AGAIN;
		if (queue->show != NULL)
			queue->show(queue);
		queue->news = false;
		if (quorum_idle(lock->quorum, wake, &judge) ==
		    GATHER_INTERRUPTED)
			return LOCK_INTERRUPTED;
	}
}

enum lock_result queue_wait(struct queue *queue, struct deadline until,
			    struct error *error)
{
	struct hearing hearing = {.lock = queue->lock, .busy = queue->busy};
	enum lock_result result;

	begin(queue);
	result = wait_for_votes(queue, until, error);
	queue->lock->quorum->mailbox = NULL;
	if (result != LOCK_OK)
		attempt_take_back(&hearing, true);
	return result;
}
