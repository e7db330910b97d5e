#include "wait/requests.h"

#include <inttypes.h>
#include <string.h>

#include "lock/attempt.h"
#include "base/lease.h"
#include "base/log.h"
#include "base/number.h"
#include "lock/script.h"
#include "lock/slots.h"
#include "lock/trust.h"

#define ASK_AGAIN 10     /* ms between requests to a server, at least */
#define LOOK_NEW 100     /* ms: what was asked so lately is no old news */
#define PLACE_TIME 10    /* ms that each place in the queue waits longer */
#define FOREIGN_FIRST 50 /* ms between looks at another program's lock */
#define FOREIGN_LONGEST 500
#define DEAF_FAILURES 3  /* subscriptions, in a row */
#define HOPE_TIME 5      /* ms, and two round trips, until an answer is late */
#define MESSAGE_TIME 100 /* ms, and four, until a message is late (queue.h) */
#define OUTAGE_FIRST 50  /* ms between requests to a server that fails */
#define OUTAGE_LONGEST 1000

/* --- what is asked ------------------------------------------------------ */

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* If this request may move what the server has granted, or grants before it comes,
 * only its own answer tells the slot from here on. */
static void note_moves(struct requests *requests, size_t i)
{
	struct contact *at = &requests->at[i];

	if (at->moves == requests->lock->grant.moves)
		return;
	at->moves = requests->lock->grant.moves;
	at->oldest = at->sent;
}

static void ask(struct requests *requests, size_t i)
{
	struct ballot *ballot = &requests->lock->ballot;
	struct contact *at = &requests->at[i];
	struct server *server = &ballot->quorum->servers[i];
	int64_t now = clock_ms();
	struct refusal before = server->conn.refusal;
	bool failed = ballot->vote[i] == VOTE_FAILED;

	at->sent++;
	at->left = false;
	at->sent_at[at->sent % REQUESTS_RECENT] = now;
	if (at->oldest + REQUESTS_RECENT <= at->sent)
		at->oldest = at->sent - REQUESTS_RECENT + 1;
	at->due = deadline_at(now + lease_heartbeat(requests->lock->wish.ttl));
	ballot->clock = clock_wall_ms();
	note_moves(requests, i);
	at->asks_replicas = at->granted;
	script_queue(requests->lock, i, at->sent, now - requests->began,
		     at->granted ? ASK_REPLICAS : ASK_PLAINLY);
	if (failed && server->conn.refusal.text[0] == '\0')
		server->conn.refusal = before; /* until it answers */
}

