#include "breaking.h"

#include <stdio.h>
#include <string.h>

#include "base/deadline.h"
#include "judge.h"
#include "lock/record.h"
#include "show/inspect.h"
#include "show/stopping.h"
#include "store.h"

#define EVICTED_MOST 100

static char digests[CLIENTS_MOST][KEYS_MOST][DIGEST_SIZE];
static char prefixes[CLIENTS_MOST][KEYS_MOST][TOKEN_PREFIX_SIZE];

/* The beginnings of tokens that a server has taken a key away from: the last ones. */
static char evicted[EVICTED_MOST][TOKEN_PREFIX_SIZE];
static size_t evictions;

bool breaking_begin(size_t client, size_t key, const char *token)
{
	char *prefix = prefixes[client][key];

	store_sha1(digests[client][key], (struct word){token, strlen(token)});
	snprintf(prefix, TOKEN_PREFIX_SIZE, "%.*s", TOKEN_PREFIX_SIZE - 1,
		 token);
	for (size_t i = 0; i < EVICTED_MOST; i++)
		if (strcmp(evicted[i], prefix) == 0)
			return true;
	return false;
}

/* The request that has last taken a key away there, while the server has forgotten nothing
 * since: if it arrives again, it takes nothing away. */
static struct {
	char token[TOKEN_SIZE + 1];
	unsigned losses;
} breaks[NODES_MOST][KEYS_MOST];

static bool is_repeated(const struct node *node, struct word key,
			struct word token)
{
	size_t k = 0;

	while (k < plan.keys && strncmp(plan.key[k].name, key.data, key.length))
		k++;
	if (k == plan.keys || token.length > TOKEN_SIZE ||
	    store_type(node->store, node_now(node) / MS, key) == NULL)
		return false;
	if (strncmp(breaks[node->number][k].token, token.data, token.length) ==
		    0 &&
	    breaks[node->number][k].losses == node->losses)
		return true;
	memcpy(breaks[node->number][k].token, token.data, token.length);
	breaks[node->number][k].losses = node->losses;
	return false;
}

/* Who has it there, by the record. */
static void note_evicted(struct node *node, struct word key, struct word token)
{
	char name[40], *prefix = evicted[evictions % EVICTED_MOST];
	struct word last;

	if (is_repeated(node, key, token))
		return;
	snprintf(name, sizeof(name), "{%.*s}:redlock", (int)key.length,
		 key.data);
	last = store_value(node->store, node_now(node) / MS,
			   (struct word){name, strlen(name)}, "last");
	if (last.length != TOKEN_PREFIX_SIZE - 1)
		return;
	evictions++;
	memcpy(prefix, last.data, last.length);
	prefix[last.length] = '\0';
	for (size_t i = 0; i < plan.clients; i++)
		for (size_t k = 0; k < plan.keys; k++)
			if (strcmp(prefixes[i][k], prefix) == 0)
				judge_evicted(i, k);
}

void breaking_watch(void)
{
	network_before_break = note_evicted;
}

/* A waiter may have had votes of some servers, which it has given back: then it may have got the
 * key since. */
static void judge_fate(const struct asked *asked, size_t key, int64_t began)
{
	if (asked->fate == FATE_HOLDS || asked->fate == FATE_DELETED ||
	    plan.forgetting != FORGETS_CAUGHT_UP)
		return;
	for (size_t i = 0; i < plan.clients; i++)
		if (judge_holds(i, key, began) &&
		    strcmp(digests[i][key], asked->seen.digest) == 0)
			world_violation("client %zu has %s, but is said to "
					"have stopped (%d)",
					i, plan.key[key].name, asked->fate);
}

static void judge_end_of(size_t client, size_t key, enum stopping_result result,
			 const struct stopping *stopping, int64_t began)
{
	world_tell("breaker", "%zu: %s", client,
		   result == STOPPING_DONE     ? "they have stopped"
		   : result == STOPPING_NOBODY ? "nobody holds it"
		   : result == STOPPING_FAILED ? "too few servers answer"
					       : "it is still renewed");
	for (size_t n = 0; result != STOPPING_FAILED && n < stopping->count;
	     n++)
		judge_fate(&stopping->asked[n], key, began);
	if (result == STOPPING_OVER && judge_is_calm(began) &&
	    plan_is_near(client))
		world_violation("%s is still renewed, although its holders "
				"were asked to stop",
				plan.key[key].name);
}

void breaking_ask(size_t client, struct session *session)
{
	size_t key = plan.client[client].key;
	struct holders holders;
	struct stopping stopping;
	struct error error;
	struct buffer why = {0};
	enum stopping_result result;
	int64_t began = world_now;

	record_describe_breaker(&why, "it is stuck");
	holders_init(&holders, &session->quorum, plan.key[key].name);
	if (inspect_lock(&holders, &error) == 0 &&
	    holders_servers(&holders, STANDING_HELD) > 0) {
		world_tell("breaker", "%zu asks the holders of %s to stop",
			   client, plan.key[key].name);
		judge_asked(key);
		stopping_init(&stopping, &holders, why.data);
		while ((result = stopping_round(&stopping, &error)) ==
		       STOPPING_WAITS)
			deadline_poll(NULL, 0,
				      deadline_in(stopping_pause(&stopping)));
		judge_end_of(client, key, result, &stopping, began);
		stopping_release(&stopping);
	}
	holders_release(&holders);
	buffer_release(&why);
}

void breaking_force(size_t client, struct session *session)
{
	size_t key = plan.client[client].key;
	struct holders holders;
	struct error error;
	struct buffer why = {0};

	record_describe_breaker(&why, "it is stuck");
	holders_init(&holders, &session->quorum, plan.key[key].name);
	if (inspect_lock(&holders, &error) == 0 &&
	    holders_servers(&holders, STANDING_HELD) > 0) {
		world_tell("breaker", "%zu takes %s away", client,
			   plan.key[key].name);
		judge_broken(key);
		inspect_break(&holders, false, why.data, &error);
	}
	holders_release(&holders);
	buffer_release(&why);
}
