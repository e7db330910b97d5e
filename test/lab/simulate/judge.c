#include "judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/lease.h"
#include "client.h"
#include "needless.h"
#include "once.h"

struct hold {
	bool runs, evicted;
	enum kind kind;
	int64_t fence;
	int64_t part; /* judge_begin */
	int64_t since, ended;
	int64_t until;                 /* judge_belief */
	char token[TOKEN_LONGEST + 1]; /* empty: not known yet */
};

struct waiting {
	bool waits;
	int64_t since;
};

#define UNANSWERED \
	3010 /* ms that a grant lasts by a message, by a clock in whole ms */
#define OUTAGE_PAUSE (1050 * MS) /* between two attempts of a waiter, at most */

#define LONG_BEFORE \
	2500000 /* us: those who come within this may change places */

#define GRANTS 100
#define APART \
	(4 * SECOND) /* us that clients' wall clocks may differ, at most */

struct figures figures;

static int64_t tried[CLIENTS_MOST];  /* us: since when it tries */
static int64_t killed[CLIENTS_MOST]; /* us: when it was; 0: never */
static bool gave_up
	[CLIENTS_MOST]; /* it could not give its hold back, and said so */
static int64_t broken[KEYS_MOST]; /* us: when it was taken away */
static int64_t asked[KEYS_MOST];  /* us: when holders were asked to stop */
static struct hold holds[CLIENTS_MOST][KEYS_MOST];
static struct waiting waits[CLIENTS_MOST];
static int64_t ran;             /* us: when a COMMAND last ran */
static int64_t full[KEYS_MOST]; /* us: when nobody else could have a key */

/* Those who try to get a key at the same time: since when the first of them does. If some
 * want several keys, all keys are like one. */
static struct {
	bool tries[CLIENTS_MOST];
	int64_t since;
	int64_t ran; /* when somebody last had it */
	int64_t sane; /* before that somebody was killed, and may have left votes */
} rivals[KEYS_MOST];

/* The last grants of a key. */
static struct {
	struct {
		int64_t at, fence;
	} grants[GRANTS];
	size_t count;
} past[KEYS_MOST];

/* The largest fences so far: of all, and of those by kind, owner and slot. */
static struct {
	int64_t all, exclusive, owned[3], slot[PERMITS_DRAWN + 1];
} largest[KEYS_MOST];

/* --- who holds what -------------------------------------------------------- */

static bool excludes(const struct hold *a, const struct hold *b)
{
	if (a->kind != b->kind)
		return true;
	switch (a->kind) {
	case KIND_EXCLUSIVE:
		return true;
	case KIND_REENTRANT:
		return a->part != b->part;
	case KIND_PERMITS:
		return a->part == b->part;
	default:
		return false;
	}
}

static void check_others(size_t client, size_t key)
{
	const struct hold *hold = &holds[client][key];
	const char *name = plan.key[key].name;
	int64_t count = 1, permits = plan.key[key].permits;

	for (size_t i = 0; i < plan.clients; i++) {
		const struct hold *other = &holds[i][key];

		if (i == client || !other->runs || other->evicted)
			continue;
		count++;
		if (excludes(hold, other))
			world_violation("two hold %s: client %zu since "
					"%.6f, and client %zu now",
					name, i, (double)other->since / 1e6,
					client);
	}
	if (hold->kind != KIND_PERMITS)
		return;
	if (count > permits)
		world_violation("%lld hold %s, which has %lld permits",
				(long long)count, name, (long long)permits);
	if (hold->part < 1 || hold->part > permits)
		world_violation("client %zu holds slot %lld of %s", client,
				(long long)hold->part, name);
}

/* The largest fence of an earlier holder that excludes this one. */
static int64_t earlier_fence(size_t key, const struct hold *hold)
{
	switch (hold->kind) {
	case KIND_EXCLUSIVE:
		return largest[key].all;
	case KIND_REENTRANT:
		return largest[key].owned[3 - hold->part];
	case KIND_PERMITS:
		return largest[key].slot[hold->part];
	default:
		return largest[key].exclusive;
	}
}

static void raise(int64_t *fence, int64_t to)
{
	if (*fence < to)
		*fence = to;
}

static int64_t number_at(struct node *node, size_t key, const char *field)
{
	char name[40];

	snprintf(name, sizeof(name), "{%s}:redlock", plan.key[key].name);
	return store_field(node->store, node_now(node) / MS,
			   (struct word){name, strlen(name)}, field);
}

