#include "lock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "duration.h"
#include "log.h"
#include "scripts.h" /* made from lua/ */

#define FENCE_LARGEST (INT64_C(1) << 53)

struct script {
	const char *text;
	size_t length;
};

#define SCRIPT(text) (struct script){text, sizeof(text) - 1}

int64_t lock_drift(int64_t ttl)
{
	return ttl / 100 + 2;
}

/* "{KEY}:redlock": in KEY's slot; a KEY with a hash tag is its own prefix. */
static struct argument record_name(struct argument key)
{
	const char *open = memchr(key.data, '{', key.length);
	const char *shut = open == NULL ? NULL :
		memchr(open + 1, '}', (size_t)(key.data + key.length - open - 1));
	bool tagged = shut != NULL && shut > open + 1;
	struct buffer name = {0};

	buffer_append(&name, "{", tagged ? 0 : 1);
	buffer_append(&name, key.data, key.length);
	buffer_append(&name, "}", tagged ? 0 : 1);
	buffer_print(&name, ":redlock");
	return (struct argument){name.data, name.length};
}

void lock_init(struct lock *lock, struct quorum *quorum, const char *key,
	       int64_t ttl, int64_t quarantine)
{
	*lock = (struct lock){
		.quorum = quorum, .key = {key, strlen(key)}, .ttl = ttl,
		.quarantine = quarantine,
	};
	lock->record = record_name(lock->key);
}

void lock_release_memory(struct lock *lock)
{
	free((char *)lock->record.data);
	buffer_release(&lock->description);
	*lock = (struct lock){0};
}

/* --- asking ------------------------------------------------------------- */

/* A script with its two keys, the server's database, the token, and more. */
static void ask(struct lock *lock, size_t i, struct script script, bool sticky,
		const char *const *more, size_t count)
{
	char db[12];
	struct argument arguments[12] = {
		{"EVAL", 4}, {script.text, script.length}, {"2", 1},
		lock->key, lock->record,
		{db, 0}, {lock->token, strlen(lock->token)},
	};

	arguments[5].length = (size_t)snprintf(
		db, sizeof(db), "%" PRIu32, lock->quorum->servers[i].url.db);
	for (size_t k = 0; k < count; k++)
		arguments[7 + k] = (struct argument){more[k], strlen(more[k])};
	quorum_ask(lock->quorum, i, sticky, arguments, 7 + count);
}

static const char *number(char text[24], int64_t value)
{
	snprintf(text, 24, "%" PRId64, value);
	return text;
}

static void ask_acquire(struct lock *lock, size_t i, const char *description,
			int64_t kept_fence)
{
	char ttl[24], clock[24], kept[24];

	ask(lock, i, SCRIPT(acquire_lua), true, (const char *[]){
		    number(ttl, lock->ttl), number(clock, clock_wall_ms()),
		    description, number(kept, kept_fence)}, 4);
}

static void ask_extend(struct lock *lock, size_t i)
{
	char ttl[24];

	ask(lock, i, SCRIPT(extend_lua), false,
	    (const char *[]){number(ttl, lock->ttl)}, 1);
}

static void ask_release(struct lock *lock, size_t i)
{
	/* an acquire that has not been sent is better not sent at all */
	server_withdraw(&lock->quorum->servers[i]);
	ask(lock, i, SCRIPT(release_lua), false, NULL, 0);
}

static void ask_raise(struct lock *lock, size_t i)
{
	char fence[24];

	ask(lock, i, SCRIPT(raise_lua), false,
	    (const char *[]){number(fence, lock->fence)}, 1);
}

/* --- counting ----------------------------------------------------------- */

static size_t count_votes(const struct lock *lock, enum vote vote)
{
	size_t count = 0;

	for (size_t i = 0; i < lock->quorum->count; i++)
		count += lock->vote[i] == vote;
	return count;
}

static void new_round(struct lock *lock)
{
	quorum_round(lock->quorum);
	for (size_t i = 0; i < lock->quorum->count; i++)
		lock->vote[i] = VOTE_PENDING;
}

static bool has_quorum(const struct lock *lock)
{
	return count_votes(lock, VOTE_YES) >= quorum_size(lock->quorum);
}

/* Whether the votes that are still out could make a quorum. */
static bool can_reach_quorum(const struct lock *lock)
{
	return count_votes(lock, VOTE_YES) + count_votes(lock, VOTE_PENDING) >=
	       quorum_size(lock->quorum);
}

static bool is_decided(void *context)
{
	const struct lock *lock = context;

	return has_quorum(lock) || !can_reach_quorum(lock) || lock->alias;
}