static int64_t last_sent(const struct requests *requests, size_t i)
{
	const struct contact *at = &requests->at[i];

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

/* It cannot be subscribed to: it is asked without. */
static bool is_deaf(const struct requests *requests, size_t i)
{
	return mailbox_failures(requests->mailbox, i) >= DEAF_FAILURES;
}

/* A server that we listen to may be asked; one request at a time. */
static bool may_ask(const struct requests *requests, size_t i)
{
	return (mailbox_is_open(requests->mailbox, i) ||
		is_deaf(requests, i)) &&
	       !requests->lock->barred[i] &&
	       !quorum_is_waiting(requests->lock->ballot.quorum, i);
}

static struct deadline end_of_round(const struct requests *requests, size_t i)
{
	const struct contact *at = &requests->at[i];
	int64_t began = last_sent(requests, i);

	if (at->giving_back && at->gave_back > began)
		began = at->gave_back;
	return deadline_at(began + requests->lock->ballot.quorum->timeout);
}

/* When a connection without an answer is taken for dead. */
static struct deadline end_of_hope(const struct requests *requests, size_t i)
{
	return deadline_at(last_sent(requests, i) +
			   requests->lock->ballot.quorum->timeout +
			   2 * lease_heartbeat(requests->lock->wish.ttl));
}

/* If a server confirms our subscription but does not answer for long, its
 * connection for requests has died silently. What is still on it is for our
 * token only. */
static void abandon_dead(struct requests *requests, size_t i)
{
	if (!quorum_is_waiting(requests->lock->ballot.quorum, i) ||
	    !mailbox_is_open(requests->mailbox, i) ||
	    !deadline_passed(end_of_hope(requests, i)))
		return;
	quorum_abandon(requests->lock->ballot.quorum, i);
	if (requests->at[i].giving_back)
		requests->lock->barred[i] = true;
	requests->at[i].giving_back = false;
}

void requests_ask_due(struct requests *requests)
{
	struct ballot *ballot = &requests->lock->ballot;

	for (size_t i = 0; i < ballot->quorum->count; i++)
		abandon_dead(requests, i);
	for (size_t i = 0; i < ballot->quorum->count; i++)
		if (ballot->vote[i] != VOTE_YES && may_ask(requests, i) &&
		    deadline_passed(next_request(requests, i)))
			ask(requests, i);
}

/* --- a look ------------------------------------------------------------- */

static bool has_looked(const struct requests *requests, size_t i)
{
	const struct ballot *ballot = &requests->lock->ballot;

	return ballot->vote[i] == VOTE_YES ||
	       (last_sent(requests, i) >= requests->look &&
		!quorum_is_waiting(ballot->quorum, i));
}

/* A server that we have given KEY back to has its own time. */
void requests_look(struct requests *requests)
{
	requests->look = clock_ms() - LOOK_NEW;
	for (size_t i = 0; i < requests->lock->ballot.quorum->count; i++)
		if (!has_looked(requests, i) && !requests->at[i].left)
			requests->at[i].due = deadline_at(0);
}

struct deadline requests_end_of_look(const struct requests *requests)
{
	return deadline_at(requests->look + LOOK_NEW + ASK_AGAIN +
			   requests->lock->ballot.quorum->timeout);
}

size_t requests_count_looks(const struct requests *requests)
{
	const struct ballot *ballot = &requests->lock->ballot;
	size_t count = 0;

	for (size_t i = 0; i < ballot->quorum->count; i++)
		count += ballot->vote[i] != VOTE_FAILED &&
			 has_looked(requests, i);
	return count;
}

void requests_blame_unseen(struct requests *requests)
{
	struct ballot *ballot = &requests->lock->ballot;

	for (size_t i = 0; i < ballot->quorum->count; i++) {
		struct server *server = &ballot->quorum->servers[i];
		const struct server *subscriber =
			mailbox_failure(requests->mailbox, i);

		if (ballot->vote[i] == VOTE_FAILED || has_looked(requests, i))
			continue;
		if (subscriber != NULL)
			server->conn.refusal = subscriber->conn.refusal;
		else
			server_blame_silence(
				server, clock_ms() - requests->look - LOOK_NEW);
		ballot->vote[i] = VOTE_FAILED;
	}
}

/* --- what is heard ------------------------------------------------------ */

/* When to ask a server again that has refused. */
static void plan_next(struct requests *requests, size_t i,
		      const struct busy *seen)
{
	struct contact *at = &requests->at[i];
	bool foreign = seen->left != -2 && !seen->has_description;
	int64_t after = -1;

	if (seen->left >= 0)
		after = seen->left + PLACE_TIME * (at->place + 1);
	at->looks = foreign && at->place == 0;
	if (at->looks && seen->is_hash)
		mailbox_listen_also(requests->mailbox, i, requests->redisson);
	if (at->looks || is_deaf(requests, i)) {
		/* its holder will tell nobody: the head looks, for all; or we do
		 * not hear it */
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
	requests->at[i].granted = false;
	strlcpy(requests->lock->ballot.token_prefix[i], reply->value[6].text,
		TOKEN_PREFIX_SIZE);
	plan_next(requests, i, seen);
}

/* A place that a server has told, and whose release it has not answered. */
static bool may_be_left(const struct requests *requests, size_t i)
{
	const struct quorum *quorum = requests->lock->ballot.quorum;

	return requests->at[i].place >= 0 &&
	       (quorum_is_waiting(quorum, i) ||
		!server_is_up(&quorum->servers[i]));
}

void requests_end(struct requests *requests)
{
	const struct lock *lock = requests->lock;
	unsigned n = requests->attempts % REQUESTS_EARLIER;
	bool left = false;

	for (size_t i = 0; i < lock->ballot.quorum->count; i++)
		left |= may_be_left(requests, i);
	if (!left || lock->wish.owner != NULL) /* who has one token for all */
		return;
	requests->attempts++;
	strlcpy(requests->earlier[n].token, lock->grant.token,
		sizeof(requests->earlier[n].token));
	strlcpy(requests->earlier[n].hold, lock->grant.hold,
		sizeof(requests->earlier[n].hold));
	requests->earlier[n].told = 0;
}

/* Whether its refusal names this token as that of the holder, or of one of them. */
static bool names(const struct ballot *ballot, size_t i, const char *token)
{
	const struct report *report = &ballot->report[i];
	size_t length = TOKEN_PREFIX_SIZE - 1;

	if (token[0] == '\0')
		return false;
	if (strncmp(ballot->token_prefix[i], token, length) == 0)
		return true;
	for (size_t n = 0; n < report->tenant_count; n++)
		if (strncmp(report->tenants[n].token, token, length) == 0)
			return true;
	return false;
}

static void release_earlier(struct requests *requests, size_t i, size_t n)
{
	struct lock *lock = requests->lock;
	struct grant now = lock->grant;

	log_step("%s: held by an earlier attempt of ours, given back",
		 lock->ballot.quorum->servers[i].url.name);
	requests->earlier[n].told |= UINT32_C(1) << i;
	strlcpy(lock->grant.token, requests->earlier[n].token,
		sizeof(lock->grant.token));
	strlcpy(lock->grant.hold, requests->earlier[n].hold,
		sizeof(lock->grant.hold));
	script_release(lock, i, 0);
	quorum_forget(lock->ballot.quorum, i);
	lock->grant = now;
	requests->at[i].due = deadline_at(0);
}

static bool is_held_by_us(struct requests *requests, size_t i)
{
	bool found = false;

	for (size_t n = 0; n < REQUESTS_EARLIER; n++) {
		if ((requests->earlier[n].told & UINT32_C(1) << i) != 0 ||
		    !names(&requests->lock->ballot, i,
			   requests->earlier[n].token))
			continue;
		release_earlier(requests, i, n);
		found = true;
	}
	return found;
}

/* Whether somebody who is granted KEY there may be an earlier attempt of ours. */
static bool may_hold(const struct requests *requests, size_t i)
{
	for (size_t n = 0; n < REQUESTS_EARLIER; n++)
		if (requests->earlier[n].token[0] != '\0' &&
		    (requests->earlier[n].told & UINT32_C(1) << i) == 0)
			return true;
	return false;
}

static void try_later(struct contact *at)
{
	at->pause = at->pause == 0 ? OUTAGE_FIRST
				   : least(2 * at->pause, OUTAGE_LONGEST);
	at->due = deadline_in(at->pause);
}

/* A vote for a slot that we are leaving is none: the server is asked to move it, as soon
 * as it can be asked. */
static void leave_slot(struct requests *requests, size_t i)
{
	struct ballot *ballot = &requests->lock->ballot;
	const struct grant *grant = &requests->lock->grant;
	struct contact *at = &requests->at[i];

	if (at->moves == grant->moves || !ballot_is_granted(ballot, i) ||
	    ballot->slots[i].own == grant->slot)
		return;
	ballot->vote[i] = VOTE_PENDING;
	at->due = deadline_at(0);
}

void requests_move(struct requests *requests, int64_t slot)
{
	struct grant *grant = &requests->lock->grant;

	log_step("votes for different slots, moved to slot %" PRId64, slot);
	grant->slot = slot;
	grant->moves++;
	for (size_t i = 0; i < requests->lock->ballot.quorum->count; i++)
		leave_slot(requests, i);
	requests_ask_due(requests);
}

void requests_give_back(struct requests *requests, size_t i)
{
	struct ballot *ballot = &requests->lock->ballot;
	struct contact *at = &requests->at[i];

	log_step("%s: others hold it elsewhere, given back",
		 ballot->quorum->servers[i].url.name);
	/* one answer of two would not tell which it is */
	requests->lock->barred[i] = quorum_is_waiting(ballot->quorum, i);
	script_release(requests->lock, i, 0);
	ballot->vote[i] = VOTE_PENDING;
	at->giving_back = at->left = true;
	at->gave_back = clock_ms();
	at->granted = false;
	at->oldest = at->sent + 1;
	at->due = deadline_in(2 * lease_heartbeat(requests->lock->wish.ttl));
}

/* A release that was sent twice may be executed late: after a later request it
 * would take back the grant of that one. */
static void given_back(struct requests *requests, size_t i,
		       const struct reply *reply)
{
	requests->at[i].giving_back = false;
	if (reply == NULL ||
	    quorum_has_broken(requests->lock->ballot.quorum, i))
		requests->lock->barred[i] = true;
}

/* Whether a message has answered the request before this refusal of it; or, for a
 * waiter that takes nothing, whether KEY had been free before it. */
static bool is_overtaken(const struct requests *requests, size_t i)
{
	struct ballot *ballot = &requests->lock->ballot;
	const struct contact *at = &requests->at[i];

	return ballot_is_granted(ballot, i) &&
	       (at->oldest == at->sent + 1 ||
		requests->lock->wish.kind == KIND_NONE) &&
	       !deadline_passed(at->valid) &&
	       !quorum_has_broken(ballot->quorum, i);
}

static bool needs_replicas(const struct lock *lock)
{
	return lock->ballot.quorum->replicas > 0 &&
	       lock->wish.kind != KIND_NONE;
}

/* It counts when replicas have it: the next request asks them. */
static void ask_replicas(struct requests *requests, size_t i, int64_t fence)
{
	struct contact *at = &requests->at[i];

	requests->lock->ballot.vote[i] = VOTE_PENDING;
	requests->lock->ballot.fence[i] = fence;
	at->granted = true;
	at->due = deadline_at(0);
}

void requests_reply(void *context, size_t i, const struct reply *reply)
{
	struct requests *requests = context;
	struct lock *lock = requests->lock;
	struct ballot *ballot = &lock->ballot;
	struct contact *at = &requests->at[i];
	struct busy seen = {.held = -1, .place = -1};
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
		ballot->vote[i] = VOTE_PENDING;
		at->due = deadline_at(0);
		return;
	}
	attempt_read(lock, i, reply, &seen);
	if (reply != NULL && at->unheard == 0 && is_deaf(requests, i))
		at->unheard = mailbox_failures(requests->mailbox, i);
	if (seen.has_reply)
		at->place = seen.place;
	if (reply == NULL || ballot->vote[i] == VOTE_FAILED) {
		try_later(at);
		return;
	}
	if (ballot->has_run)
		return;
	if (overtaken && ballot->vote[i] == VOTE_HELD) {
		trust_hear_overtaken(ballot, i);
		attempt_count(lock, i, ballot->fence[i]);
		return;
	}
	if (ballot->vote[i] == VOTE_HELD) {
		take_refusal(requests, i, reply, &seen);
		if (is_held_by_us(requests, i))
			return;
		if (seen.has_description || !requests->busy->has_description ||
		    requests->busy->at < requests->look)
			*requests->busy = seen;
		return;
	}
	if (needs_replicas(lock) && !at->asks_replicas) {
		ask_replicas(requests, i, ballot->fence[i]);
		return;
	}
	at->oldest = at->sent + 1;
	at->valid = lock_validity(lock, sent_at);
	at->pause = 0;
	leave_slot(requests, i);
}

void requests_opened(void *context, size_t i)
{
	struct requests *requests = context;
	struct quorum *quorum = requests->lock->ballot.quorum;

	requests->news = true;
	/* it listens, but leaves an old request without an answer: a connection
	 * that nobody has closed */
	if (quorum_is_waiting(quorum, i) &&
	    clock_ms() - last_sent(requests, i) > quorum->timeout)
		quorum_abandon(quorum, i);
	requests->at[i].unheard = 0;
	requests->at[i].due = deadline_at(0);
}

/* It may have been away at the first failures; not since it has answered. */
bool requests_are_unheard(const struct requests *requests, size_t i)
{
	unsigned unheard = requests->at[i].unheard;

	return unheard > 0 &&
	       mailbox_failures(requests->mailbox, i) > unheard + 1;
}

/* Another program may have given KEY back. */
void requests_changed(void *context, size_t i)
{
	struct requests *requests = context;

	if (!requests->at[i].looks)
		return;
	requests->news = true;
	requests->at[i].due = deadline_at(0);
}

/* The waiting loop must check whether enough subscriptions are left. */
void requests_deaf(void *context, size_t i)
{
	(void)i;
	((struct requests *)context)->news = true;
}

/* --- messages ----------------------------------------------------------- */

/*
 * What a server publishes to a waiter (settle.lua): "request fence lease hold
 * age slot ttl". It is the late answer to the waiter's request of that number. Request 0
 * says that KEY ends in lease ms, sooner than an earlier answer said.
 *
 * Anybody who may publish can write a message: only its form is checked here.
 */
struct message {
	int64_t request, fence; /* 0 to FENCE_LARGEST */
	int64_t lease;          /* ms, as large */
	int64_t age;            /* ms, of KEY's record; 0 if it is missing */
	int64_t slot;           /* of a permit; 0: none */
	int64_t ttl;            /* ms, of holders of other slots; 0: none */
	char hold[TOKEN_SIZE + 1];
};

static bool read_number(const char **text, int64_t *number)
{
	if (number_read(text, 0, FENCE_LARGEST, number) < 0)
		return false;
	if (**text != ' ')
		return **text == '\0';
	++*text;
	return true;
}

/* False if text is not of this form; *message is then undefined. */
static bool read_message(struct message *message, const char *text,
			 size_t length)
{
	char copy[128], *hold;
	const char *at = copy;

	if (length >= sizeof(copy))
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	message->age = message->slot = message->ttl = 0;
	if (!read_number(&at, &message->request) ||
	    !read_number(&at, &message->fence) ||
	    !read_number(&at, &message->lease))
		return false;
	hold = copy + (at - copy);
	at = hold + strcspn(hold, " ");
	if (*at == ' ') {
		hold[at++ - hold] = '\0';
		if (!read_number(&at, &message->age) ||
		    (*at != '\0' && !read_number(&at, &message->slot)) ||
		    (*at != '\0' && !read_number(&at, &message->ttl)) ||
		    *at != '\0')
			return false;
	}
	return strlcpy(message->hold, hold, sizeof(message->hold)) <
	       sizeof(message->hold);
}

/* Whether it answers a request that has not been answered since. To a waiter that
 * takes nothing it is news, however late, that KEY was free. */
static bool is_current(const struct requests *requests, size_t i,
		       const struct message *message)
{
	const struct contact *at = &requests->at[i];
	const struct lock *lock = requests->lock;
	uint64_t n = (uint64_t)message->request;

	bool unanswered = lock->wish.kind == KIND_NONE
				  ? n + REQUESTS_RECENT > at->sent
				  : n >= at->oldest;

	return unanswered && n <= at->sent && message->lease > 0 &&
	       message->lease <= lock->wish.ttl &&
	       (message->fence == 0) == (lock->wish.kind == KIND_NONE) &&
	       (message->slot > 0) == (lock->wish.kind == KIND_PERMITS) &&
	       message->slot <= lock->wish.permits &&
	       strcmp(message->hold, lock->grant.hold) == 0;
}

/* Whether the server has counted as much time from the request to the grant as we have
 * to the message, but for the ways of both. The first request may have had to connect. */
static bool clocks_agree(const struct requests *requests, size_t i,
			 const struct message *message, int64_t sent_at)
{
	const struct lock *lock = requests->lock;
	const struct quorum *quorum = lock->ballot.quorum;
	int64_t counted = message->lease - lease_first(lock->wish.ttl);
	int64_t late = clock_ms() - sent_at - counted;
	int64_t ways = 4 * quorum->servers[i].conn.distance;

	return late >= -lease_drift(message->lease) &&
	       late <= least(MESSAGE_TIME + ways, quorum->timeout);
}

/*
 * When it ends. The server says how long after the request came, which was not
 * before we sent it. If its clock and ours do not agree about that time, the grant
 * was made after we sent the request, and nothing else is known.
 */
static struct deadline end_of_grant(const struct requests *requests, size_t i,
				    const struct message *message)
{
	const struct lock *lock = requests->lock;
	uint64_t n = (uint64_t)message->request;
	int64_t sent_at = requests->at[i].sent_at[n % REQUESTS_RECENT];
	int64_t first = lease_first(lock->wish.ttl), lease = message->lease;

	if (lock->wish.kind == KIND_NONE)
		return deadline_at(sent_at + lease_validity(lease));
	if (!clocks_agree(requests, i, message, sent_at))
		lease = least(lease, first);
	return deadline_earlier(deadline_at(sent_at + lease_validity(lease)),
				deadline_in(lease_validity(first)));
}

static void take_grant(struct requests *requests, size_t i,
		       const struct message *message)
{
	struct contact *at = &requests->at[i];
	uint64_t n = (uint64_t)message->request;
	struct deadline valid = end_of_grant(requests, i, message);

	if (at->oldest <= n)
		at->oldest = n + 1;
	if (requests->lock->ballot.vote[i] == VOTE_YES)
		return;
	if (deadline_passed(
		    valid)) { /* KEY is ours: the answer is a new lease */
		at->due = deadline_at(0);
		return;
	}
	at->pause = 0;
	slots_hear(&requests->lock->ballot, i, message->slot, "");
	trust_hear(&requests->lock->ballot, i,
		   requests->lock->wish.kind != KIND_NONE, message->age, NULL);
	trust_learn(&requests->lock->ballot, message->ttl);
	if (needs_replicas(requests->lock)) {
		ask_replicas(requests, i, message->fence);
		return;
	}
	at->valid = valid;
	requests->by_message = true;
	attempt_count(requests->lock, i, message->fence);
	/* no vote yet: it must not end before it is one */
	if (requests->lock->ballot.vote[i] == VOTE_QUARANTINED)
		at->due = deadline_earlier(
			at->due, deadline_in(deadline_left(valid) * 2 / 3));
	leave_slot(requests, i);
}

void requests_message(void *context, size_t i, const char *text, size_t length)
{
	struct requests *requests = context;
	struct message message;

	requests->news = true;
	if (!read_message(&message, text, length))
		return;
	if (message.request == 0) /* KEY ends sooner than we were told */
		requests->at[i].due = deadline_earlier(
			requests->at[i].due,
			may_hold(requests, i)
				? deadline_at(0)
				: deadline_in(message.lease + PLACE_TIME));
	else if (is_current(requests, i, &message))
		take_grant(requests, i, &message);
	else
		log_step("%s: a stale message, passed over",
			 requests->lock->ballot.quorum->servers[i].url.name);
}

bool requests_may_queue(const struct requests *requests, size_t i)
{
	const struct contact *at = &requests->at[i];

	return at->sent > 0 &&
	       (requests->lock->ballot.vote[i] != VOTE_YES ||
		at->oldest <= at->sent ||
		quorum_is_waiting(requests->lock->ballot.quorum, i));
}

/* A subscription, which may need a connection first, and then a request take some
 * round trips; an answer takes one. Twice that is late. */
struct deadline requests_hope(const struct requests *requests, size_t i)
{
	const struct lock *lock = requests->lock;
	const struct ballot *ballot = &lock->ballot;
	const struct contact *at = &requests->at[i];
	int64_t distance = ballot->quorum->servers[i].conn.distance;
	int64_t late = least(HOPE_TIME + 2 * distance, ballot->quorum->timeout);

	if (ballot->vote[i] != VOTE_PENDING || lock->barred[i] || distance == 0)
		return deadline_at(0);
	if (at->sent == 0)
		return deadline_at(requests->listening + 3 * late);
	if (at->giving_back || !quorum_is_waiting(ballot->quorum, i))
		return deadline_at(0);
	return deadline_at(last_sent(requests, i) + late);
}

struct deadline requests_replicas(const struct requests *requests, size_t i)
{
	const struct ballot *ballot = &requests->lock->ballot;

	if (ballot->vote[i] != VOTE_PENDING || !requests->at[i].granted)
		return deadline_at(0);
	if (quorum_is_waiting(ballot->quorum, i))
		return end_of_round(requests, i);
	return may_ask(requests, i) ? deadline_in(ballot->quorum->timeout)
				    : deadline_at(0);
}

int64_t requests_farthest(const struct requests *requests)
{
	const struct ballot *ballot = &requests->lock->ballot;
	int64_t farthest = 0;

	for (size_t i = 0; i < ballot->quorum->count; i++)
		if (ballot->vote[i] != VOTE_PENDING &&
		    ballot->vote[i] != VOTE_FAILED &&
		    ballot->quorum->servers[i].conn.distance > farthest)
			farthest = ballot->quorum->servers[i].conn.distance;
	return least(farthest, ballot->quorum->timeout);
}

bool requests_have_news(void *context)
{
	return ((struct requests *)context)->news;
}

/* A grant whose time is over is no vote. */
void requests_drop_late(struct requests *requests)
{
	struct ballot *ballot = &requests->lock->ballot;

	for (size_t i = 0; i < ballot->quorum->count; i++) {
		if (!ballot_is_granted(ballot, i) ||
		    !deadline_passed(requests->at[i].valid))
			continue;
		ballot->vote[i] = VOTE_PENDING;
		requests->at[i].due = deadline_at(0);
	}
}

/* --- servers that are silent ------------------------------------------------- */

/* A server has failed if it has not answered in the time of a round, or cannot be
 * subscribed to. */
void requests_blame_silent(struct requests *requests)
{
	struct ballot *ballot = &requests->lock->ballot;
	struct quorum *quorum = ballot->quorum;

	for (size_t i = 0; i < quorum->count; i++) {
		struct server *server = &quorum->servers[i];
		const struct server *subscriber =
			mailbox_failure(requests->mailbox, i);

		if (quorum_is_waiting(quorum, i)) {
			if (ballot->vote[i] == VOTE_YES ||
			    !deadline_passed(end_of_round(requests, i)))
				continue;
			server_blame_silence(
				server, clock_ms() - last_sent(requests, i));
			ballot->vote[i] = VOTE_FAILED;
		} else if (subscriber != NULL &&
			   ballot->vote[i] == VOTE_PENDING) {
			server->conn.refusal = subscriber->conn.refusal;
			ballot->vote[i] = VOTE_FAILED;
		}
	}
}

/* When there is something to do for a server that has not granted it. */
static struct deadline next_of(const struct requests *requests, size_t i)
{
	const struct lock *lock = requests->lock;

	if (may_ask(requests, i))
		return next_request(requests, i);
	if (!quorum_is_waiting(lock->ballot.quorum, i))
		return deadline_never();
	if (lock->ballot.vote[i] != VOTE_FAILED)
		return end_of_round(requests, i);
	return mailbox_is_open(requests->mailbox, i) ? end_of_hope(requests, i)
						     : deadline_never();
}

struct deadline requests_next(const struct requests *requests)
{
	struct deadline wake = deadline_never();

	for (size_t i = 0; i < requests->lock->ballot.quorum->count; i++)
		if (requests->lock->ballot.vote[i] != VOTE_YES)
			wake = deadline_earlier(wake, next_of(requests, i));
	return wake;
}