/* Whether the server has lost data since an attempt that has KEY now began. */
static bool has_lost(const struct node *node, size_t key)
{
	return node->lost >= world_now - plan.key[key].ttl * MS;
}

/* A quorum has stored it, so the next holder hears of it from one of these at least. */
static void check_stored(size_t client, size_t key)
{
	int64_t fence = holds[client][key].fence;
	size_t count = 0;

	for (size_t i = 0; i < plan.servers; i++)
		count += has_lost(&nodes[i], key) ||
			 number_at(&nodes[i], key, "fence") >= fence;
	if (count <= plan.servers / 2)
		world_violation("client %zu holds %s with the fence %lld, "
				"which only %zu servers have stored",
				client, plan.key[key].name, (long long)fence,
				count);
}

static bool are_fences_judged(size_t key)
{
	return plan.forgetting == FORGETS_CAUGHT_UP &&
	       plan.key[key].remember < 0 && !plan.records;
}

/* Whatever servers have forgotten, fences rise by the clock: if clients' clocks differ by less
 * than the time since the last one. */
static void check_clock(size_t client, size_t key)
{
	const struct hold *hold = &holds[client][key];
	size_t count = past[key].count++ % GRANTS;

	for (size_t i = 0; i < GRANTS; i++)
		if (plan.agrees && hold->kind == KIND_EXCLUSIVE &&
		    past[key].grants[i].at < tried[client] - APART &&
		    past[key].grants[i].fence >= hold->fence)
			world_violation("client %zu holds %s with the fence "
					"%lld, and one had %lld %.3f s before",
					client, plan.key[key].name,
					(long long)hold->fence,
					(long long)past[key].grants[i].fence,
					(double)(tried[client] -
						 past[key].grants[i].at) /
						1e6);
	past[key].grants[count].at = world_now;
	past[key].grants[count].fence = hold->fence;
}

static void check_fence(size_t client, size_t key)
{
	const struct hold *hold = &holds[client][key];
	int64_t earlier = earlier_fence(key, hold);

	if (are_fences_judged(key))
		check_stored(client, key);
	if (hold->fence <= earlier && are_fences_judged(key))
		world_violation("client %zu holds %s with the fence %lld, "
				"and an earlier one had %lld",
				client, plan.key[key].name,
				(long long)hold->fence, (long long)earlier);
	raise(&largest[key].all, hold->fence);
	if (hold->kind == KIND_EXCLUSIVE)
		raise(&largest[key].exclusive, hold->fence);
	if (hold->kind == KIND_REENTRANT)
		raise(&largest[key].owned[hold->part], hold->fence);
	if (hold->kind == KIND_PERMITS)
		raise(&largest[key].slot[hold->part], hold->fence);
}

/*
 * Somebody has taken the key away from it on some server, and it has begun all the same, as
 * it had its votes before. Whoever has the key now was granted it after that, by a server
 * that knew this fence. (If all others have ended, their fences may be smaller or larger.)
 */
static void check_evicted(size_t client, size_t key)
{
	int64_t fence = holds[client][key].fence;

	for (size_t i = 0; i < plan.clients; i++) {
		const struct hold *other = &holds[i][key];

		if (i != client && other->runs && !other->evicted &&
		    are_fences_judged(key) && fence >= other->fence)
			world_violation(
				"%s was taken away from client %zu, which "
				"begins with the fence %lld, and client %zu "
				"has it with %lld",
				plan.key[key].name, client, (long long)fence, i,
				(long long)other->fence);
	}
	raise(&largest[key].all, fence);
	raise(&largest[key].exclusive, fence);
}

void judge_evicted(size_t client, size_t key)
{
	holds[client][key].evicted = holds[client][key].runs;
}

void judge_forget(size_t key)
{
	memset(&largest[key], 0, sizeof(largest[key]));
	memset(&past[key], 0, sizeof(past[key]));
}

/* Until when (us) a server has it for this token, which may have lost it since. */
static int64_t lease_at(struct node *node, size_t key, const char *token)
{
	const char *name = plan.key[key].name;
	int64_t ends = store_lease(node->store, node_now(node) / MS,
				   (struct word){name, strlen(name)}, token);

	if (has_lost(node, key))
		return INT64_MAX;
	return ends < 0 ? -1 : clock_when(&node->wall, ends * MS);
}

static int64_t slot_at(struct node *node, size_t key, const char *token)
{
	char field[TOKEN_LONGEST + 8];

	snprintf(field, sizeof(field), "slot:%s", token);
	return number_at(node, key, field) % (1 << 20);
}

static size_t rivalry(size_t key)
{
	return plan.several ? 0 : key;
}

