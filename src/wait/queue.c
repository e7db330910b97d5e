#include "wait/queue.h"

#include <stdlib.h>
#include <string.h>

#include "lock/attempt.h"
#include "base/log.h"
#include "lock/rights.h"
#include "lock/script.h"
#include "lock/slots.h"
#include "base/lease.h"
#include "lock/explain.h"
#include "lock/trust.h"

#define PARTIAL_LONGEST 500 /* ms */
#define PARTIAL_TIME 5 /* ms, and two round trips, to get the missing votes */
#define REPLICAS_APART 60000 /* ms, until replicas that fail do so anew */
#define FIRST_RENEWAL 100    /* ms: a command that ends sooner needs none */

/* --- from votes to a lock ----------------------------------------------- */

static size_t granted(const struct lock *lock)
{
	size_t count = 0;

	for (size_t i = 0; i < lock->ballot.quorum->count; i++)
		count += ballot_is_granted(&lock->ballot, i);
	return count;
}

/* It granted this attempt KEY, and its replicas do not have that. */
static bool is_behind(const struct ballot *ballot, size_t i)
{
	return ballot->vote[i] == VOTE_FAILED &&
	       ballot_is_unacknowledged(ballot, i);
}

static size_t count_behind(const struct ballot *ballot)
{
	size_t count = 0;

	for (size_t i = 0; i < ballot->quorum->count; i++)
		count += is_behind(ballot, i);
	return count;
}

/* The end of validity of the last vote that a quorum needs. */
static struct deadline quorum_validity(const struct queue *queue)
{
	const struct ballot *ballot = &queue->lock->ballot;
	struct deadline best = deadline_at(0);

	for (size_t i = 0; i < ballot->quorum->count; i++) {
		struct deadline valid = queue->requests.at[i].valid;
		size_t as_good = 0;

		for (size_t k = 0; k < ballot->quorum->count; k++)
			as_good += ballot->vote[k] == VOTE_YES &&
				   queue->requests.at[k].valid.at >= valid.at;
		if (ballot->vote[i] == VOTE_YES && valid.at > best.at &&
		    as_good >= quorum_size(ballot->quorum))
			best = valid;
	}
	return best;
}

/* The servers that were not needed get the lock, too, or lose our place. */
static void tidy(struct queue *queue)
{
	struct lock *lock = queue->lock;
	struct ballot *ballot = &lock->ballot;

	for (size_t i = 0; i < ballot->quorum->count; i++) {
		bool done = lock->wish.kind == KIND_NONE
				    ? !requests_may_queue(&queue->requests, i)
				    : ballot->vote[i] == VOTE_YES;

		if (done || lock->barred[i] || queue->requests.at[i].sent == 0)
			continue;
		if (lock->wish.kind == KIND_NONE)
			script_release(lock, i, 0);
		else
			script_put_back(lock, i);
		quorum_forget(ballot->quorum, i);
	}
}

/* A lease that a message granted is enough for a holder that renews it, if most
 * of it is left. If it is the whole ttl, the validity needed must be left, too. */
static bool is_enough(const struct queue *queue)
{
	const struct lock *lock = queue->lock;
	int64_t left = deadline_left(lock->grant.valid);

	if (!queue->requests.by_message)
		return left > lock->wish.validity_needed;
	return lock->wish.validity_needed > 0 &&
	       left > lease_unconfirmed(lock->grant.lease) &&
	       (lock->grant.lease < lock->wish.ttl ||
		left > lock->wish.validity_needed);
}

/* Other waiters to whom replicas fail, too, look like holders for a moment: that does not
 * end the outage. */
static void tell_outage(struct queue *queue)
{
	const struct argument *key = &queue->lock->names.key;
	int64_t before = queue->replicas_failed;

	if (ballot_lacks_replicas(&queue->lock->ballot)) {
		queue->replicas_failed = clock_ms();
		if (before > 0 &&
		    queue->replicas_failed - before < REPLICAS_APART)
			return;
	}
	log_notice("%.*s: still waiting: %s", (int)key->length, key->data,
		   queue->outage.text);
}

/* It is given back, and waited for again. If replicas lack it, that is an outage:
 * it is over when others can hold KEY. */