/* The first number of a script's answer, from least to most; else failed. */
static bool read_answer(struct lock *lock, size_t i, const struct reply *reply,
			int64_t least, int64_t *answer)
{
	struct server *server = &lock->quorum->servers[i];

	lock->vote[i] = VOTE_FAILED;
	if (reply == NULL || reply->failure != NULL) {
		log_step("%s: %s", server->url.name, server->why);
		return false;
	}
	if (reply->count < 1 || reply->value[0].text != NULL ||
	    reply->value[0].number < least || reply->value[0].number > 1) {
		snprintf(server->why, sizeof(server->why),
			 "an answer that makes no sense");
		server->why_code = EXIT_UNREACHED;
		server->why_passing = true;
		return false;
	}
	*answer = reply->value[0].number;
	return true;
}

/* --- acquire ------------------------------------------------------------ */

struct attempt {
	struct lock *lock;
	struct busy *busy;
};

static bool is_quarantined(const struct lock *lock, size_t i)
{
	const struct identity *identity = &lock->quorum->servers[i].identity;

	return lock->quarantine > 0 && !identity->durable &&
	       clock_ms() - identity->started < lock->quarantine;
}

/* Two of the URLs are one server: a quorum of aliases is none. */
static bool is_alias(struct lock *lock, size_t i)
{
	struct server *server = &lock->quorum->servers[i];

	for (size_t k = 0; k < lock->quorum->count; k++) {
		struct server *other = &lock->quorum->servers[k];

		if (k == i || !server->identity.known ||
		    !other->identity.known ||
		    memcmp(server->identity.run_id, other->identity.run_id,
			   sizeof(server->identity.run_id)) != 0)
			continue;
		lock->alias = true;
		error_set(&lock->alias_error, EXIT_CONFIG,
			  "%s and %s are one server: name each only once",
			  other->url.name, server->url.name);
		return true;
	}
	return false;
}

/* Keeps what the most telling refusal says: one with a description, and of
 * those the one with the longest lease. */
static void note_busy(struct busy *busy, const struct reply *reply)
{
	struct busy seen = {.held = -1, .left = -1};

	if (reply->count < 4 || reply->value[3].text == NULL)
		return;
	seen.left = reply->value[1].number;
	seen.held = reply->value[2].number;
	seen.known = reply->value[3].length > 0;
	if (seen.left < -1 || seen.held < -1)
		return;
	if (busy->left != -2 &&
	    (busy->known > seen.known ||
	     (busy->known == seen.known && busy->left >= seen.left)))
		return;
	if (seen.known)
		record_parse(&seen.holder, reply->value[3].text,
			     reply->value[3].length);
	*busy = seen;
}

static void on_acquire(void *context, size_t i, const struct reply *reply)
{
	struct attempt *attempt = context;
	struct lock *lock = attempt->lock;
	const char *name = lock->quorum->servers[i].url.name;
	int64_t answer = 0;

	if (!read_answer(lock, i, reply, 0, &answer) || is_alias(lock, i))
		return;
	if (answer == 0) {
		lock->vote[i] = VOTE_HELD;
		note_busy(attempt->busy, reply);
		log_step("%s: held by another", name);
		return;
	}
	if (reply->count < 2 || reply->value[1].text != NULL ||
	    reply->value[1].number <= 0 ||
	    reply->value[1].number > FENCE_LARGEST)
		return;
	lock->fences[i] = reply->value[1].number;
	lock->vote[i] = is_quarantined(lock, i) ? VOTE_QUARANTINED : VOTE_YES;
	log_step("%s: %s, fence %" PRId64, name,
		 lock->vote[i] == VOTE_YES ? "granted" :
		 "granted, but up too short to have a vote", lock->fences[i]);
}

static bool attempt_decided(void *context)
{
	const struct attempt *attempt = context;

	return is_decided(attempt->lock);
}

static void on_raise(void *context, size_t i, const struct reply *reply)
{
	struct lock *lock = context;
	int64_t answer = 0;

	if (read_answer(lock, i, reply, 0, &answer))
		lock->vote[i] = answer == 1 ? VOTE_YES : VOTE_GONE;
}

/*
 * Every server that may be below the quorum's fence is told it; those that
 * have no vote too, as they must know it once they have one. Waits for a
 * quorum at or above it.
 */
static enum gathered raise_fences(struct lock *lock, struct deadline until)
{
	struct judge judge = {lock, on_raise, is_decided};