/* Whether it runs beside those to whom the key was given when it was taken away, or did so lately:
 * on a server that has not heard of that it has, and renews, its lease still. */
static bool has_run_on(size_t client, size_t key, int64_t lately)
{
	const struct hold *hold = &holds[client][key];

	return hold->evicted && (hold->runs || hold->ended > lately);
}

/* Whether others may have votes that this holder lacks. */
static bool has_rivals(size_t client, size_t key)
{
	int64_t lately = world_now - 2 * plan.key[key].ttl * MS;

	for (size_t i = 0; i < plan.clients; i++) {
		enum kind kind = plan.client[i].kind;

		if (i != client && plan_wants(i, key) && kind != KIND_NONE &&
		    (kind != KIND_SHARED ||
		     plan.client[client].kind != KIND_SHARED) &&
		    (tried[i] > lately || rivals[rivalry(key)].tries[i] ||
		     has_run_on(i, key, lately)))
			return true;
	}
	return false;
}

/* Each server has it that has been well for so long that two renewals at least have come. */
static void check_healed(size_t client, size_t key, const char *token)
{
	const struct client_plan *its = &plan.client[client];
	int64_t since = world_now - its->ttl * MS, held = since;
	/* what a redlock that was killed has sent may come late, and get it a lease */
	int64_t whole = since - plan.key[key].ttl * MS;

	/* if a server had forgotten the script of a release, the lease ends first */
	if (plan.flushes)
		held -= plan.key[key].ttl * MS;
	if (holds[client][key].since > held || its->script ||
	    !plan_is_near(client) || has_rivals(client, key))
		return;
	for (size_t i = 0; i < plan.servers; i++)
		if (plan_is_well(client, i, whole) && nodes[i].lost < since &&
		    !client_is_barred(client, key, i) &&
		    lease_at(&nodes[i], key, token) < 0)
			world_violation("client %zu has %s, but not on %s, "
					"which it has renewed it with",
					client, plan.key[key].name,
					nodes[i].name);
}

static void check_belief(size_t client, size_t key)
{
	const struct hold *hold = &holds[client][key];
	size_t count = 0;

	if (!hold->runs || hold->evicted || hold->until <= world_now)
		return;
	for (size_t i = 0; i < plan.servers; i++) {
		int64_t ends = lease_at(&nodes[i], key, hold->token);

		count += ends == INT64_MAX ||
			 (ends >= hold->until &&
			  (hold->kind != KIND_PERMITS ||
			   slot_at(&nodes[i], key, hold->token) == hold->part));
	}
	if (count <= plan.servers / 2)
		world_violation("client %zu believes in %s until %.6f, and "
				"only %zu servers have it for as long",
				client, plan.key[key].name,
				(double)hold->until / 1e6, count);
}

void judge_belief(size_t client, size_t key, const char *token, int64_t until)
{
	struct hold *hold = &holds[client][key];

	snprintf(hold->token, sizeof(hold->token), "%s", token);
	hold->until = until;
	check_belief(client, key);
	if (hold->runs && !hold->evicted && until > world_now)
		check_healed(client, key, token);
	once_held(client, key, token, tried[client]);
}

static bool is_settled(void)
{
	for (size_t i = 0; i < plan.stretches; i++)
		if (world_now >= plan.stretch[i].settled &&
		    world_now < plan.stretch[i].ends)
			return true;
	return false;
}

bool judge_is_full(size_t key)
{
	int64_t count = 0;

	for (size_t i = 0; i < plan.clients; i++)
		count += holds[i][key].runs;
	return count >=
	       (plan.key[key].kind == KIND_PERMITS ? plan.key[key].permits : 1);
}

void judge_end(size_t client)
{
	ran = world_now;
	for (size_t key = 0; key < plan.keys; key++) {
		if (judge_is_full(key))
			full[key] =
				world_now + plan.client[client].min_hold * MS;
		if (holds[client][key].runs) {
			rivals[rivalry(key)].ran = world_now;
			holds[client][key].ended = world_now;
		}
		holds[client][key].runs = false;
	}
}

int64_t judge_fence(size_t key)
{
	return largest[key].all;
}

/* --- who waits ------------------------------------------------------------- */

/* Since when it waits and it is calm; INT64_MAX: it is not. */
static int64_t calm_since(int64_t since)
{
	for (size_t i = 0; i < plan.stretches; i++)
		if (world_now >= plan.stretch[i].settled &&
		    world_now <= plan.stretch[i].ends)
			return since > plan.stretch[i].settled
				       ? since
				       : plan.stretch[i].settled;
	return INT64_MAX;
}