static enum lock_result miss(struct queue *queue, enum lock_result result)
{
	const struct ballot *ballot = &queue->lock->ballot;
	bool told = queue->outage.code != 0;

	if (result == LOCK_INTERRUPTED)
		return result;
	if (!ballot_lacks_replicas(ballot))
		return LOCK_AGAIN;
	explain_failure(ballot, &queue->outage);
	if (!queue->lacks_replicas && !told)
		tell_outage(queue);
	queue->lacks_replicas = true;
	return LOCK_AGAIN;
}

static enum lock_result win(struct queue *queue, int interrupt,
			    struct error *error)
{
	struct lock *lock = queue->lock;
	enum lock_result result = LOCK_OK;

	lock->ballot.quorum->mailbox = NULL; /* no vote is added from here on */
	if (lock->wish.kind == KIND_NONE) {
		tidy(queue);
		return LOCK_OK;
	}
	lock->grant.valid = quorum_validity(queue);
	lock->grant.started = lock->grant.acquired = clock_ms();
	lock->grant.renew = deadline_in(FIRST_RENEWAL);
	lock->grant.lease = lease_first(lock->wish.ttl);
	if (!queue->requests.by_message) {
		lock->grant.lease = lock->wish.ttl;
		lock->grant.started =
			lock->grant.valid.at - lease_validity(lock->wish.ttl);
		lock->grant.renew = deadline_at(lock->grant.started +
						lease_renewal(lock->wish.ttl));
	}
	result = attempt_raise(lock, interrupt, error);
	if (result != LOCK_OK)
		return miss(queue, result);
	tidy(queue);
	if (deadline_passed(lock->grant.valid))
		return LOCK_AGAIN;
	if (is_enough(queue))
		return LOCK_OK;
	result = attempt_confirm(lock, interrupt, error);
	return result == LOCK_OK ? result : miss(queue, result);
}

/* Whether the servers that refuse name one holder, and that is the one that we have
 * waited for so far: its release is on its way. But not for long. Perhaps they name somebody
 * who has as few votes as we, and thinks the same of us; or the release was lost. */
static bool is_still_held(const struct queue *queue)
{
	const struct ballot *ballot = &queue->lock->ballot;
	const char *holder = NULL;

	for (size_t i = 0; i < ballot->quorum->count; i++) {
		const char *named = ballot->token_prefix[i];

		if (ballot->vote[i] != VOTE_HELD)
			continue;
		if (strcmp(named, queue->before[i]) != 0 ||
		    (holder != NULL && strcmp(named, holder) != 0))
			return false;
		holder = named;
	}
	return holder != NULL && queue->partial_time < PARTIAL_LONGEST;
}

/* Others hold it on a quorum, and lack what we have. */
static void give_back(struct queue *queue)
{
	struct ballot *ballot = &queue->lock->ballot;

	for (size_t i = 0; i < ballot->quorum->count; i++)
		if (ballot_is_granted(ballot, i) || is_behind(ballot, i))
			requests_give_back(&queue->requests, i);
	queue->partial = 0;
}

static void begin_partial(struct queue *queue)
{
	queue->asked_again = false;
	queue->partial_time =
		PARTIAL_TIME + 2 * requests_farthest(&queue->requests);
	queue->partial = clock_ms() + queue->partial_time +
			 deadline_jitter(PARTIAL_TIME);
}

/* Asks the servers that have not granted it; later each time. One that we have given KEY back
 * to has no place of ours, and may have it for us now. If its owner is ours, it always has. */
static void ask_for_the_rest(struct queue *queue)
{
	const struct ballot *ballot = &queue->lock->ballot;

	queue->asked_again = true;
	queue->partial += queue->partial_time + deadline_jitter(PARTIAL_TIME);
	if (queue->partial_time < PARTIAL_LONGEST)
		queue->partial_time *= 2;
	for (size_t i = 0; i < ballot->quorum->count; i++)
		if (ballot->vote[i] == VOTE_HELD ||
		    (ballot->vote[i] == VOTE_PENDING &&
		     !quorum_is_waiting(ballot->quorum, i)))
			queue->requests.at[i].due = deadline_at(0);
	requests_ask_due(&queue->requests);
}

