#include "judge.h"

#include <stdio.h>
#include <string.h>

struct hold {
	bool runs;
	enum kind kind;
	int64_t fence;
	int64_t part; /* judge_begin */
	int64_t since;
};

struct waiting {
	bool waits;
	int64_t since;
};

#define LONG_BEFORE \
	2500000 /* us: those who come within this may change places */

struct figures figures;

static struct hold holds[CLIENTS_MOST];
static struct waiting waits[CLIENTS_MOST];

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

static void check_others(size_t client, const struct key_plan *key)
{
	int64_t count = 1;

	for (size_t i = 0; i < plan.clients; i++) {
		if (i == client || !holds[i].runs ||
		    plan.client[i].key != plan.client[client].key)
			continue;
		count++;
		if (excludes(&holds[client], &holds[i]))
			world_violation("two hold %s: client %zu since "
					"%.6f, and client %zu now",
					key->name, i,
					(double)holds[i].since / 1e6, client);
	}
	if (holds[client].kind != KIND_PERMITS)
		return;
	if (count > key->permits)
		world_violation("%lld hold %s, which has %lld permits",
				(long long)count, key->name,
				(long long)key->permits);
	if (holds[client].part < 1 || holds[client].part > key->permits)
		world_violation("client %zu holds slot %lld of %s", client,
				(long long)holds[client].part, key->name);
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

static void check_fence(size_t client, size_t key)
{
	const struct hold *hold = &holds[client];
	int64_t earlier = earlier_fence(key, hold);

	if (hold->fence <= earlier && plan.forgetting == FORGETS_CAUGHT_UP &&
	    plan.key[key].remember < 0)
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

static bool is_settled(void)
{
	for (size_t i = 0; i < plan.stretches; i++)
		if (world_now >= plan.stretch[i].settled &&
		    world_now < plan.stretch[i].ends)
			return true;
	return false;
}

void judge_end(size_t client)
{
	holds[client].runs = false;
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

static void check_wait(size_t client)
{
	size_t key = plan.client[client].key;
	int64_t since = calm_since(waits[client].since), waited;

	if (since == INT64_MAX || may_wait_on(client))
		return;
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

void judge_waiters(void)
{
	for (size_t i = 0; i < plan.clients; i++)
		if (waits[i].waits)
			check_wait(i);
}

/* Whether both came when it was calm and stood in line, the one who waits long before the
 * other, who has KEY now. (After a split vote a waiter is not in line for a moment, and who
 * looks then may have it.) */
static bool is_passed(size_t waiter, size_t holder)
{
	const struct client_plan *its = &plan.client[holder];

	return waits[waiter].waits && plan.client[waiter].key == its->key &&
	       plan.client[waiter].kind == KIND_EXCLUSIVE && !its->nonblock &&
	       !its->poll &&
	       calm_since(waits[waiter].since) == waits[waiter].since &&
	       waits[waiter].since + LONG_BEFORE < waits[holder].since;
}

static void check_order(size_t client)
{
	size_t key = plan.client[client].key;

	if (plan.key[key].kind != KIND_EXCLUSIVE || plan.key[key].mixed)
		return;
	for (size_t i = 0; i < plan.clients; i++)
		if (is_passed(i, client))
			world_violation(
				"client %zu has waited for %s for %.3f s, "
				"but client %zu has it, who came later",
				i, plan.key[key].name,
				(double)(world_now - waits[i].since) / 1e6,
				client);
}

void judge_begin(size_t client, int64_t fence, int64_t part)
{
	size_t key = plan.client[client].key;

	holds[client] = (struct hold){true, plan.client[client].kind, fence,
				      part, world_now};
	figures.grants++;
	figures.calm_grants += is_settled();
	check_others(client, &plan.key[key]);
	check_fence(client, key);
	check_order(client);
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

/* Whether it goes at once: holders of a sorted set that --min-hold keeps stay there
 * until somebody looks; and an owner whose redlock was killed holds it once more. */
static bool goes_at_once(size_t key)
{
	for (size_t i = 0; i < plan.clients; i++)
		if (plan.client[i].key == key && plan.client[i].min_hold > 0)
			return false;
	return plan.key[key].kind == KIND_EXCLUSIVE;
}

void judge_leftovers(bool all)
{
	for (size_t i = 0; i < plan.servers; i++)
		for (size_t k = 0; k < plan.keys; k++) {
			const char *key = plan.key[k].name;

			if (!nodes[i].up || (!all && !goes_at_once(k)))
				continue;
			if (type_of(&nodes[i], key, "") != NULL)
				world_violation("%s still has %s, which "
						"nobody holds",
						nodes[i].name, key);
			if (all && type_of(&nodes[i], key, ":queue") != NULL)
				world_violation("%s still has a queue for %s",
						nodes[i].name, key);
		}
}