/* An owner may enter again and again, and the queue has to wait for it. If several
 * hold KEY, it may never be free, which a waiter that takes nothing waits for. */
static bool may_wait_on(size_t client)
{
	const struct client_plan *its = &plan.client[client];

	return plan.key[its->key].kind == KIND_REENTRANT ||
	       (its->kind == KIND_NONE &&
		plan.key[its->key].kind != KIND_EXCLUSIVE);
}

/* Whoever waits for a key that is free gets it with its next heartbeat. (What is killed while there
 * is peace leaves it in use: needless.h sees that.) */
static void check_free(size_t client, size_t key, int64_t since)
{
	if (judge_is_full(key))
		full[key] = world_now;
	if (since < full[key])
		since = full[key];
	if (!plan.several && !plan.crowds && !plan.peace &&
	    plan.client[client].kind != KIND_NONE &&
	    world_now - since > plan_free())
		world_violation("client %zu waits for %s, which has been free "
				"for %.3f s, while it was calm",
				client, plan.key[key].name,
				(double)(world_now - since) / 1e6);
}

static bool runs(size_t client)
{
	for (size_t key = 0; key < plan.keys; key++)
		if (holds[client][key].runs)
			return true;
	return false;
}

static void check_idle(int64_t since)
{
	int64_t idle;

	for (size_t i = 0; i < plan.clients; i++)
		if (runs(i))
			ran = world_now;
	if (since < ran)
		since = ran;
	idle = world_now - since;
	if (idle > plan_idle())
		world_violation("all wait, and nobody has run for %.3f s, "
				"while it was calm",
				(double)idle / 1e6);
}

static void check_wait(size_t client)
{
	size_t key = plan.client[client].key;
	int64_t since = calm_since(waits[client].since), waited;

	if (since == INT64_MAX || may_wait_on(client) || !plan_is_near(client))
		return;
	if (plan.several)
		check_idle(since);
	check_free(client, key, since);
	waited = world_now - since;
	if (waited > figures.longest)
		figures.longest = waited;
	if (waited > plan_bound(key))
		world_violation("client %zu has waited for %s for %.3f s, "
				"while it was calm",
				client, plan.key[key].name,
				(double)waited / 1e6);
}

void judge_wait(size_t client)
{
	waits[client] = (struct waiting){true, world_now};
}

void judge_served(size_t client)
{
	if (waits[client].waits)
		check_wait(client);
	waits[client].waits = false;
}

bool judge_waits(size_t client)
{
	return waits[client].waits;
}

void judge_waiters(void)
{
	for (size_t i = 0; i < plan.clients; i++)
		if (waits[i].waits)
			check_wait(i);
}

static bool is_wanted(size_t key)
{
	for (size_t i = 0; i < plan.clients; i++)
		if (rivals[key].tries[i])
			return true;
	return false;
}

/* An attempt of a client, and which servers have answered it. */
struct attempt {
	size_t client;
	char token[TOKEN_LONGEST + 1];
	int64_t tried; /* judge_try */
	int64_t began;
	bool by[NODES_MOST], enough;
};

static struct attempt last[CLIENTS_MOST]; /* of each client */
static bool answered[CLIENTS_MOST];       /* an attempt was, since judge_try */

static bool is_answered(const struct attempt *attempt)
{
	size_t count = 0;

	for (size_t i = 0; i < plan.servers; i++)
		count += attempt->by[i] &&
			 plan_is_well(attempt->client, i, attempt->began);
	return count > plan.servers / 2;
}

/* The attempt is over, and nothing has taken back what it was told. */
static void do_confirm(void *context, uint64_t value)
{
	struct attempt *attempt = context;

	(void)value;
	answered[attempt->client] |= attempt->tried == tried[attempt->client] &&
				     is_answered(attempt);
	free(attempt);
}

/* What comes later than in half a round may be too late. */
static void note_answer(size_t client, size_t node, const char *token,
			int64_t at)
{
	struct attempt *attempt = &last[client], *copy;
	int64_t round = plan.client[client].timeout * MS;

	if (strcmp(attempt->token, token) != 0) {
		*attempt = (struct attempt){
			.client = client, .tried = tried[client], .began = at};
		snprintf(attempt->token, sizeof(attempt->token), "%s", token);
	}
	if (attempt->began > at)
		attempt->began = at;
	attempt->by[node] = true;
	if (attempt->enough || !is_answered(attempt) ||
	    !plan_is_nearer(client) || world_now - attempt->began >= round / 2)
		return;
	attempt->enough = true;
	copy = xcalloc(1, sizeof(*copy));
	*copy = *attempt;
	world_at(attempt->began + 2 * round, do_confirm, copy, 0);
}