	lock->fence = 0;
	for (size_t i = 0; i < lock->quorum->count; i++)
		if (lock->vote[i] == VOTE_YES && lock->fences[i] > lock->fence)
			lock->fence = lock->fences[i];
	quorum_round(lock->quorum);
	for (size_t i = 0; i < lock->quorum->count; i++) {
		bool granted = lock->vote[i] == VOTE_YES ||
			lock->vote[i] == VOTE_QUARANTINED;

		if ((granted && lock->fences[i] >= lock->fence) ||
		    !(granted || lock->vote[i] == VOTE_PENDING))
			continue;
		ask_raise(lock, i);
		/* only a voter's answer can count */
		if (lock->vote[i] == VOTE_YES)
			lock->vote[i] = VOTE_PENDING;
		else
			lock->quorum->slot[i].waiting = false;
	}
	for (size_t i = 0; i < lock->quorum->count; i++)
		if (!lock->quorum->slot[i].waiting &&
		    lock->vote[i] == VOTE_PENDING)
			lock->vote[i] = VOTE_FAILED;
	return quorum_gather(lock->quorum, until, &judge);
}

static void on_rollback(void *context, size_t i, const struct reply *reply)
{
	(void)context;
	(void)i;
	(void)reply;
}

static bool is_rolled_back(void *context)
{
	const struct lock *lock = context;

	for (size_t i = 0; i < lock->quorum->count; i++)
		if (lock->quorum->slot[i].waiting && lock->fences[i] > 0)
			return false;
	return true;
}

/*
 * Takes back what this attempt may have left: a server that said no has
 * nothing, all others are sent the release. Only those that said yes are
 * waited for: the others have it behind the acquire on their connection.
 */
static void roll_back(struct lock *lock, const enum vote vote[],
		      struct deadline until)
{
	struct judge judge = {lock, on_rollback, is_rolled_back};
	int interrupt = lock->quorum->interrupt;

	quorum_round(lock->quorum);
	for (size_t i = 0; i < lock->quorum->count; i++)
		if (vote[i] != VOTE_HELD &&
		    lock->quorum->servers[i].state == SERVER_UP)
			ask_release(lock, i);
		else if (vote[i] != VOTE_HELD)
			server_withdraw(&lock->quorum->servers[i]);
	/* a signal is no reason to leave something behind */
	lock->quorum->interrupt = -1;
	quorum_gather(lock->quorum, until, &judge);
	lock->quorum->interrupt = interrupt;
}

/* --- what to tell ------------------------------------------------------- */

static const char *why_not(const struct lock *lock, size_t i, char text[160])
{
	const struct server *server = &lock->quorum->servers[i];
	char up[DURATION_TEXT], need[DURATION_TEXT];

	if (lock->vote[i] != VOTE_QUARANTINED)
		return server->why;
	snprintf(text, 160, "up for %s only: it may have forgotten leases and "
		 "has no vote until %s (--quarantine)",
		 duration_format(up, clock_ms() - server->identity.started),
		 duration_format(need, lock->quarantine));
	return text;
}

static bool has_failed(const struct lock *lock, size_t i)
{
	return lock->vote[i] == VOTE_FAILED || lock->vote[i] == VOTE_PENDING ||
	       lock->vote[i] == VOTE_QUARANTINED;
}

/*
 * The code of a round without a quorum: what a server refused for good goes
 * before what may pass, but only where the servers that are left could not
 * make a quorum.
 */
static void classify(const struct lock *lock, struct error *error)
{
	size_t lasting = 0;
	int code = EXIT_UNREACHED;

	for (size_t i = 0; i < lock->quorum->count; i++) {
		const struct server *server = &lock->quorum->servers[i];

		if (lock->vote[i] != VOTE_FAILED || server->why_passing)
			continue;
		lasting++;
		if (code == EXIT_UNREACHED)
			code = server->why_code;
	}
	error->passing = lock->quorum->count - lasting >=
		quorum_size(lock->quorum);
	error->code = error->passing ? EXIT_UNREACHED : code;
}

static const char *remedy(const struct lock *lock, const struct error *error)
{
	const struct server *server = &lock->quorum->servers[0];

	if (lock->quorum->count > 1 || lock->vote[0] == VOTE_QUARANTINED)
		return "";
	if (error->code == EXIT_REFUSED)
		return ": see the server's ACL, and REDLOCK_PASSWORD";
	if (error->code == EXIT_MISUSED)
		return ": KEY, or the record beside it, is no lock of ours";
	if (error->code != EXIT_UNREACHED)
		return "";
	if (server->state == SERVER_DOWN && strcmp(server->url.name,
				   "redis://127.0.0.1:6379") == 0)
		return ": start a server there, name one with -S, or use -S "
		       "local: for a private one";
	return ": is it up, and is -S right?";
}

