#include "server/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/quorum.h"

/* --- what a majority says ------------------------------------------------- */

/* What the seeds have said. */
struct census {
	struct quorum seeds;
	struct nodes said[SEEDS_MAX]; /* owned; none while it has not */
};

static int compare(const void *a, const void *b)
{
	const struct endpoint *one = a, *other = b;
	int hosts = strcasecmp(one->host, other->host);

	return hosts != 0 ? hosts : one->port - other->port;
}

/* In order, each once. */
static void sort(struct nodes *nodes)
{
	size_t kept = 0;

	qsort(nodes->list, nodes->count, sizeof(*nodes->list), compare);
	for (size_t i = 0; i < nodes->count; i++) {
		if (kept > 0 &&
		    endpoint_is_same(&nodes->list[kept - 1], &nodes->list[i]))
			endpoint_release(&nodes->list[i]);
		else
			nodes->list[kept++] = nodes->list[i];
	}
	nodes->count = kept;
}

static bool are_alike(const struct nodes *one, const struct nodes *other)
{
	bool alike = one->count > 0 && one->count == other->count;

	for (size_t i = 0; alike && i < one->count; i++)
		alike = endpoint_is_same(&one->list[i], &other->list[i]);
	return alike;
}

/* What a majority of the seeds names alike, or NULL. */
static struct nodes *find_majority(struct census *census)
{
	for (size_t i = 0; i < census->seeds.count; i++) {
		struct nodes *one = &census->said[i];
		size_t alike = 0;

		for (size_t k = 0; k < census->seeds.count; k++)
			alike += are_alike(one, &census->said[k]);
		if (alike >= quorum_size(&census->seeds))
			return one;
	}
	return NULL;
}

static bool is_decided(void *context)
{
	return find_majority(context) != NULL;
}

/* A node that does not know its own address has the one that we reached. */
static void on_nodes(void *context, size_t i, const struct reply *reply)
{
	struct census *census = context;
	struct server *seed = &census->seeds.servers[i];
	char address[64];

	nodes_release(&census->said[i]); /* rubbish may have followed it */
	if (reply == NULL || reply->failure != NULL)
		return;
	if (stream_address(&seed->conn.stream, address, sizeof(address)) < 0)
		strlcpy(address, seed->url.at.host, sizeof(address));
	if (reply->count != 1 || reply->value[0].text == NULL ||
	    nodes_read(&census->said[i], reply->value[0].text, address,
		       seed->url.tls) < 0) {
		conn_blame(&seed->conn, CAUSE_NONSENSE,
			   "an answer that makes no sense");
		return;
	}
	sort(&census->said[i]);
	log_step("%s: names %zu masters", seed->url.name,
		 census->said[i].count);
}

static bool has(const struct nodes *said, const struct endpoint *master)
{
	return said->count > 0 && bsearch(master, said->list, said->count,
					  sizeof(*master), compare) != NULL;
}

static bool most_have(const struct census *census,
		      const struct endpoint *master)
{
	size_t count = 0;

	for (size_t i = 0; i < census->seeds.count; i++)
		count += has(&census->said[i], master);
	return count >= quorum_size(&census->seeds);
}

/* The first that a seed names, and most do not; NULL for none. */
static const struct endpoint *find_surplus(const struct census *census,
					   const struct nodes *said)
{
	for (size_t k = 0; k < said->count; k++)
		if (!most_have(census, &said->list[k]))
			return &said->list[k];
	return NULL;
}

/* The first that most name, and a seed does not; NULL for none. */
static const struct endpoint *find_lack(const struct census *census,
					const struct nodes *said)
{
	for (size_t i = 0; i < census->seeds.count; i++) {
		const struct nodes *other = &census->said[i];

		for (size_t k = 0; k < other->count; k++)
			if (!has(said, &other->list[k]) &&
			    most_have(census, &other->list[k]))
				return &other->list[k];
	}
	return NULL;
}

#define SAID_TEXT (ENDPOINT_TEXT + 40)

/* What a seed has said, by one that most others did not say. */
static void describe(const struct census *census, const struct nodes *said,
		     char text[SAID_TEXT])
{
	const struct endpoint *surplus = find_surplus(census, said),
			      *lack = find_lack(census, said);
	char name[ENDPOINT_TEXT];

	if (surplus != NULL)
		snprintf(text, SAID_TEXT, "it names %s",
			 endpoint_format(name, surplus));
	else if (lack != NULL)
		snprintf(text, SAID_TEXT, "it does not name %s",
			 endpoint_format(name, lack));
	else
		strlcpy(text, "it names those that most name", SAID_TEXT);
}

static int explain(const struct census *census, struct server *server)
{
	struct refusals refusals = {0};
	struct refusal_list list = {.refusal = &server->conn.refusal};

	refusal_set(list.refusal, CAUSE_NODES_DIFFER,
		    "no majority of its nodes names the same masters");
	for (size_t i = 0; i < census->seeds.count; i++) {
		const struct server *seed = &census->seeds.servers[i];
		const struct refusal *why = &seed->conn.refusal;
		char text[SAID_TEXT];

		if (census->said[i].count > 0) {
			describe(census, &census->said[i], text);
			refusal_list_add(&list, seed->url.name, text);
			continue;
		}
		refusals_add(&refusals, why);
		refusal_list_add(&list, seed->url.name,
				 why->text[0] != '\0' ? why->text
						      : "no answer");
	}
	refusal_list_end(&list);
	list.refusal->cause = refusals_cause(&refusals, census->seeds.count,
					     CAUSE_NODES_DIFFER);
	return -1;
}

int cluster_ask(struct server *server, int64_t timeout, struct nodes *nodes)
{
	static const struct argument words[] = {{"CLUSTER", 7}, {"NODES", 5}};
	struct census *census = xcalloc(1, sizeof(*census));
	struct reply_handler handler = {census, on_nodes, is_decided};
	struct nodes *found;
	int result = 0;

	*nodes = (struct nodes){0};
	quorum_init_seeds(&census->seeds, &server->url, timeout);
	for (size_t i = 0; i < census->seeds.count; i++)
		census->seeds.servers[i].conn.bounds.wide = true;
	quorum_round(&census->seeds);
	for (size_t i = 0; i < census->seeds.count; i++)
		quorum_ask(&census->seeds, i, ASK_PLAINLY, words, 2);
	quorum_gather(&census->seeds, wait_until(deadline_in(timeout)),
		      &handler);
	found = find_majority(census);
	if (found != NULL) {
		*nodes = *found;
		*found = (struct nodes){0};
	} else {
		result = explain(census, server);
	}
	for (size_t i = 0; i < census->seeds.count; i++)
		nodes_release(&census->said[i]);
	quorum_release(&census->seeds);
	free(census);
	return result;
}
