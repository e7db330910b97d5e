#include "wait/requests.h"

#include <stdlib.h>
#include <string.h>

#include "lock/attempt.h"
#include "base/log.h"
#include "wait/message.h"
#include "lock/script.h"
#include "lock/trust.h"

#define FIRST_LEASE 3000 /* ms, of a grant by message, at most */
#define HEARTBEAT 5000   /* ms between requests, at most */
#define ASK_AGAIN 10     /* ms between requests to a server, at least */
#define PLACE_TIME 10    /* ms that each place in the queue waits longer */
#define FOREIGN_FIRST 50 /* ms between looks at another program's lock */
#define FOREIGN_LONGEST 500
#define HOPE_TIME 5     /* ms, and two round trips, until an answer is late */
#define OUTAGE_FIRST 50 /* ms between requests to a server that fails */
#define OUTAGE_LONGEST 1000

/* --- what is asked ------------------------------------------------------ */

static int64_t heartbeat(const struct lock *lock)
{
	return lock->ttl / 3 < HEARTBEAT ? lock->ttl / 3 : HEARTBEAT;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

int64_t requests_first_lease(const struct lock *lock)
{
	return least(lock->ttl, FIRST_LEASE);
}

static void ask(struct requests *requests, size_t i)
{
	struct standing *at = &requests->at[i];
	struct server *server = &requests->lock->quorum->servers[i];
	int64_t now = clock_ms();
	char why[sizeof(server->why)] = "";
	enum cause cause = server->cause;

	at->sent++;
	at->sent_at[at->sent % REQUESTS_RECENT] = now;
	if (at->oldest + REQUESTS_RECENT <= at->sent)
		at->oldest = at->sent - REQUESTS_RECENT + 1;
	at->due = deadline_at(now + heartbeat(requests->lock));
	requests->lock->clock = clock_wall_ms();
	if (requests->lock->vote[i] == VOTE_FAILED)
		strlcpy(why, server->why, sizeof(why));
	script_queue(requests->lock, i, at->sent, now - requests->began);
	if (why[0] != '\0' && server->why[0] == '\0')
		server_blame(server, cause, why); /* until it answers */
}

static int64_t last_sent(const struct requests *requests, size_t i)
{
	const struct standing *at = &requests->at[i];

	return at->sent_at[at->sent % REQUESTS_RECENT];
}

/* When the next request is due: whatever a server says or does, it is not asked
 * more often than this. */
static struct deadline next_request(const struct requests *requests, size_t i)
{
	struct deadline due = requests->at[i].due;
	int64_t soonest = last_sent(requests, i) + ASK_AGAIN;

	return due.at > soonest ? due : deadline_at(soonest);
}

/* A server that listens to us may be asked; one request at a time. */
static bool may_ask(const struct requests *requests, size_t i)
{
	return mailbox_is_open(requests->mailbox, i) &&
	       !requests->lock->barred[i] &&
	       !quorum_is_waiting(requests->lock->quorum, i);
}

static struct deadline end_of_round(const struct requests *requests, size_t i)
{
	return deadline_at(last_sent(requests, i) +
			   requests->lock->quorum->timeout);
}

/* When it is taken for dead that no answer has come yet. */
static struct deadline end_of_hope(const struct requests *requests, size_t i)
{
	return deadline_at(last_sent(requests, i) +
			   requests->lock->quorum->timeout +
			   2 * heartbeat(requests->lock));
}

/* One that listens, but does not answer for long: a connection that has died
 * without a word. Whatever is still on it is for a token that others never
 * have. */
static void abandon_dead(struct requests *requests, size_t i)
{
	if (!quorum_is_waiting(requests->lock->quorum, i) ||
	    !mailbox_is_open(requests->mailbox, i) ||
	    !deadline_passed(end_of_hope(requests, i)))
		return;
	quorum_abandon(requests->lock->quorum, i);
	if (requests->at[i].giving_back)
		requests->lock->barred[i] = true;
	requests->at[i].giving_back = false;
}

void requests_ask_due(struct requests *requests)
{
	for (size_t i = 0; i < requests->lock->quorum->count; i++)
		abandon_dead(requests, i);
	for (size_t i = 0; i < requests->lock->quorum->count; i++)
		if (requests->lock->vote[i] != VOTE_YES &&
		    may_ask(requests, i) &&
		    deadline_passed(next_request(requests, i)))
			ask(requests, i);
}

/* --- what is heard ------------------------------------------------------ */

/* When to ask again one that has refused. */
static void plan_next(struct standing *at, const struct busy *seen)
{
	bool foreign = seen->left != -2 && !seen->known;
	int64_t after = -1;

	if (seen->left >= 0)
		after = seen->left + PLACE_TIME * (at->place + 1);
	if (foreign && at->place == 0) {
		/* its holder will tell nobody: the head looks, for all */
		at->pause = at->pause == 0
				    ? FOREIGN_FIRST
				    : least(2 * at->pause, FOREIGN_LONGEST);
		after = after < 0 ? at->pause : least(after, at->pause);
	}
	if (after >= 0)
		at->due = deadline_earlier(at->due, deadline_in(after));
}

static void take_refusal(struct requests *requests, size_t i,
			 const struct reply *reply, const struct busy *seen)
{
	requests->at[i].oldest = requests->at[i].sent;
	requests->at[i].refused = requests->at[i].sent;
	strlcpy(requests->mark[i], reply->value[6].text, HOLDER_MARK);
	plan_next(&requests->at[i], seen);
}

static void try_later(struct standing *at)
{
	at->pause = at->pause == 0 ? OUTAGE_FIRST
				   : least(2 * at->pause, OUTAGE_LONGEST);
	at->due = deadline_in(at->pause);
}

void requests_give_back(struct requests *requests, size_t i)
{
	struct standing *at = &requests->at[i];

	log_step("%s: others hold it elsewhere, given back",
		 requests->lock->quorum->servers[i].url.name);
	/* one answer of two would not tell which it is */
	requests->lock->barred[i] =
		quorum_is_waiting(requests->lock->quorum, i);
	script_release(requests->lock, i, 0);
	requests->lock->vote[i] = VOTE_PENDING;
	at->giving_back = true;
	at->oldest = at->sent + 1;
	at->due = deadline_in(2 * heartbeat(requests->lock));
}

/* A release that was sent twice may be executed late: behind a later request
 * it would take back what that was granted. */
static void given_back(struct requests *requests, size_t i,
		       const struct reply *reply)
{
	requests->at[i].giving_back = false;
	if (reply == NULL || quorum_has_broken(requests->lock->quorum, i))
		requests->lock->barred[i] = true;
}

/* The refusal of a request that a message has answered since; or that came when
 * KEY had been free, for one who waits for no more than that. */
static bool is_overtaken(const struct requests *requests, size_t i)
{
	const struct standing *at = &requests->at[i];

	return (requests->lock->vote[i] == VOTE_YES ||
		requests->lock->vote[i] == VOTE_QUARANTINED) &&
	       (at->oldest == at->sent + 1 ||
		requests->lock->kind == KIND_NONE) &&
	       !deadline_passed(at->valid) &&
	       !quorum_has_broken(requests->lock->quorum, i);
}

void requests_reply(void *context, size_t i, const struct reply *reply)
{
	struct requests *requests = context;
	struct lock *lock = requests->lock;
	struct standing *at = &requests->at[i];
	struct busy seen = {.held = -1, .place = -1};
	struct hearing hearing = {.lock = lock, .busy = &seen};
	int64_t sent_at = last_sent(requests, i);
	bool overtaken = is_overtaken(requests, i);

	requests->news = true;
	if (at->giving_back) {
		given_back(requests, i, reply);
		return;
	}
	/* it has closed a connection that was idle: no more than that */
	if (reply == NULL && at->sent > 0 && at->refused == at->sent) {
		at->refused = 0;
		lock->vote[i] = VOTE_PENDING;
		at->due = deadline_at(0);
		return;
	}
	attempt_read(&hearing, i, reply, &at->place);
	if (reply == NULL || lock->vote[i] == VOTE_FAILED) {
		try_later(at);
		return;
	}
	if (overtaken && lock->vote[i] == VOTE_HELD) {
		attempt_count(lock, i, lock->fences[i]);
		return;
	}
	if (lock->vote[i] == VOTE_HELD) {
		take_refusal(requests, i, reply, &seen);
		if (seen.known || !requests->busy->known)
			*requests->busy = seen;
		return;
	}
	at->oldest = at->sent + 1;
	at->valid = lock_validity(lock, sent_at);
	at->pause = 0;
}

void requests_opened(void *context, size_t i)
{
	struct requests *requests = context;
	struct quorum *quorum = requests->lock->quorum;

	requests->news = true;
	/* it listens, but leaves an old request without an answer: a connection
	 * that nobody has closed */
	if (quorum_is_waiting(quorum, i) &&
	    clock_ms() - last_sent(requests, i) > quorum->timeout)
		quorum_abandon(quorum, i);
	requests->at[i].due = deadline_at(0);
}

/* Somebody has to look whether there are still enough that listen to us. */
void requests_deaf(void *context, size_t i)
{
	(void)i;
	((struct requests *)context)->news = true;
}

/* Whether it answers what was asked, and has not been answered since. That KEY
 * was free is news, however late, to one who waits for no more than that. */
static bool is_current(const struct requests *requests, size_t i,
		       const struct message *message)
{
	const struct standing *at = &requests->at[i];
	const struct lock *lock = requests->lock;
	uint64_t n = (uint64_t)message->request;

	bool unanswered = lock->kind == KIND_NONE
				  ? n + REQUESTS_RECENT > at->sent
				  : n >= at->oldest;

	return unanswered && n <= at->sent && message->lease > 0 &&
	       message->lease <= lock->ttl &&
	       (message->fence == 0) == (lock->kind == KIND_NONE) &&
	       strcmp(message->hold, lock->hold) == 0;
}

/*
 * When it ends. The server says how long after the request came, which was not
 * before we sent it; and it is no later than a lease from now, whatever the
 * server's clock has done in between.
 */
static struct deadline end_of_grant(const struct requests *requests, size_t i,
				    const struct message *message)
{
	const struct lock *lock = requests->lock;
	uint64_t n = (uint64_t)message->request;
	int64_t sent_at = requests->at[i].sent_at[n % REQUESTS_RECENT];
	int64_t first = requests_first_lease(lock);
	struct deadline end = deadline_at(sent_at + message->lease -
					  lock_drift(message->lease));

	if (lock->kind == KIND_NONE)
		return end;
	return deadline_earlier(end, deadline_in(first - lock_drift(first)));
}

static void take_grant(struct requests *requests, size_t i,
		       const struct message *message)
{
	struct standing *at = &requests->at[i];
	uint64_t n = (uint64_t)message->request;
	struct deadline valid = end_of_grant(requests, i, message);

	if (at->oldest <= n)
		at->oldest = n + 1;
	if (deadline_passed(valid) || requests->lock->vote[i] == VOTE_YES)
		return;
	at->valid = valid;
	at->pause = 0;
	requests->by_message = true;
	trust_hear(requests->lock, i, message->age, NULL);
	attempt_count(requests->lock, i, message->fence);
}

void requests_message(void *context, size_t i, const char *text, size_t length)
{
	struct requests *requests = context;
	struct message message;

	requests->news = true;
	if (!message_parse(&message, text, length))
		return;
	if (message.request == 0) /* KEY ends sooner than we were told */
		requests->at[i].due = deadline_earlier(
			requests->at[i].due,
			deadline_in(message.lease + PLACE_TIME));
	else if (is_current(requests, i, &message))
		take_grant(requests, i, &message);
	else
		log_step("%s: a stale message, passed over",
			 requests->lock->quorum->servers[i].url.name);
}

bool requests_may_queue(const struct requests *requests, size_t i)
{
	const struct standing *at = &requests->at[i];

	return at->sent > 0 &&
	       (requests->lock->vote[i] != VOTE_YES || at->oldest <= at->sent ||
		quorum_is_waiting(requests->lock->quorum, i));
}

/* A subscription, that may need a connection first, and then a request take some
 * round trips; an answer takes one. Twice that is late. */
struct deadline requests_hope(const struct requests *requests, size_t i)
{
	const struct lock *lock = requests->lock;
	const struct standing *at = &requests->at[i];
	int64_t distance = lock->quorum->servers[i].distance;
	int64_t late = least(HOPE_TIME + 2 * distance, lock->quorum->timeout);

	if (lock->vote[i] != VOTE_PENDING || lock->barred[i] || distance == 0)
		return deadline_at(0);
	if (at->sent == 0)
		return deadline_at(requests->listening + 3 * late);
	if (at->giving_back || !quorum_is_waiting(lock->quorum, i))
		return deadline_at(0);
	return deadline_at(last_sent(requests, i) + late);
}

int64_t requests_farthest(const struct requests *requests)
{
	const struct lock *lock = requests->lock;
	int64_t farthest = 0;

	for (size_t i = 0; i < lock->quorum->count; i++)
		if (lock->vote[i] != VOTE_PENDING &&
		    lock->vote[i] != VOTE_FAILED &&
		    lock->quorum->servers[i].distance > farthest)
			farthest = lock->quorum->servers[i].distance;
	return least(farthest, lock->quorum->timeout);
}

bool requests_have_news(void *context)
{
	return ((struct requests *)context)->news;
}

/* What has been granted and is over is no vote. */
void requests_drop_late(struct requests *requests)
{
	struct lock *lock = requests->lock;

	for (size_t i = 0; i < lock->quorum->count; i++) {
		if ((lock->vote[i] != VOTE_YES &&
		     lock->vote[i] != VOTE_QUARANTINED) ||
		    !deadline_passed(requests->at[i].valid))
			continue;
		lock->vote[i] = VOTE_PENDING;
		requests->at[i].due = deadline_at(0);
	}
}

/* --- who does not answer ------------------------------------------------- */

/* Those that have had the time of a round for their answer have failed, and
 * those that cannot be subscribed to. */
void requests_blame_silent(struct requests *requests)
{
	struct quorum *quorum = requests->lock->quorum;

	for (size_t i = 0; i < quorum->count; i++) {
		struct server *server = &quorum->servers[i];
		const struct server *ear =
			mailbox_failure(requests->mailbox, i);

		if (quorum_is_waiting(quorum, i)) {
			if (requests->lock->vote[i] == VOTE_YES ||
			    !deadline_passed(end_of_round(requests, i)))
				continue;
			server_blame_silence(
				server, clock_ms() - last_sent(requests, i));
			requests->lock->vote[i] = VOTE_FAILED;
		} else if (ear != NULL &&
			   requests->lock->vote[i] == VOTE_PENDING) {
			server_blame_as(server, ear);
			requests->lock->vote[i] = VOTE_FAILED;
		}
	}
}

/* When there is something to do for a server that has not granted it. */
static struct deadline next_of(const struct requests *requests, size_t i)
{
	const struct lock *lock = requests->lock;

	if (may_ask(requests, i))
		return next_request(requests, i);
	if (!quorum_is_waiting(lock->quorum, i))
		return deadline_never();
	if (lock->vote[i] != VOTE_FAILED)
		return end_of_round(requests, i);
	return mailbox_is_open(requests->mailbox, i) ? end_of_hope(requests, i)
						     : deadline_never();
}

struct deadline requests_next(const struct requests *requests)
{
	struct deadline wake = deadline_never();

	for (size_t i = 0; i < requests->lock->quorum->count; i++)
		if (requests->lock->vote[i] != VOTE_YES)
			wake = deadline_earlier(wake, next_of(requests, i));
	return wake;
}