/* "no quorum: 2 of 5 servers answered, 3 are needed: URL: why; URL: why" */
static void explain(const struct lock *lock, struct error *error)
{
	size_t count = lock->quorum->count, failed = 0;
	const char *between = ": ";
	char text[160];

	for (size_t i = 0; i < count; i++)
		failed += has_failed(lock, i);
	error_set(error, EXIT_UNREACHED, "%s", "");
	classify(lock, error);
	if (count == 1) {
		error_append(error, "%s: %s%s",
			     lock->quorum->servers[0].url.name,
			     why_not(lock, 0, text), remedy(lock, error));
		return;
	}
	error_append(error, "no quorum: %zu of %zu servers answered, %zu are "
		     "needed", count - failed, count,
		     quorum_size(lock->quorum));
	for (size_t i = 0; i < count; i++) {
		if (!has_failed(lock, i))
			continue;
		error_append(error, "%s%s: %s", between,
			     lock->quorum->servers[i].url.name,
			     why_not(lock, i, text));
		between = "; ";
	}
}

/* An attempt that failed: others hold KEY, or too few servers answered. */
static enum lock_result judge_failure(const struct lock *lock,
				      struct error *error)
{
	size_t answered = count_votes(lock, VOTE_YES) +
		count_votes(lock, VOTE_HELD);

	if (lock->alias) {
		*error = lock->alias_error;
		return LOCK_ERROR;
	}
	if (answered >= quorum_size(lock->quorum))
		return LOCK_BUSY;
	explain(lock, error);
	return LOCK_ERROR;
}

static enum lock_result take(struct lock *lock, struct deadline until,
			     struct attempt *attempt, struct error *error)
{
	struct judge judge = {attempt, on_acquire, attempt_decided};
	int64_t started = clock_ms();

	new_round(lock);
	for (size_t i = 0; i < lock->quorum->count; i++) {
		lock->fences[i] = 0;
		ask_acquire(lock, i, lock->description.data, 0);
	}
	if (quorum_gather(lock->quorum, until, &judge) == GATHER_INTERRUPTED)
		return LOCK_INTERRUPTED;
	if (!has_quorum(lock) || lock->alias)
		return judge_failure(lock, error);
	if (raise_fences(lock, until) == GATHER_INTERRUPTED)
		return LOCK_INTERRUPTED;
	if (!has_quorum(lock))
		return judge_failure(lock, error);
	lock->started = started;
	lock->acquired = clock_ms();
	lock->valid = deadline_at(started + lock->ttl - lock_drift(lock->ttl));
	if (!deadline_passed(lock->valid))
		return LOCK_OK;
	error_set(error, EXIT_UNREACHED, "the servers granted it too late: "
		  "the lease (-t) was over when the answers came");
	error->passing = true;
	return LOCK_ERROR;
}

bool lock_is_quarantined(const struct lock *lock)
{
	return count_votes(lock, VOTE_YES) + count_votes(lock, VOTE_HELD) +
	       count_votes(lock, VOTE_QUARANTINED) >=
	       quorum_size(lock->quorum) &&
	       count_votes(lock, VOTE_QUARANTINED) > 0;
}

enum lock_result lock_acquire(struct lock *lock, struct deadline until,
			      struct busy *busy, struct error *error)
{
	struct attempt attempt = {lock, busy};
	enum vote said[SERVERS_MAX];
	enum lock_result result;

	*busy = (struct busy){.left = -2, .held = -1};
	token_make(lock->token);
	result = take(lock, until, &attempt, error);
	if (result == LOCK_OK)
		return result;
	memcpy(said, lock->vote, sizeof(said));
	roll_back(lock, said, deadline_in(lock->quorum->timeout));
	return result;
}

/* --- extend ------------------------------------------------------------- */

struct renewal {
	struct lock *lock;
	struct buffer description;  /* as a server that kept it has it */
	int64_t fence;
};

static void on_extend(void *context, size_t i, const struct reply *reply)
{
	struct renewal *renewal = context;
	struct lock *lock = renewal->lock;
	int64_t answer = 0;

	if (!read_answer(lock, i, reply, -1, &answer))
		return;
	if (answer < 1) {
		lock->vote[i] = answer == 0 ? VOTE_HELD : VOTE_GONE;
		return;
	}
	if (reply->count < 3 || reply->value[1].text != NULL ||
	    reply->value[2].text == NULL)
		return;
	lock->vote[i] = VOTE_YES;
	if (reply->value[1].number > renewal->fence &&
	    reply->value[1].number <= FENCE_LARGEST) {
		renewal->fence = reply->value[1].number;
		renewal->description.length = 0;
		buffer_append(&renewal->description, reply->value[2].text,
			      strnlen(reply->value[2].text,
				      reply->value[2].length));
	}
}

