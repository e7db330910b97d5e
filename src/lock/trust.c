#include "lock/trust.h"

#include <stdio.h>
#include <string.h>

#include "base/bounds.h"
#include "base/duration.h"
#include "base/lease.h"
#include "base/number.h"
#include "lock/slots.h"

#define SERVERS_LEAST 3             /* with fewer every quorum has them all */
#define HOUR INT64_C(3600000)       /* ms */
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

int64_t trust_longest(const struct ballot *ballot)
{
	return larger(ballot->ttl, ballot->learned);
}

/* --- what is reported ---------------------------------------------------- */

void trust_begin(struct ballot *ballot)
{
	memset(ballot->report, 0, sizeof(ballot->report));
	ballot->learned = 0;
}

void trust_begin_attempt(struct ballot *ballot)
{
	for (size_t i = 0; i < ballot->quorum->count; i++)
		ballot->report[i].is_new = false;
}

void trust_hear(struct ballot *ballot, size_t i, bool begins, int64_t age,
		const char *last)
{
	struct report *report = &ballot->report[i];
	bool knew = report->is_known;
	int64_t before = report->began, now = clock_ms();

	/* if this request begins no record, messages tell no age: what is known
	 * of the record stands, or when it was first missing */
	if (begins || age > 0 || !knew)
		report->began = now - clamp(age, AGE_LONGEST);
	if (knew && report->began - before > now - report->asked) {
		/* another record */
		report->last[0] = report->holder[0] = '\0';
		report->tenant_count = 0;
	}
	if (last != NULL && last[0] == '\0') /* it knows of nobody any more */
		report->holder[0] = '\0';
	if (last != NULL)
		strlcpy(report->last, last, sizeof(report->last));
	report->is_new = report->is_known = true;
	report->is_held = false;
}

void trust_learn(struct ballot *ballot, int64_t ttl)
{
	ballot->learned = larger(ballot->learned, clamp(ttl, LEASE_LONGEST));
}

void trust_hear_holder(struct ballot *ballot, size_t i, const char *holder,
		       int64_t held, int64_t left, int64_t ttl)
{
	struct report *report = &ballot->report[i];

	trust_learn(ballot, larger(left, ttl));
	if (held < 0 || holder[0] == '\0' || holder[0] == '*')
		return;
	report->is_held = true;
	strlcpy(report->holder, holder, sizeof(report->holder));
	report->until = clock_ms() +
			(left < 0 ? LEASE_LONGEST : clamp(left, LEASE_LONGEST));
	report->since = report->asked - clamp(held, AGE_LONGEST);
}

void trust_hear_overtaken(struct ballot *ballot, size_t i)
{
	ballot->report[i].is_held = false;
}

/* "slot held token ", each; what is no such thing ends it. */
static bool read_tenant(const char **text, int64_t asked, struct tenant *tenant)
{
	int64_t held;
	size_t length;

	if (number_read(text, 0, PERMITS_MOST, &tenant->slot) < 0 ||
	    *(*text)++ != ' ' ||
	    number_read(text, 0, FENCE_LARGEST, &held) < 0 || *(*text)++ != ' ')
		return false;
	length = strcspn(*text, " ");
	if (length == 0 || length >= sizeof(tenant->token) ||
	    (*text)[length] == '\0')
		return false;
	memcpy(tenant->token, *text, length);
	tenant->token[length] = '\0';
	tenant->since = asked - clamp(held, AGE_LONGEST);
	*text += length + 1;
	return true;
}

void trust_hear_tenants(struct ballot *ballot, size_t i, const char *text,
			int64_t ttl)
{
	struct report *report = &ballot->report[i];
	size_t count = 0;

	trust_learn(ballot, ttl);
	while (count < HOLDERS_TOLD &&
	       read_tenant(&text, report->asked, &report->tenants[count]))
		count++;
	report->tenant_count = count;
	report->tenants_until = clock_ms() + clamp(ttl, LEASE_LONGEST);
}

/* --- what it is worth --------------------------------------------------- */

static int64_t quarantine_of(const struct ballot *ballot)
{
	return larger(ballot->quarantine, ballot->learned);
}

static int64_t uptime(const struct ballot *ballot, size_t i)
{
	return clock_ms() - ballot->quorum->servers[i].conn.identity.started;
}

