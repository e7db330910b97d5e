#include "server/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/quorum.h"

/* What the seeds have said. */
struct census {
	struct quorum seeds;
	struct nodes said[SEEDS_MAX]; /* owned; none while it has not */
};

static int by_name(const void *a, const void *b)
{
	return strcasecmp(((const struct url *)a)->name,
			  ((const struct url *)b)->name);
}

/* In the order of their names, each once. */
static void sort(struct nodes *nodes)
{
	size_t kept = 0;

	qsort(nodes->list, nodes->count, sizeof(*nodes->list), by_name);
	for (size_t i = 0; i < nodes->count; i++) {
		if (kept > 0 &&
		    by_name(&nodes->list[kept - 1], &nodes->list[i]) == 0)
			url_release(&nodes->list[i]);
		else
			nodes->list[kept++] = nodes->list[i];
	}
	nodes->count = kept;
}

static bool are_alike(const struct nodes *one, const struct nodes *other)
{
	bool alike = one->count > 0 && one->count == other->count;

	for (size_t i = 0; alike && i < one->count; i++)
		alike = by_name(&one->list[i], &other->list[i]) == 0;
	return alike;
}

/* Those that most seeds name alike, where these are a majority; or NULL. */
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

/* A node that does not know its own address is where we have reached it. */
static void on_nodes(void *context, size_t i, const struct reply *reply)
{
	struct census *census = context;
	struct server *seed = &census->seeds.servers[i];
	char address[64];

	nodes_release(&census->said[i]); /* rubbish may stand behind it */
	if (reply == NULL || reply->failure != NULL)
		return;
	if (stream_address(&seed->stream, address, sizeof(address)) < 0)
		strlcpy(address, seed->url.host, sizeof(address));
	if (reply->count != 1 || reply->value[0].text == NULL ||
	    nodes_read(&census->said[i], reply->value[0].text, address) < 0) {
		server_blame(seed, CAUSE_NONSENSE,
			     "an answer that makes no sense");
		return;
	}
	sort(&census->said[i]);
	log_step("%s: names %zu masters", seed->url.name,
		 census->said[i].count);
}

static void open_seeds(struct census *census, const struct url *url,
		       int64_t timeout)
{
	struct url seeds[SEEDS_MAX];

	for (size_t i = 0; i < url->seed_count; i++) {
		seeds[i] = url_copy(&url->seeds[i]);
		seeds[i].user = heap_copy(url->user);
		seeds[i].password = heap_copy(url->password);
	}
	quorum_init(&census->seeds, seeds, url->seed_count, timeout, false);
	for (size_t i = 0; i < url->seed_count; i++) {
		census->seeds.servers[i].identify = false;
		census->seeds.servers[i].bounds.wide = true;
	}
}

static int explain(const struct census *census, struct server *server)
{
	const struct server *culprit = NULL;
	char text[WHY_SIZE - 60] = "";
	int length = 0;

	for (size_t i = 0; i < census->seeds.count; i++) {
		const struct server *seed = &census->seeds.servers[i];

		if (census->said[i].count > 0)
			continue;
		if (culprit == NULL || !cause_is_passing(seed->cause))
			culprit = seed;
		if (length < (int)sizeof(text))
			length += snprintf(
				text + length, sizeof(text) - (size_t)length,
				"%s%s: %s", length > 0 ? ", " : ": ",
				seed->url.name,
				seed->why[0] != '\0' ? seed->why : "no answer");
	}
	snprintf(server->why, sizeof(server->why),
		 "no majority of its nodes names the same masters%s", text);
	server->cause = culprit != NULL ? culprit->cause : CAUSE_NO_MAJORITY;
	return -1;
}

int cluster_ask(struct server *server, int64_t timeout, struct nodes *nodes)
{
	static const struct argument words[] = {{"CLUSTER", 7}, {"NODES", 5}};
	struct census *census = heap_get(1, sizeof(*census));
	struct judge judge = {census, on_nodes, is_decided};
	struct nodes *found;
	int result = 0;

	*nodes = (struct nodes){0};
	open_seeds(census, &server->url, timeout);
	quorum_round(&census->seeds);
	for (size_t i = 0; i < census->seeds.count; i++)
		quorum_ask(&census->seeds, i, false, words, 2);
	quorum_gather(&census->seeds, deadline_in(timeout), &judge);
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