static bool renewal_decided(void *context)
{
	const struct renewal *renewal = context;

	return is_decided(renewal->lock);
}

/* Gives the lock back to servers that have lost it: they have been restarted
 * empty, or were out of reach when it was acquired. */
static void heal(struct renewal *renewal)
{
	struct lock *lock = renewal->lock;

	if (renewal->fence == 0)
		return;
	for (size_t i = 0; i < lock->quorum->count; i++) {
		if (lock->vote[i] != VOTE_GONE)
			continue;
		log_step("%s: the lock is gone there, put back",
			 lock->quorum->servers[i].url.name);
		ask_acquire(lock, i, renewal->description.data,
			    renewal->fence);
		lock->quorum->slot[i].waiting = false;
	}
}

static void explain_loss(const struct lock *lock, struct error *error)
{
	size_t gone = count_votes(lock, VOTE_GONE);
	size_t held = count_votes(lock, VOTE_HELD);

	if (lock->quorum->count == 1)
		error_set(error, EXIT_LOST, held > 0 ?
			  "%s: another has taken KEY" : "%s: KEY is gone",
			  lock->quorum->servers[0].url.name);
	else
		error_set(error, EXIT_LOST, "KEY is gone from %zu and taken by "
			  "another on %zu of %zu servers", gone, held,
			  lock->quorum->count);
}

/* So many servers have said no that a quorum has been lost for certain. */
static bool is_lost(const struct lock *lock)
{
	return count_votes(lock, VOTE_GONE) + count_votes(lock, VOTE_HELD) >
	       lock->quorum->count - quorum_size(lock->quorum);
}

enum lock_result lock_extend(struct lock *lock, struct deadline until,
			     struct error *error)
{
	struct renewal renewal = {.lock = lock};
	struct judge judge = {&renewal, on_extend, renewal_decided};
	int64_t started = clock_ms();
	enum gathered gathered;

	new_round(lock);
	for (size_t i = 0; i < lock->quorum->count; i++)
		ask_extend(lock, i);
	gathered = quorum_gather(lock->quorum, until, &judge);
	if (has_quorum(lock)) {
		heal(&renewal);
		lock->started = started;
		lock->valid = deadline_at(started + lock->ttl -
					  lock_drift(lock->ttl));
	}
	buffer_release(&renewal.description);
	if (has_quorum(lock))
		return LOCK_OK;
	if (gathered == GATHER_INTERRUPTED)
		return LOCK_INTERRUPTED;
	if (is_lost(lock)) {
		explain_loss(lock, error);
		return LOCK_NOT_HELD;
	}
	explain(lock, error);
	return LOCK_ERROR;
}

/* --- release ------------------------------------------------------------ */

static void on_release(void *context, size_t i, const struct reply *reply)
{
	struct lock *lock = context;
	int64_t answer = 0;

	if (read_answer(lock, i, reply, -1, &answer))
		lock->vote[i] = answer == 1 ? VOTE_YES :
				answer == 0 ? VOTE_HELD : VOTE_GONE;
}

enum lock_result lock_release(struct lock *lock, struct deadline until,
			      struct error *error)
{
	struct judge judge = {lock, on_release, is_decided};

	new_round(lock);
	for (size_t i = 0; i < lock->quorum->count; i++)
		ask_release(lock, i);
	if (quorum_gather(lock->quorum, until, &judge) == GATHER_INTERRUPTED)
		return LOCK_INTERRUPTED;
	if (has_quorum(lock))
		return LOCK_OK;
	if (is_lost(lock)) {
		explain_loss(lock, error);
		return LOCK_NOT_HELD;
	}
	explain(lock, error);
	return LOCK_ERROR;
}

void lock_describe_busy(struct buffer *text, const struct busy *busy)
{
	char time[DURATION_TEXT];

	if (busy->known)
		record_print(text, &busy->holder);
	else
		buffer_print(text, "held by another program");
	if (busy->held >= 0)
		buffer_print(text, " for %s",
			     duration_format(time, busy->held));
	if (busy->left == -1)
		buffer_print(text, ", with no expiry");
	else if (busy->left >= 0)
		buffer_print(text, ", %s left",
			     duration_format(time, busy->left));
}