/* A message may come before a server that was restarted has said so on the
 * connection for requests. */
static bool is_unknown(const struct ballot *ballot, size_t i)
{
	const struct server *server = &ballot->quorum->servers[i];

	return !server->conn.identity.known || server_is_down(server);
}

static bool is_too_new(const struct ballot *ballot, size_t i)
{
	if (ballot->quarantine == 0)
		return false;
	return is_unknown(ballot, i) ||
	       (!ballot->quorum->servers[i].conn.identity.durable &&
		uptime(ballot, i) < quarantine_of(ballot));
}

bool trust_is_new(const struct ballot *ballot, size_t i)
{
	return !is_unknown(ballot, i) && is_too_new(ballot, i);
}

static bool is_old(const struct ballot *ballot, size_t i)
{
	return clock_ms() - ballot->report[i].began >= trust_longest(ballot);
}

/* Whether k has known KEY, or its holder, since before i's record began. */
static bool knows_more(const struct ballot *ballot, size_t k, size_t i)
{
	const struct report *report = &ballot->report[i],
			    *other = &ballot->report[k];

	if (other->is_known && report->began - other->began > ATTEMPT_APART)
		return true;
	return other->is_held && other->since < report->began &&
	       clock_ms() < other->until &&
	       strcmp(other->holder, report->last) != 0 &&
	       strcmp(other->holder, report->holder) != 0;
}

static bool has_tenant(const struct report *report, const char *token)
{
	for (size_t n = 0; n < report->tenant_count; n++)
		if (strcmp(report->tenants[n].token, token) == 0)
			return true;
	return false;
}

/* Whether k knows of somebody who has had the slot that i has given us, or has kept us
 * out with others, since before i's record began, and i does not. */
static bool knows_tenant(const struct ballot *ballot, size_t k, size_t i)
{
	const struct report *report = &ballot->report[i],
			    *other = &ballot->report[k];

	if (clock_ms() >= other->tenants_until)
		return false;
	for (size_t n = 0; n < other->tenant_count; n++) {
		const struct tenant *tenant = &other->tenants[n];

		if (tenant->slot == ballot->slots[i].own &&
		    tenant->since < report->began &&
		    strcmp(tenant->token, report->last) != 0 &&
		    !has_tenant(report, tenant->token))
			return true;
	}
	return false;
}

/* Whether another server is a sign that i has lost its record. */
static bool is_contradicted(const struct ballot *ballot, size_t i,
			    bool is_sign(const struct ballot *, size_t, size_t))
{
	if (ballot->quorum->count < SERVERS_LEAST || is_old(ballot, i))
		return false;
	for (size_t k = 0; k < ballot->quorum->count; k++)
		if (k != i && is_sign(ballot, k, i))
			return true;
	return false;
}

static bool has_lost_record(const struct ballot *ballot, size_t i)
{
	return is_contradicted(ballot, i, knows_more) ||
	       (ballot->slots[i].own == 0 &&
		is_contradicted(ballot, i, knows_tenant));
}

/* What a server has given us nobody else has had there since, whether we keep it or not,
 * until its next answer names somebody. */
static void forget_tenants(struct report *report, int64_t slot)
{
	size_t kept = 0;

	for (size_t n = 0; n < report->tenant_count; n++)
		if (report->tenants[n].slot != slot)
			report->tenants[kept++] = report->tenants[n];
	report->tenant_count = kept;
}

void trust_weigh(struct ballot *ballot)
{
	for (size_t i = 0; i < ballot->quorum->count; i++)
		if (ballot_is_granted(ballot, i))
			forget_tenants(&ballot->report[i],
				       ballot->slots[i].own);
	for (size_t i = 0; i < ballot->quorum->count; i++) {
		if (!ballot_is_granted(ballot, i))
			continue;
		ballot->vote[i] =
			is_too_new(ballot, i) || has_lost_record(ballot, i)
				? VOTE_QUARANTINED
				: VOTE_YES;
		ballot->slots[i].contested =
			ballot->slots[i].own > 0 &&
			is_contradicted(ballot, i, knows_tenant);
	}
	slots_weigh(ballot);
}