/* us: in which an attempt that most servers can answer begins and ends, after one that they
 * could not. */
static int64_t asks_again(size_t client)
{
	return OUTAGE_PAUSE + 2 * plan.client[client].timeout * MS +
	       8 * plan_way();
}

/* This server may be the only one of a quorum that knows how far the fences have come. (Who takes
 * nothing gets no fence.) */
static void check_vote(struct node *node, size_t client, struct word record,
		       int64_t fence)
{
	int64_t stored =
		store_field(node->store, node_now(node) / MS, record, "fence");

	if (plan.client[client].kind != KIND_NONE && fence < stored)
		world_violation("%s grants client %zu %.*s with the fence "
				"%lld, and has granted %lld",
				node->name, client, (int)record.length,
				record.data, (long long)fence,
				(long long)stored);
}

/* What a server gives to one, nobody else loses. */
static void check_grant(struct node *node, size_t client, struct word record,
			int64_t fence)
{
	check_vote(node, client, record, fence);
	for (size_t key = 0; key < plan.keys; key++)
		for (size_t i = 0; i < plan.clients; i++)
			if (plan_wants(client, key))
				check_belief(i, key);
}

void judge_watch(void)
{
	network_after_grant = check_grant;
	network_after_answer = note_answer;
}

void judge_tires(size_t client, bool over, bool lasts, const char *why)
{
	const struct client_plan *its = &plan.client[client];
	int64_t since = world_now - asks_again(client);

	if (!lasts)
		return;
	if (!over && (its->limit >= 0 || answered[client]))
		world_violation("client %zu waits no longer, because of what "
				"may pass: %s",
				client, why);
	/* others may have its slot on one of them, and another one on the next */
	if (its->kind == KIND_PERMITS && has_rivals(client, its->key))
		return;
	if (over && its->also_count == 0 && tried[client] < since &&
	    broken[its->key] < since && plan_is_nearer(client) &&
	    plan_is_whole(client, since))
		world_violation("client %zu has waited in vain, and most "
				"servers were there of late: %s",
				client, why);
}

void judge_try(size_t client)
{
	size_t key = rivalry(plan.client[client].key);

	tried[client] = world_now;
	answered[client] = false;
	if (!is_wanted(key))
		rivals[key].since = world_now;
	rivals[key].tries[client] = true;
}

static bool is_run(size_t key)
{
	for (size_t i = 0; i < plan.clients; i++)
		for (size_t k = 0; k < plan.keys; k++)
			if (holds[i][k].runs && rivalry(k) == key)
				return true;
	return false;
}

/* If the last one of those who came together gives up, one of them has had it, or somebody whose
 * release was on its way when the first of them came. (What a killed redlock of an owner has left is
 * renewed with the owner's other holds.) */
void judge_gives_up(size_t client)
{
	size_t key = rivalry(plan.client[client].key);
	int64_t since = rivals[key].since;

	rivals[key].tries[client] = false;
	if (!plan.crowds || plan.key[key].kind == KIND_REENTRANT ||
	    is_wanted(key) || rivals[key].ran + plan_way() >= since ||
	    since < rivals[key].sane || calm_since(since) != since ||
	    is_run(key))
		return;
	world_violation("all who want %s call it busy, and nobody has it",
			plan.key[key].name);
}

void judge_asked(size_t key)
{
	asked[key] = world_now;
}

/* There is no other program in this world. */
void judge_is_told(size_t client, const char *who)
{
	for (size_t i = 0; i < plan.servers; i++)
		if (nodes[i].losses > 0 || nodes[i].lost > 0)
			return;
	if (strstr(who, "another program") != NULL)
		world_violation("client %zu is told that %s is %s", client,
				plan.key[plan.client[client].key].name, who);
}

void judge_broken(size_t key)
{
	broken[key] = world_now;
}

bool judge_was_broken(size_t key, int64_t since)
{
	return broken[key] >= since;
}

/* It has tried to get one key, which may have been taken away before it had it all. (A server
 * that is cut off as its fence is raised costs a round, and one to give back what it has. Then it
 * tries again, if it has the time.) */