/* Until when the servers that have not answered may still make our votes a
 * quorum; passed if they are too few, or none. What they say may also free a vote of the
 * doubt that somebody else has its slot. */
static struct deadline end_of_silence(const struct queue *queue)
{
	const struct ballot *ballot = &queue->lock->ballot;
	size_t silent = 0;
	struct deadline end = deadline_never();

	for (size_t i = 0; i < ballot->quorum->count; i++) {
		struct deadline hope =
			deadline_later(requests_hope(&queue->requests, i),
				       requests_replicas(&queue->requests, i));

		if (deadline_passed(hope))
			continue;
		silent++;
		end = deadline_earlier(end, hope);
	}
	return silent == 0 || slots_most(ballot, true) + silent <
				       quorum_size(ballot->quorum)
		       ? deadline_at(0)
		       : end;
}

/* Votes for different slots, and too few for each. If they cannot be moved to one slot,
 * as others who wait leave none free, all of them keep only their votes for one, in the
 * order of slots_weigh(): what they give back goes to others, and the rest is a split
 * vote. */
static void unite(struct queue *queue)
{
	struct ballot *ballot = &queue->lock->ballot;
	int64_t slot = slots_target(ballot, queue->lock->grant.moves);

	queue->partial = 0;
	if (slot > 0) {
		requests_move(&queue->requests, slot);
		return;
	}
	for (size_t i = 0; i < ballot->quorum->count; i++)
		if (ballot->vote[i] == VOTE_ELSEWHERE &&
		    !quorum_is_waiting(ballot->quorum, i)) /* else later */
			requests_give_back(&queue->requests, i);
	begin_partial(queue);
	queue->asked_again = true;
}

/* Grants that are enough, but do not all count: a server that we have given KEY back to may
 * have it for us now. */
static void ask_where_given_back(struct queue *queue, struct deadline *wake)
{
	for (size_t i = 0; i < queue->lock->ballot.quorum->count; i++)
		if (queue->requests.at[i].left)
			queue->requests.at[i].due = deadline_at(0);
	requests_ask_due(&queue->requests);
	*wake = deadline_earlier(*wake, requests_next(&queue->requests));
}

/*
 * Whether the vote is split: there are some votes, but no quorum, and the servers
 * that have not answered yet cannot make it one. Then the other servers are asked
 * once more, and after the time that they need to answer:
 *  - if the missing votes are those of servers that have not been up for long
 *    enough, or if the last holder has not released the lock everywhere yet, we
 *    wait for these votes;
 *  - if a quorum of servers names one holder, our votes are a minority that the
 *    holder lacks (a server that has lost its data): they are given back;
 *  - otherwise others have the rest, and may wait for ours: a split vote.
 * A waiter that takes nothing has no votes that others lack.
 */