/* Whether its start is so long ago that no lease of before is of concern. */
static bool has_been_up(const struct ballot *ballot, size_t i)
{
	const struct identity *identity =
		&ballot->quorum->servers[i].conn.identity;

	return ballot->quarantine == 0 || identity->appends ||
	       (identity->known && uptime(ballot, i) >= HOUR);
}

static bool is_younger(const struct ballot *ballot, size_t i)
{
	for (size_t k = 0; k < ballot->quorum->count; k++)
		if (k != i && knows_more(ballot, k, i))
			return true;
	return false;
}

/* Older than any lease that we may not have heard of yet. A lease of which only a lost
 * record told may be a long one. */
static bool is_surely_old(const struct ballot *ballot, size_t i)
{
	int64_t longest = larger(trust_longest(ballot), ballot->quarantine);

	return clock_ms() - ballot->report[i].began >=
	       (is_younger(ballot, i) ? larger(longest, HOUR) : longest);
}

static size_t count_firm(const struct ballot *ballot, bool with_records)
{
	size_t count = 0;

	for (size_t i = 0; i < ballot->quorum->count; i++)
		count += ballot->vote[i] == VOTE_YES &&
			 has_been_up(ballot, i) &&
			 (!with_records || is_surely_old(ballot, i));
	return count;
}

bool trust_is_firm(const struct ballot *ballot)
{
	return ballot->quorum->count < SERVERS_LEAST ||
	       count_firm(ballot, true) >= quorum_size(ballot->quorum);
}

bool trust_needs_all(const struct ballot *ballot)
{
	return ballot->quorum->count >= SERVERS_LEAST &&
	       count_firm(ballot, false) < quorum_size(ballot->quorum);
}

struct deadline trust_next(const struct ballot *ballot)
{
	struct deadline next = deadline_never();

	for (size_t i = 0; i < ballot->quorum->count; i++) {
		int64_t at = ballot->report[i].began + trust_longest(ballot);

		if (ballot->vote[i] != VOTE_QUARANTINED ||
		    is_unknown(ballot, i))
			continue;
		if (is_too_new(ballot, i))
			at = larger(at, clock_ms() + quarantine_of(ballot) -
						uptime(ballot, i));
		next = deadline_earlier(next, deadline_at(at));
	}
	return next;
}

bool trust_is_short_of_records(const struct ballot *ballot)
{
	size_t votes = 0, lost = 0;

	for (size_t i = 0; i < ballot->quorum->count; i++) {
		if (ballot->vote[i] == VOTE_HELD)
			return false;
		votes += ballot->vote[i] == VOTE_YES ||
			 ballot->vote[i] == VOTE_ELSEWHERE;
		lost += ballot->vote[i] == VOTE_QUARANTINED &&
			!is_too_new(ballot, i);
	}
	return lost > 0 && votes + lost >= quorum_size(ballot->quorum);
}

static const char *remedy(const struct identity *identity)
{
	return identity->claim.durable ? "see redlock doctor" : "--quarantine";
}

const char *trust_explain(const struct ballot *ballot, size_t i,
			  char text[TRUST_TEXT])
{
	char is[DURATION_TEXT], need[DURATION_TEXT];
	const struct identity *identity =
		&ballot->quorum->servers[i].conn.identity;

	if (!is_too_new(ballot, i))
		snprintf(text, TRUST_TEXT,
			 "it has known KEY for only %s, others for longer: it "
			 "may have forgotten a lease and has no vote until it "
			 "has known KEY for %s",
			 duration_format(is,
					 clock_ms() - ballot->report[i].began),
			 duration_format(need, trust_longest(ballot)));
	else if (!identity->known)
		return "it has not said yet how long it has been up";
	else if (identity->set_back)
		snprintf(text, TRUST_TEXT,
			 "its clock was set back to before it started: it may "
			 "have forgotten leases and has no vote until it has "
			 "surely been up for %s (%s)",
			 duration_format(need, quarantine_of(ballot)),
			 remedy(identity));
	else
		snprintf(text, TRUST_TEXT,
			 "up for only %s: it may have forgotten leases and has "
			 "no vote until it has been up for %s (%s)",
			 duration_format(is,
					 clamp(uptime(ballot, i), INT64_MAX)),
			 duration_format(need, quarantine_of(ballot)),
			 remedy(identity));
	return text;
}