void judge_fails(size_t client, const char *why)
{
	const struct client_plan *its = &plan.client[client];

	if (broken[its->key] >= tried[client] ||
	    (its->limit >= 0 && its->limit <= 2 * its->timeout))
		return;
	if (its->also_count == 0 && plan_is_nearer(client) &&
	    plan_is_whole(client, tried[client]))
		world_violation("client %zu fails, and most servers are there: "
				"%s",
				client, why);
}

/* Rounds are repeated every tenth of a lease (watchdog.h), and each may need new connections;
 * so a third is enough, if rounds are not long beside it. */
static int64_t last_of_lease(size_t client)
{
	const struct client_plan *its = &plan.client[client];
	int64_t rounds = its->ttl * MS / 10 + 2 * its->timeout * MS +
			 8 * plan_way(),
		third = its->ttl * MS / 3;

	return rounds > third ? rounds : third;
}

/* Whether so many servers that were well of late, and have lost nothing, still have it that
 * they are a quorum. begun: judge_loses. */
static bool may_renew(size_t client, size_t key, int64_t begun)
{
	int64_t since = begun - last_of_lease(client);
	const struct hold *hold = &holds[client][key];
	size_t count = 0;

	for (size_t i = 0; *hold->token != '\0' && i < plan.servers; i++)
		count += plan_is_well(client, i, since) &&
			 !has_lost(&nodes[i], key) &&
			 lease_at(&nodes[i], key, hold->token) > world_now;
	return hold->since < since && count > plan.servers / 2;
}

/* It is lost because of one of its keys, which is not told. */
static void check_renewable(size_t client, int64_t begun, const char *why)
{
	bool all = plan_is_nearer(client);

	for (size_t key = 0; key < plan.keys; key++)
		all &= !plan_wants(client, key) ||
		       may_renew(client, key, begun);
	if (all)
		world_violation("client %zu loses its lock, which most servers "
				"have, and these were well of late: %s",
				client, why);
}

/* If others may have the votes of some servers, it needs all servers that are left. */
void judge_loses(size_t client, int64_t begun, const char *why)
{
	const struct client_plan *its = &plan.client[client];
	int64_t since = world_now - 2 * its->ttl * MS;
	size_t count = 0, need = plan.servers / 2 + 1;

	for (size_t key = 0; key < plan.keys; key++) {
		const struct hold *hold = &holds[client][key];

		if (!plan_wants(client, key))
			continue;
		if (hold->evicted || asked[key] >= hold->since)
			return;
		if (has_rivals(client, key))
			need = plan.servers;
		if (hold->since - SECOND < since)
			since = hold->since - SECOND;
	}
	check_renewable(client, begun, why);
	for (size_t i = 0; i < plan.servers; i++)
		count +=
			plan_is_well(client, i, since) && nodes[i].lost < since;
	if (count >= need && plan_is_near(client))
		world_violation("client %zu loses its lock, and most servers "
				"are there: %s",
				client, why);
}

void judge_spared(size_t client)
{
	size_t key = rivalry(plan.client[client].key);

	rivals[key].tries[client] = false;
	rivals[key].ran = world_now;
}

void judge_killed(size_t client)
{
	size_t key = rivalry(plan.client[client].key);

	killed[client] = world_now;
	rivals[key].tries[client] = false;
	rivals[key].sane = world_now + plan.key[key].ttl * MS;
}

/* Readers may pass each other. In which order permits and owners are served is not judged. */
static bool cannot_share(enum kind waiter, enum kind holder)
{
	return waiter == KIND_EXCLUSIVE ||
	       (waiter == KIND_SHARED && holder == KIND_EXCLUSIVE);
}

/* Whether a waiter may have been told that it need not run, and have left the line for the one
 * who has no --once-in. */
static bool is_spared(size_t waiter, size_t holder, size_t key)
{
	return plan.key[key].once_in > 0 && !plan.client[waiter].plain &&
	       plan.client[holder].plain;
}

/* Whether some server's clock was set back after the waiter had come there, and less than a heartbeat
 * before the holder came: until the waiter asks again there, all who come pass. */
static bool is_set_back(size_t waiter, size_t holder)
{
	int64_t asks = lease_heartbeat(plan.client[waiter].ttl) * MS + SECOND;

	for (size_t i = 0; i < plan.servers; i++)
		if (nodes[i].set_back > waits[waiter].since &&
		    nodes[i].set_back + asks > waits[holder].since)
			return true;
	return false;
}

/* Whether both came when it was calm and stood in line, the one the waiter long before
 * the holder. (After a split vote a waiter is not in line for a moment, and whoever asks
 * then may get KEY. A client that wants several keys stands in one line after the other,
 * and one that is far away in none for long. Those who come at once have split votes all the
 * time.) */