static bool is_split(struct queue *queue, struct deadline *wake)
{
	struct lock *lock = queue->lock;
	struct ballot *ballot = &lock->ballot;
	size_t quorum = quorum_size(ballot->quorum);
	size_t held = granted(lock);
	struct deadline silence = end_of_silence(queue);

	if (held + count_behind(ballot) == 0 ||
	    (slots_most(ballot, false) >= quorum && !slots_are_split(ballot)) ||
	    lock->wish.kind == KIND_NONE) {
		if (held >= quorum)
			ask_where_given_back(queue, wake);
		queue->partial = 0;
		memcpy(queue->before, ballot->token_prefix,
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
	if (ballot_count(ballot, VOTE_ELSEWHERE) > 0) {
		if (ballot_count(ballot, VOTE_HELD) == 0 ||
		    deadline_passed(deadline_at(queue->partial)))
			unite(queue);
		*wake = deadline_earlier(*wake,
					 requests_next(&queue->requests));
	} else if (deadline_passed(deadline_at(queue->partial))) {
		if (queue->asked_again && ballot_same_holder(ballot) >= quorum)
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
 * Until when to wait for what this server says of KEY, if the votes cannot be
 * relied on without it (trust.h).
 */
static struct deadline end_of_hearing(const struct queue *queue, size_t i)
{
	struct lock *lock = queue->lock;
	struct ballot *ballot = &lock->ballot;
	struct deadline end = requests_hope(&queue->requests, i);

	if (trust_needs_all(ballot))
		return deadline_at((ballot->report[i].asked > 0
					    ? ballot->report[i].asked
					    : queue->requests.listening) +
				   ballot->quorum->timeout);
	if (ballot->quorum->servers[i].conn.distance > 0)
		return end;
	end = silence_end(&lock->silence, ballot->quorum, i,
			  queue->requests.listening);
	if (deadline_passed(end))
		silence_note(&lock->silence, ballot->quorum, i);
	return end;
}

static bool is_heard(const struct queue *queue, struct deadline *wake)
{
	const struct ballot *ballot = &queue->lock->ballot;
	bool heard = true;

	if (trust_is_firm(ballot))
		return true;
	for (size_t i = 0; i < ballot->quorum->count; i++) {
		struct deadline end;

		if (ballot->vote[i] != VOTE_PENDING || ballot->report[i].is_new)
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
	struct ballot *ballot = &lock->ballot;

	*queue = (struct queue){
		.lock = lock,
		.listener = {&queue->requests, requests_opened, requests_deaf,
			     requests_message, requests_changed},
		.requests = {.lock = lock,
			     .busy = busy,
			     .mailbox = &queue->mailbox,
			     .redisson = names_redisson(&lock->names),
			     .began = clock_ms()},
	};
	mailbox_init(&queue->mailbox, ballot->quorum->servers,
		     ballot->quorum->count, ballot->quorum->timeout,
		     &queue->listener);
}

void queue_release(struct queue *queue)
{
	mailbox_release(&queue->mailbox);
	free((char *)queue->channel.data);
	free((char *)queue->requests.redisson.data);
}

bool queue_is_deaf(const struct queue *queue, const struct server **subscriber)
{
	const struct quorum *quorum = queue->lock->ballot.quorum;

	return mailbox_refused(&queue->mailbox, subscriber) >
	       quorum->count - quorum_size(quorum);
}

void queue_tell_deaf(const struct queue *queue, const struct server *subscriber)
{
	const struct argument *key = &queue->lock->names.key;
	const char *remedy = server_remedy(subscriber);

	log_notice("%.*s: no place in the queue, so asking again and "
		   "again: %s: %s%s%s",
		   (int)key->length, key->data, subscriber->url.name,
		   subscriber->conn.refusal.text, *remedy != '\0' ? ": " : "",
		   remedy);
}

/* Says once that so many servers answer, but cannot be subscribed to, that no quorum of
 * others is left. */
static void watch_ears(struct queue *queue)
{
	const struct quorum *quorum = queue->lock->ballot.quorum;
	const struct server *subscriber = NULL, *failed;
	size_t count = 0;

	for (size_t i = 0; i < quorum->count; i++) {
		if (!requests_are_unheard(&queue->requests, i))
			continue;
		count++;
		failed = mailbox_failure(&queue->mailbox, i);
		if (failed != NULL)
			subscriber = failed;
	}
	if (queue->deaf_told || subscriber == NULL ||
	    count <= quorum->count - quorum_size(quorum))
		return;
	queue_tell_deaf(queue, subscriber);
	queue->deaf_told = true;
}

/* A new token, a new channel, no vote. */
static void begin(struct queue *queue)
{
	struct lock *lock = queue->lock;
	struct ballot *ballot = &lock->ballot;
	struct argument last = queue->channel;

	attempt_begin(lock);
	ballot_open(ballot, queue->requests.busy);
	for (size_t i = 0; i < ballot->quorum->count; i++) {
		ballot->fence[i] = 0;
		queue->requests.at[i] = (struct contact){.place = -1};
	}
	memset(ballot->token_prefix, 0, sizeof(ballot->token_prefix));
	queue->requests.by_message = false;
	queue->partial = 0;
	queue->requests.listening = clock_ms();
	queue->channel = names_channel(&lock->names, lock->grant.hold,
				       lock->grant.token);
	ballot->quorum->mailbox = &queue->mailbox;
	mailbox_subscribe(&queue->mailbox, queue->channel);
	free((char *)last.data);
}

static bool is_cut_off(const struct lock *lock)
{
	const struct ballot *ballot = &lock->ballot;

	return ballot_count(ballot, VOTE_FAILED) >
	       ballot->quorum->count - quorum_size(ballot->quorum);
}

/* Servers that this attempt cannot ask again (requests_give_back) leave no quorum of the
 * others that can be reached. Nor do those that it would ask only after a while, if it has no
 * vote left: so it stands in the lines of too few. */
static bool is_barred_out(const struct queue *queue)
{
	const struct lock *lock = queue->lock;
	const struct ballot *ballot = &lock->ballot;
	bool none = granted(lock) == 0;
	size_t barred = 0, failed = 0;

	for (size_t i = 0; i < ballot->quorum->count; i++) {
		bool out =
			lock->barred[i] || (none && queue->requests.at[i].left);

		barred += out;
		failed += !out && ballot->vote[i] == VOTE_FAILED;
	}
	return barred > 0 &&
	       barred + failed >
		       ballot->quorum->count - quorum_size(ballot->quorum);
}

/* Servers whose grant does not count yet, and that have named others before: they have
 * not been restarted since, so those have let go of KEY. */
static size_t count_freed(const struct queue *queue)
{
	const struct ballot *ballot = &queue->lock->ballot;
	size_t freed = 0;

	for (size_t i = 0; i < ballot->quorum->count; i++)
		freed += ballot->vote[i] == VOTE_QUARANTINED &&
			 trust_is_new(ballot, i) &&
			 queue->requests.at[i].refused > 0 &&
			 !quorum_has_broken(ballot->quorum, i);
	return freed;
}

/* Says once that too few servers are left, until a quorum has answered again.
 * A new attempt knows nothing of the outage yet, so it is remembered. */
static void watch_outage(struct queue *queue)
{
	const struct lock *lock = queue->lock;
	const struct ballot *ballot = &lock->ballot;

	if ((queue->lacks_replicas ? 0 : granted(lock)) +
		    ballot_count(ballot, VOTE_HELD) >=
	    quorum_size(ballot->quorum)) {
		queue->outage.code = 0;
		queue->lacks_replicas = false;
	}
	if (!is_cut_off(lock) || queue->outage.code != 0)
		return;
	explain_failure(ballot, &queue->outage);
	tell_outage(queue);
}

/* Nobody is known to hold KEY, or to come first: what is missing are votes. */
static bool lacks_votes(const struct ballot *ballot)
{
	return ballot_count(ballot, VOTE_HELD) == 0 &&
	       ballot_count(ballot, VOTE_ELSEWHERE) == 0 &&
	       ballot_count(ballot, VOTE_FAILED) +
			       ballot_count(ballot, VOTE_QUARANTINED) >
		       ballot->quorum->count - quorum_size(ballot->quorum);
}

bool queue_lacks_quorum(const struct queue *queue, struct error *why)
{
	const struct lock *lock = queue->lock;

	if (is_cut_off(lock) || lacks_votes(&lock->ballot))
		explain_failure(&lock->ballot, why);
	else if (queue->outage.code != 0)
		*why = queue->outage;
	else
		return false;
	return true;
}

/* Whether as many have said who has KEY now as are needed, or nobody else will in time. */
static bool is_looked_up(const struct queue *queue, size_t needed)
{
	return requests_count_looks(&queue->requests) >= needed ||
	       is_cut_off(queue->lock) ||
	       deadline_passed(requests_end_of_look(&queue->requests));
}

/* All are waited for, as each tells our place. */
bool queue_look(struct queue *queue)
{
	const struct ballot *ballot = &queue->lock->ballot;

	if (queue->requests.look == 0)
		requests_look(&queue->requests);
	if (!is_looked_up(queue, ballot->quorum->count -
					 ballot_count(ballot, VOTE_FAILED)))
		return false;
	queue->requests.look = 0;
	return true;
}

/* A quorum is waited for; and if there is one for us, whether it may be believed. */
static bool is_over(const struct queue *queue, struct deadline until)
{
	const struct ballot *ballot = &queue->lock->ballot;

	if (!queue->is_ending)
		return deadline_passed(until);
	return is_looked_up(queue, ballot_has_quorum(ballot)
					   ? SIZE_MAX
					   : quorum_size(ballot->quorum));
}

static enum lock_result give_up(struct queue *queue, struct error *error)
{
	if (!queue->is_ending ||
	    requests_count_looks(&queue->requests) >=
		    quorum_size(queue->lock->ballot.quorum))
		return queue_lacks_quorum(queue, error) ? LOCK_ERROR
							: LOCK_BUSY;
	requests_blame_unseen(&queue->requests);
	explain_failure(&queue->lock->ballot, error);
	queue->requests.busy->outage = error->text;
	return LOCK_BUSY;
}

/* The replicas of a server that has granted it get the time of a round. */
static struct deadline end_of_wait(const struct queue *queue,
				   struct deadline until)
{
	if (queue->is_ending)
		until = requests_end_of_look(&queue->requests);
	for (size_t i = 0; i < queue->lock->ballot.quorum->count; i++)
		until = deadline_later(until,
				       requests_replicas(&queue->requests, i));
	return until;
}

static enum lock_result wait_for_votes(struct queue *queue, struct wait wait,
				       struct error *error)
{
	struct lock *lock = queue->lock;
	struct ballot *ballot = &lock->ballot;
	struct reply_handler handler = {&queue->requests, requests_reply,
					requests_have_news};
	const struct server *subscriber;

	for (;;) {
		struct deadline wake;
		struct wait now = {end_of_wait(queue, wait.until),
				   wait.interrupt};

		requests_drop_late(&queue->requests);
		requests_blame_silent(&queue->requests);
		if (ballot->has_run && !ballot->alias) {
			queue->requests.busy->has_run = true;
			return LOCK_BUSY;
		}
		if (ballot->alias || ballot_is_hopeless(ballot) ||
		    queue_is_deaf(queue, &subscriber)) {
			explain_failure(ballot, error);
			return LOCK_ERROR;
		}
		trust_weigh(ballot);
		attempt_note_busy(lock, count_freed(queue));
		wake = deadline_earlier(now.until, trust_next(ballot));
		if (ballot_has_quorum(ballot) && is_heard(queue, &wake))
			return win(queue, wait.interrupt, error);
		if (is_over(queue, now.until)) {
			if (queue->is_ending ||
			    queue_lacks_quorum(queue, error))
				return give_up(queue, error);
			queue->is_ending = true;
			requests_look(&queue->requests);
			continue;
		}
		watch_outage(queue);
		watch_ears(queue);
		if (is_barred_out(queue))
			return miss(queue, LOCK_AGAIN);
		requests_ask_due(&queue->requests);
		wake = deadline_earlier(wake, requests_next(&queue->requests));
		if (is_split(queue, &wake))
			return miss(queue, LOCK_AGAIN);
		if (queue->show != NULL && !queue->is_ending)
			wake = deadline_earlier(
				wake, queue->show(queue->context, queue));
		queue->requests.news = false;
		if (quorum_idle(ballot->quorum, wait_earlier(now, wake),
				&handler) == GATHER_INTERRUPTED)
			return LOCK_INTERRUPTED;
	}
}

/* If somebody will renew the lock: then it matters when. */
static void go_on_listening(struct queue *queue)
{
	struct lock *lock = queue->lock;

	if (lock->wish.kind != KIND_NONE && lock->wish.validity_needed > 0)
		listening_begin(&lock->listening, lock->ballot.quorum,
				&queue->mailbox, &queue->channel);
}

enum lock_result queue_wait(struct queue *queue, struct wait wait,
			    struct error *error)
{
	enum lock_result result;

	begin(queue);
	result = wait_for_votes(queue, wait, error);
	if (result == LOCK_AGAIN && queue->is_ending)
		result = LOCK_BUSY;
	queue->lock->ballot.quorum->mailbox = NULL;
	if (result == LOCK_OK)
		go_on_listening(queue);
	if (result == LOCK_ERROR)
		rights_explain(queue->lock, wait.interrupt, error);
	if (result != LOCK_OK) {
		attempt_take_back(queue->lock, true);
		requests_end(&queue->requests);
	}
	return result;
}
