#include "needless.h"

#include <string.h>

#include "client.h"
#include "judge.h"

#define LOOKS (100 * MS) /* from one look to the next */
#define TOKENS_MOST (2 * CLIENTS_MOST)

/* us: until when each client's wait was explained by something; by more than young records. */
static int64_t explained[CLIENTS_MOST], held_up[CLIENTS_MOST];

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

/* young: records may be, too. */
static bool is_free_for(size_t client, size_t key, bool young)
{
	int64_t since = world_now - (young ? plan_needless_young(client)
					   : plan_needless(client));
	bool left = !young && is_any_left(client, key);
	size_t count = 0;

	for (size_t i = 0; i < plan.servers; i++)
		count += plan_is_well(client, i, since) &&
			 (!left || plan_has_old_record(i, key)) &&
			 is_open(client, key, &nodes[i]);
	return count > plan.servers / 2;
}

static void judge(size_t client, int64_t since, int64_t most)
{
	int64_t lasts = world_now - since;

	if (lasts > figures.needless && most == plan_needless(client))
		figures.needless = lasts;
	if (lasts > most)
		world_violation("client %zu waits for %s, and for %.3f s "
				"nothing has stood in its way",
				client, plan.key[plan.client[client].key].name,
				(double)lasts / 1e6);
}

/* Those who want several keys are not judged: they have some while they wait for others. And if a
 * server's answers take as long as a round, nothing can be had soon. Whoever takes nothing waits until
 * nobody has the key, which is known of exclusive keys. It begins no records: so if most of the servers
 * have lost theirs, nothing but time tells that they have forgotten nobody. */
static void look_at(size_t client)
{
	const struct client_plan *its = &plan.client[client];
	bool takes = its->kind != KIND_NONE,
	     judged = takes ||
		      (plan.key[its->key].kind == KIND_EXCLUSIVE && !its->poll);
	bool waits = judged && !plan.several && judge_waits(client) &&
		     !judge_is_full(its->key) && plan_is_near(client);

	if (!waits || !is_free_for(client, its->key, false))
		explained[client] = world_now;
	if (!waits || takes || !is_free_for(client, its->key, true))
		held_up[client] = world_now;
	judge(client, explained[client], plan_needless(client));
	judge(client, held_up[client], plan_needless_young(client));
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
			explained[i] = held_up[i] = world_now;
}

void needless_watch(void)
{
	if (plan.peace)
		world_at(0, do_look, NULL, 0);
}