static bool is_passed(size_t waiter, size_t holder, size_t key)
{
	const struct client_plan *its = &plan.client[waiter];

	return waits[waiter].waits && its->key == key && its->also_count == 0 &&
	       plan_is_near(waiter) && !plan.crowds && !plan.peace &&
	       !is_spared(waiter, holder, key) &&
	       !is_set_back(waiter, holder) &&
	       cannot_share(its->kind, plan.client[holder].kind) &&
	       !plan.client[holder].nonblock && !plan.client[holder].poll &&
	       calm_since(waits[waiter].since) == waits[waiter].since &&
	       waits[waiter].since + LONG_BEFORE < waits[holder].since;
}

static void check_order(size_t client, size_t key)
{
	for (size_t i = 0; i < plan.clients; i++)
		if (is_passed(i, client, key))
			world_violation(
				"client %zu has waited for %s for %.3f s, "
				"but client %zu has it, who came later",
				i, plan.key[key].name,
				(double)(world_now - waits[i].since) / 1e6,
				client);
}

void judge_begin(size_t client, size_t key, int64_t fence, int64_t part,
		 bool evicted)
{
	holds[client][key] =
		(struct hold){true,  evicted, plan.client[client].kind,
			      fence, part,    world_now};
	figures.grants++;
	figures.calm_grants += is_settled();
	rivals[rivalry(key)].ran = world_now;
	rivals[rivalry(key)].tries[client] = false;
	needless_granted(key);
	if (evicted) {
		check_evicted(client, key);
		return;
	}
	check_others(client, key);
	check_fence(client, key);
	check_clock(client, key);
	check_order(client, key);
}

void judge_resume(size_t client, size_t key, int64_t fence, int64_t part)
{
	struct hold *hold = &holds[client][key];

	*hold = (struct hold){true,  hold->evicted, plan.client[client].kind,
			      fence, part,          world_now};
	if (hold->evicted)
		return;
	check_others(client, key);
	if (hold->kind == KIND_EXCLUSIVE && fence < largest[key].all &&
	    plan.forgetting == FORGETS_CAUGHT_UP && plan.key[key].remember < 0)
		world_violation("client %zu has prolonged %s with the fence "
				"%lld, and another had %lld in between",
				client, plan.key[key].name, (long long)fence,
				(long long)largest[key].all);
}

bool judge_is_calm(int64_t since)
{
	return calm_since(since) == since;
}

bool judge_holds(size_t client, size_t key, int64_t since)
{
	return holds[client][key].runs && !holds[client][key].evicted &&
	       holds[client][key].since <= since;
}

/* --- what is left ---------------------------------------------------------- */

static const char *type_of(const struct node *node, const char *key,
			   const char *suffix)
{
	char name[80];

	snprintf(name, sizeof(name),
		 *suffix != '\0' ? "{%s}:redlock%s" : "%s%s", key, suffix);
	return store_type(node->store, node_now(node) / MS,
			  (struct word){name, strlen(name)});
}

struct left {
	size_t client, key;
	int64_t tried;
	char token[TOKEN_LONGEST + 1];
	bool had[NODES_MOST]; /* at the last look, a server had it */
};

static struct left *left_new(size_t client, size_t key, const char *token)
{
	struct left *left = xcalloc(1, sizeof(*left));

	left->client = client;
	left->key = key;
	left->tried = tried[client];
	snprintf(left->token, sizeof(left->token), "%s", token);
	return left;
}

/* us: after it has died. By the second look a server has heard that its connections are closed, if it
 * is near and the network fails nobody. */
static const int64_t looks[] = {20 * MS, 200 * MS, SECOND, 3 * SECOND};
#define LOOKS (sizeof(looks) / sizeof(looks[0]))

/* Of that client a server has nothing that lasts longer than what a message grants; and no message
 * grants it anything once its server knows that nobody is there. */
static void look_at_dead(struct left *left, struct node *node, bool known)
{
	const char *key = plan.key[left->key].name;
	int64_t now = node_now(node) / MS,
		ends = store_lease(node->store, now,
				   (struct word){key, strlen(key)},
				   left->token);
	bool had = left->had[node->number];

	left->had[node->number] = ends > now;
	if (links[left->client][node->number].leased >= left->tried)
		return;
	if (ends > now + UNANSWERED)
		world_violation("%s has %s for client %zu, which was "
				"killed as it waited, for %lld ms more",
				node->name, key, left->client,
				(long long)(ends - now));
	if (known && ends > now && !had)
		world_violation("%s has granted %s to client %zu, which was "
				"killed long before, as it waited",
				node->name, key, left->client);
}

