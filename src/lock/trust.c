#include "lock/trust.h"

#include <stdio.h>
#include <string.h>

#include "base/duration.h"

#define SERVERS_LEAST 3             /* with fewer every quorum has them all */
#define HOUR INT64_C(3600000)       /* ms */
#define LEASE_LONGEST (24 * HOUR)   /* options.c */
#define AGE_LONGEST (10000 * HOUR)  /* ms: records live for a week */
#define ATTEMPT_APART INT64_C(1000) /* ms between requests of one attempt */

static int64_t clamp(int64_t value, int64_t most)
{
	return value < 0 ? 0 : value > most ? most : value;
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

int64_t trust_longest(const struct lock *lock)
{
	return larger(lock->ttl, lock->learned);
}

/* --- what is heard ------------------------------------------------------ */

void trust_begin(struct lock *lock)
{
	memset(lock->told, 0, sizeof(lock->told));
	lock->learned = 0;
}

void trust_begin_attempt(struct lock *lock)
{
	for (size_t i = 0; i < lock->quorum->count; i++)
		lock->told[i].heard = false;
}

void trust_hear(struct lock *lock, size_t i, int64_t age, const char *last)
{
	struct told *told = &lock->told[i];
	int64_t before = told->began, now = clock_ms();

	/* who takes nothing begins no record, and its messages tell no age: what
	 * is known of the record stands, or when it was first missing */
	if (lock->kind != KIND_NONE || age > 0 || before == 0)
		told->began = now - clamp(age, AGE_LONGEST);
	if (told->began - before > now - told->asked) /* another record */
		told->last[0] = told->holder[0] = '\0';
	if (last != NULL && last[0] == '\0') /* it knows of nobody any more */
		told->holder[0] = '\0';
	if (last != NULL)
		strlcpy(told->last, last, sizeof(told->last));
	told->heard = true;
	told->is_held = false;
}

void trust_hear_holder(struct lock *lock, size_t i, const char *mark,
		       int64_t held, int64_t left, int64_t ttl)
{
	struct told *told = &lock->told[i];

	lock->learned =
		larger(lock->learned, clamp(larger(left, ttl), LEASE_LONGEST));
	if (held < 0 || mark[0] == '\0' || mark[0] == '*')
		return;
	told->is_held = true;
	strlcpy(told->holder, mark, sizeof(told->holder));
	told->until = clock_ms() +
		      (left < 0 ? LEASE_LONGEST : clamp(left, LEASE_LONGEST));
	told->since = told->asked - clamp(held, AGE_LONGEST);
}

/* --- what it is worth --------------------------------------------------- */

static int64_t quarantine_of(const struct lock *lock)
{
	return larger(lock->quarantine, lock->learned);
}

static int64_t uptime(const struct lock *lock, size_t i)
{
	return clock_ms() - lock->quorum->servers[i].identity.started;
}

/* A message may come before a server that was restarted has said so on the
 * connection for requests. */
static bool is_unknown(const struct lock *lock, size_t i)
{
	const struct server *server = &lock->quorum->servers[i];

	return !server->identity.known || server_is_down(server);
}

static bool is_too_new(const struct lock *lock, size_t i)
{
	if (lock->quarantine == 0)
		return false;
	return is_unknown(lock, i) ||
	       (!lock->quorum->servers[i].identity.durable &&
		uptime(lock, i) < quarantine_of(lock));
}

bool trust_is_new(const struct lock *lock, size_t i)
{
	return !is_unknown(lock, i) && is_too_new(lock, i);
}

static bool is_old(const struct lock *lock, size_t i)
{
	return clock_ms() - lock->told[i].began >= trust_longest(lock);
}

/* Whether k has known KEY, or its holder, since before i's record began. */
static bool knows_more(const struct lock *lock, size_t k, size_t i)
{
	const struct told *told = &lock->told[i], *other = &lock->told[k];

	if (other->began > 0 && told->began - other->began > ATTEMPT_APART)
		return true;
	return other->is_held && other->since < told->began &&
	       clock_ms() < other->until &&
	       strcmp(other->holder, told->last) != 0 &&
	       strcmp(other->holder, told->holder) != 0;
}

static bool has_lost_record(const struct lock *lock, size_t i)
{
	if (lock->quorum->count < SERVERS_LEAST || is_old(lock, i))
		return false;
	for (size_t k = 0; k < lock->quorum->count; k++)
		if (k != i && knows_more(lock, k, i))
			return true;
	return false;
}

static bool is_granted(const struct lock *lock, size_t i)
{
	return lock->vote[i] == VOTE_YES || lock->vote[i] == VOTE_QUARANTINED;
}

void trust_weigh(struct lock *lock)
{
	for (size_t i = 0; i < lock->quorum->count; i++)
		if (is_granted(lock, i))
			lock->vote[i] =
				is_too_new(lock, i) || has_lost_record(lock, i)
					? VOTE_QUARANTINED
					: VOTE_YES;
}

/* Whether its start is so long ago that no lease of before is of concern. */
static bool has_been_up(const struct lock *lock, size_t i)
{
	const struct identity *identity = &lock->quorum->servers[i].identity;

	return lock->quarantine == 0 || identity->appends ||
	       (identity->known && uptime(lock, i) >= HOUR);
}

/* Older than any lease that we may not have heard of yet. */
static bool is_surely_old(const struct lock *lock, size_t i)
{
	return clock_ms() - lock->told[i].began >=
	       larger(trust_longest(lock), lock->quarantine);
}

static size_t count_firm(const struct lock *lock, bool with_records)
{
	size_t count = 0;

	for (size_t i = 0; i < lock->quorum->count; i++)
		count += lock->vote[i] == VOTE_YES && has_been_up(lock, i) &&
			 (!with_records || is_surely_old(lock, i));
	return count;
}

bool trust_is_firm(const struct lock *lock)
{
	return lock->quorum->count < SERVERS_LEAST ||
	       count_firm(lock, true) >= quorum_size(lock->quorum);
}

bool trust_needs_all(const struct lock *lock)
{
	return lock->quorum->count >= SERVERS_LEAST &&
	       count_firm(lock, false) < quorum_size(lock->quorum);
}

struct deadline trust_next(const struct lock *lock)
{
	struct deadline next = deadline_never();

	for (size_t i = 0; i < lock->quorum->count; i++) {
		int64_t at = lock->told[i].began + trust_longest(lock);

		if (lock->vote[i] != VOTE_QUARANTINED || is_unknown(lock, i))
			continue;
		if (is_too_new(lock, i))
			at = larger(at, clock_ms() + quarantine_of(lock) -
						uptime(lock, i));
		next = deadline_earlier(next, deadline_at(at));
	}
	return next;
}

bool trust_is_short_of_records(const struct lock *lock)
{
	size_t votes = 0, lost = 0;

	for (size_t i = 0; i < lock->quorum->count; i++) {
		if (lock->vote[i] == VOTE_HELD)
			return false;
		votes += lock->vote[i] == VOTE_YES;
		lost += lock->vote[i] == VOTE_QUARANTINED &&
			!is_too_new(lock, i);
	}
	return lost > 0 && votes + lost >= quorum_size(lock->quorum);
}

const char *trust_explain(const struct lock *lock, size_t i,
			  char text[TRUST_TEXT])
{
	char is[DURATION_TEXT], need[DURATION_TEXT];

	if (!is_too_new(lock, i))
		snprintf(text, TRUST_TEXT,
			 "it has known KEY for only %s, others for longer: it "
			 "may have forgotten a lease and has no vote until it "
			 "has known KEY for %s",
			 duration_format(is, clock_ms() - lock->told[i].began),
			 duration_format(need, trust_longest(lock)));
	else if (!lock->quorum->servers[i].identity.known)
		return "it has not said yet how long it has been up";
	else
		snprintf(text, TRUST_TEXT,
			 "up for only %s: it may have forgotten leases and has "
			 "no vote until it has been up for %s (--quarantine)",
			 duration_format(is, clamp(uptime(lock, i), INT64_MAX)),
			 duration_format(need, quarantine_of(lock)));
	return text;
}
