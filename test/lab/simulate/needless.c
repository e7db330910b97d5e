#include "needless.h"

#include <string.h>

#include "client.h"
#include "judge.h"

#define LOOKS (100 * MS) /* from one look to the next */
#define TOKENS_MOST (2 * CLIENTS_MOST)

/* us: until when each client's wait was explained by something. */
static int64_t explained[CLIENTS_MOST];

static bool is_same(struct word word, const char *text)
{
	return text != NULL && word.length == strlen(text) &&
	       memcmp(word.data, text, word.length) == 0;
}

/* Whether a redlock that is there has this token of the key: it holds it, or is about to get it,
 * or will give it back soon. */
static bool is_in_use(size_t key, struct word token)
{
	for (size_t i = 0; i < plan.clients; i++)
		if (is_same(token, client_token(i, key)))
			return true;
	return false;
}

/* Whether the server has nothing for others that outlasts them. An owner's token may have been left
 * by a redlock that was killed, and still others of that owner have it. */
static bool is_open(size_t client, size_t key, struct node *node)
{
	const char *name = plan.key[key].name;
	struct word tokens[TOKENS_MOST];
	size_t count = store_tokens(node->store, node_now(node) / MS,
				    (struct word){name, strlen(name)}, tokens,
				    TOKENS_MOST);

	for (size_t n = 0; n < count; n++)
		if (plan.key[key].kind == KIND_REENTRANT
			    ? !is_same(tokens[n], client_token(client, key))
			    : !is_in_use(key, tokens[n]))
			return false;
	return true;
}

/* Whether any server has, or had of late, what another does not know: then young records are a
 * sign that one has forgotten it (trust.h). */
static bool is_any_left(size_t client, size_t key)
{
	for (size_t i = 0; i < plan.servers; i++)
		if (nodes[i].losses > 0 || plan.records ||
		    !is_open(client, key, &nodes[i]))
			return true;
	return false;
}

static bool is_free_for(size_t client, size_t key)
{
	int64_t since = world_now - plan_needless(client);
	bool left = is_any_left(client, key);
	size_t count = 0;

	for (size_t i = 0; i < plan.servers; i++)
		count += plan_is_well(client, i, since) &&
			 (!left || plan_has_old_record(i, key)) &&
			 is_open(client, key, &nodes[i]);
	return count > plan.servers / 2;
}

/* Whoever takes nothing waits until nobody has the key, and he is not judged. Nor are those who want
 * several keys: they have some while they wait for others. And if a server's answers take as long as
 * a round, nothing can be had soon. */
static void look_at(size_t client)
{
	const struct client_plan *its = &plan.client[client];
	int64_t lasts;

	if (its->kind == KIND_NONE || plan.several || !judge_waits(client) ||
	    judge_is_full(its->key) || !plan_is_near(client) ||
	    !is_free_for(client, its->key))
		explained[client] = world_now;
	lasts = world_now - explained[client];
	if (lasts > figures.needless)
		figures.needless = lasts;
	if (lasts > plan_needless(client))
		world_violation("client %zu waits for %s, and for %.3f s "
				"nothing has stood in its way",
				client, plan.key[its->key].name,
				(double)lasts / 1e6);
}

static void do_look(void *context, uint64_t value)
{
	(void)context;
	(void)value;
	for (size_t i = 0; i < plan.clients; i++)
		look_at(i);
	if (plan.peace && world_now < plan.stretch[0].ends)
		world_at(world_now + LOOKS, do_look, NULL, 0);
}

void needless_granted(size_t key)
{
	for (size_t i = 0; i < plan.clients; i++)
		if (plan.client[i].key == key)
			explained[i] = world_now;
}

void needless_watch(void)
{
	if (plan.peace)
		world_at(0, do_look, NULL, 0);
}