static void do_look_at_dead(void *context, uint64_t n)
{
	struct left *left = context;
	bool known = n > 1 && plan.peace && 4 * plan_way() < looks[1];

	for (size_t i = 0; i < plan.servers; i++)
		look_at_dead(left, &nodes[i], known);
	if (n + 1 < LOOKS)
		world_at(world_now + looks[n + 1] - looks[n], do_look_at_dead,
			 left, n + 1);
	else
		free(left);
}

void judge_dies(size_t client, size_t key, const char *token)
{
	if (token != NULL && waits[client].waits &&
	    plan.client[client].kind != KIND_REENTRANT)
		world_at(world_now + looks[0], do_look_at_dead,
			 left_new(client, key, token), 0);
}

/* Whether others of an owner may have the key: one is there, was killed, or could not give it
 * back. What it left lasts as long as others have the key. */
static bool is_owned(const struct left *left)
{
	int64_t since = world_now - SECOND;

	if (plan.key[left->key].kind != KIND_REENTRANT)
		return false;
	for (size_t i = left->client % 2; i < plan.clients; i += 2) {
		const struct hold *hold = &holds[i][left->key];

		if (plan_wants(i, left->key) &&
		    (client_token(i, left->key) != NULL || hold->runs ||
		     hold->ended > since || tried[i] > since || killed[i] > 0 ||
		     ((plan.twice || plan.renews) && gave_up[i]) ||
		     plan.client[i].min_hold > 0))
			return true;
	}
	return false;
}

static void do_look(void *context, uint64_t value)
{
	struct left *left = context;
	const char *key = plan.key[left->key].name, *token = left->token;
	const struct word name = {key, strlen(key)};
	/* it may be killed while it still waits for the last answers */
	bool over = !plan_storms() && !is_owned(left) &&
		    killed[left->client] < left->tried;
	int64_t since = world_now - 2 * SECOND;

	(void)value;
	for (size_t i = 0; over && i < plan.servers; i++)
		if (nodes[i].up && !plan_has_flushed(i) &&
		    /* or what --min-hold keeps lasts longer by that */
		    nodes[i].set_back < left->tried &&
		    (!plan.watches || plan_is_well(left->client, i, since)) &&
		    store_lease(nodes[i].store, node_now(&nodes[i]) / MS, name,
				token) >= 0)
			world_violation("%s still has %s for a client that has "
					"ended",
					nodes[i].name, key);
	free(left);
}

void judge_keeps(size_t client, size_t key, int64_t began, const char *why)
{
	size_t count = 0;

	gave_up[client] = true;
	for (size_t i = 0; i < plan.servers; i++)
		count += plan_is_well(client, i, began);
	if (plan.peace && plan_is_nearer(client) && count > plan.servers / 2)
		world_violation("client %zu cannot give %s back, and most "
				"servers are there: %s",
				client, plan.key[key].name, why);
}

void judge_left(size_t client, size_t key, const char *token, int64_t kept)
{
	enum kind kind = plan.key[key].kind;

	if (is_settled() &&
	    (kind == KIND_EXCLUSIVE || plan.records || plan.twice))
		world_at(world_now + SECOND + kept * MS, do_look,
			 left_new(client, key, token), 0);
}

/* Whether it goes at once: holders of a sorted set that --min-hold keeps stay there
 * until somebody looks; and an owner whose redlock was killed holds it once more. While there is
 * peace, those may have been killed a moment ago. */
static bool goes_at_once(size_t key)
{
	for (size_t i = 0; i < plan.clients; i++)
		if (plan_wants(i, key) && plan.client[i].min_hold > 0)
			return false;
	return plan.key[key].kind == KIND_EXCLUSIVE && !plan.flushes &&
	       !plan.mishaps;
}

void judge_leftovers(bool all)
{
	for (size_t i = 0; i < plan.servers; i++)
		for (size_t k = 0; k < plan.keys; k++) {
			const char *key = plan.key[k].name;

			if (!nodes[i].up || nodes[i].stopped ||
			    (!all && !goes_at_once(k)))
				continue;
			if (type_of(&nodes[i], key, "") != NULL)
				world_violation("%s still has %s, which "
						"nobody holds",
						nodes[i].name, key);
			if (all && !plan.set_back &&
			    type_of(&nodes[i], key, ":queue") != NULL)
				world_violation("%s still has a queue for %s",
						nodes[i].name, key);
		}
}
