#include "server/discovery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bounds.h"
#include "base/log.h"
#include "server/hash_slot.h"
#include "server/nodes.h"

#define CHECK_PAUSE 1000 /* ms */

/* Whether addresses are not enough: certificates are for names. */
static bool asks_names(const struct discovery *discovery)
{
	return discovery->url->tls && discovery->url->kind == URL_CLUSTER;
}

struct discovery *discovery_new(const struct url *url)
{
	struct discovery *discovery;

	if (url->seeds == NULL)
		return NULL;
	discovery = xcalloc(1, sizeof(*discovery));
	discovery->url = url;
	discovery->seeds = xcalloc(url->seed_count, sizeof(*discovery->seeds));
	for (size_t i = 0; i < url->seed_count; i++) {
		struct seed *seed = &discovery->seeds[i];

		seed->url = url_seed(url, i);
		conn_init(&seed->conn, &seed->url, false, false);
		seed->conn.login_optional = true;
		seed->conn.in_cluster = url->kind == URL_CLUSTER;
		seed->conn.bounds.wide = asks_names(discovery);
	}
	last_place_init(&discovery->last_place, "places", url->name);
	return discovery;
}

static void forget_said(struct seed *seed)
{
	seed->waiting = false;
	for (size_t n = 0; n < SEED_NAMES; n++)
		endpoint_release(&seed->names[n]);
	free(seed->nodes);
	seed->nodes = NULL;
}

void discovery_free(struct discovery *discovery)
{
	if (discovery == NULL)
		return;
	for (size_t i = 0; i < discovery->url->seed_count; i++) {
		forget_said(&discovery->seeds[i]);
		conn_release(&discovery->seeds[i].conn);
		url_release(&discovery->seeds[i].url);
	}
	free(discovery->seeds);
	endpoint_release(&discovery->endpoint);
	buffer_release(&discovery->key);
	buffer_release(&discovery->request);
	buffer_release(&discovery->nodes_request);
	free(discovery);
}

void discovery_aim(struct discovery *discovery, struct argument key)
{
	discovery->key.length = 0;
	buffer_append(&discovery->key, key.data, key.length);
}

void discovery_pin(struct discovery *discovery, const struct endpoint *endpoint)
{
	discovery_forget(discovery);
	discovery->endpoint = endpoint_copy(endpoint);
	discovery->pinned = true;
}

static unsigned hash_slot_of_key(const struct discovery *discovery)
{
	if (discovery->url->kind == URL_SENTINEL || discovery->key.length == 0)
		return 0;
	return hash_slot(discovery->key.data, discovery->key.length);
}

/* --- asking ---------------------------------------------------------------- */

static void format_request(struct discovery *discovery)
{
	const char *master = discovery->url->master;
	const struct argument sentinel[] = {
		{"SENTINEL", 8},
		{"GET-MASTER-ADDR-BY-NAME", 23},
		{master, master != NULL ? strlen(master) : 0},
	};
	const struct argument cluster[] = {
		{"EXISTS", 6},
		{discovery->key.data, discovery->key.length},
	};
	const struct argument nodes[] = {{"CLUSTER", 7}, {"NODES", 5}};
	bool is_cluster = discovery->url->kind == URL_CLUSTER;

	discovery->nodes_request.length = 0;
	if (asks_names(discovery))
		request_format(&discovery->nodes_request, nodes, 2);
	discovery->request.length = 0;
	request_format(&discovery->request, is_cluster ? cluster : sentinel,
		       is_cluster ? 2 : 3);
}

static int ask_seed(struct discovery *discovery, struct seed *seed)
{
	struct owed nodes = {.ticket = discovery->ticket - 1};
	struct owed owed = {.ticket = discovery->ticket};

	if (conn_open(&seed->conn, &seed->url.at) < 0 ||
	    (asks_names(discovery) &&
	     conn_ask(&seed->conn, nodes, &discovery->nodes_request) < 0))
		return -1;
	return conn_ask(&seed->conn, owed, &discovery->request);
}

/* The seeds are down: discovery_stop has closed their connections. */
static void ask_all(struct discovery *discovery)
{
	discovery->ticket += 2;
	discovery->hash_slot = hash_slot_of_key(discovery);
	discovery->next_check = deadline_in(CHECK_PAUSE);
	format_request(discovery);
	for (size_t i = 0; i < discovery->url->seed_count; i++) {
		struct seed *seed = &discovery->seeds[i];

		forget_said(seed);
		seed->conn.refusal.text[0] = '\0';
		seed->waiting = ask_seed(discovery, seed) == 0;
	}
}

void discovery_check(struct discovery *discovery)
{
	if (discovery->seeking || discovery->pinned ||
	    !deadline_passed(discovery->next_check))
		return;
	discovery_stop(discovery);
	discovery->checking = true;
	ask_all(discovery);
}

void discovery_start(struct discovery *discovery)
{
	unsigned hash_slot = hash_slot_of_key(discovery);

	if (discovery->seeking || discovery->pinned)
		return;
	discovery_stop(discovery);
	discovery->seeking = true;
	if (discovery->hash_slot != hash_slot)
		discovery_forget(discovery);
	if (discovery->endpoint.host == NULL)
		last_place_read(&discovery->last_place, hash_slot,
				&discovery->endpoint);
	ask_all(discovery);
}

void discovery_stop(struct discovery *discovery)
{
	discovery->seeking = discovery->checking = false;
	for (size_t i = 0; i < discovery->url->seed_count; i++)
		conn_close(&discovery->seeds[i].conn);
}

void discovery_forget(struct discovery *discovery)
{
	endpoint_release(&discovery->endpoint);
	discovery->pinned = false;
}

/* --- what the seeds say ---------------------------------------------------- */

static int reject(struct seed *seed, enum cause cause, const char *why)
{
	forget_said(seed);
	return conn_blame(&seed->conn, cause, "%s", why);
}

/* Its host as the URL has it, its address, and the name that it announces. */
static int take_self(struct seed *seed)
{
	char address[64], port[8];

	seed->names[0] = endpoint_copy(&seed->url.at);
	snprintf(port, sizeof(port), "%u", seed->url.at.port);
	if (stream_address(&seed->conn.stream, address, sizeof(address)) == 0)
		endpoint_set(&seed->names[1], address, port);
	if (seed->nodes != NULL)
		nodes_find_name(seed->nodes, NULL, &seed->names[2]);
	return 0;
}

/* "MOVED hash-slot host:port" */
static int take_moved(struct seed *seed, const char *text)
{
	const char *address = strrchr(text, ' ');

	if (address != NULL && strncmp(address, " ?:", 3) == 0)
		return reject(seed, CAUSE_NODES_DIFFER,
			      "it knows no name of KEY's node, which has no "
			      "cluster-announce-hostname");
	if (address != NULL && endpoint_read(&seed->names[0], address + 1,
					     seed->url.at.host) == 0) {
		if (seed->nodes != NULL)
			nodes_find_name(seed->nodes, &seed->names[0],
					&seed->names[1]);
		return 0;
	}
	return reject(seed, CAUSE_NONSENSE, "its MOVED makes no sense");
}

static int take_node(struct seed *seed, const struct reply *reply)
{
	if (reply->failure != NULL && reply->cause == CAUSE_MOVED)
		return take_moved(seed, reply->failure);
	if (reply->failure != NULL && reply->cause != CAUSE_ASK)
		return -1;
	if (reply->failure == NULL &&
	    (reply->count != 1 || reply->value[0].text != NULL))
		return reject(seed, CAUSE_NONSENSE,
			      "its answer makes no sense");
	return take_self(seed);
}

static int take_master(struct seed *seed, const struct reply *reply)
{
	const struct value *said = reply->value;

	if (reply->failure != NULL)
		return -1;
	if (reply->count == 1 && said[0].text != NULL && said[0].length == 0)
		return reject(seed, CAUSE_NO_MASTER,
			      "it does not know a master of that name");
	if (reply->count != 2 || said[0].text == NULL || said[1].text == NULL ||
	    strlen(said[0].text) != said[0].length ||
	    endpoint_set(&seed->names[0], said[0].text, said[1].text) < 0)
		return reject(seed, CAUSE_NONSENSE,
			      "its answer makes no sense");
	return 0;
}

/* They serve to find names only: a node may refuse them. */
static void take_nodes(struct seed *seed, const struct reply *reply)
{
	const struct value *said = reply->value;

	if (reply->failure != NULL)
		seed->conn.refusal.text[0] = '\0';
	else if (reply->count == 1 && said[0].text != NULL)
		seed->nodes = xstrdup(said[0].text);
}

/* What conn_pump hands replies to. */
struct asked {
	const struct discovery *discovery;
	struct seed *seed;
};

static int on_reply(void *context, const struct owed *owed,
		    const struct reply *reply)
{
	const struct discovery *discovery =
		((struct asked *)context)->discovery;
	struct seed *seed = ((struct asked *)context)->seed;
	char text[ENDPOINT_TEXT];
	int taken;

	if (seed->waiting && owed->ticket + 1 == discovery->ticket)
		take_nodes(seed, reply);
	if (owed->ticket != discovery->ticket || !seed->waiting)
		return 0;
	seed->waiting = false;
	taken = discovery->url->kind == URL_CLUSTER ? take_node(seed, reply)
						    : take_master(seed, reply);
	if (taken == 0)
		log_step("%s: %s is at %s", seed->url.name,
			 discovery->url->name,
			 endpoint_format(text, &seed->names[0]));
	return 0;
}

/* --- what to make of it ---------------------------------------------------- */

static bool says(const struct seed *seed, const struct endpoint *endpoint)
{
	for (size_t n = 0; n < SEED_NAMES; n++)
		if (endpoint_is_same(&seed->names[n], endpoint))
			return true;
	return false;
}

static size_t count_votes(const struct discovery *discovery,
			  const struct endpoint *endpoint)
{
	size_t votes = 0;

	for (size_t i = 0; i < discovery->url->seed_count; i++)
		votes += says(&discovery->seeds[i], endpoint);
	return votes;
}

/* The address that most say, by how many. named: only those that are names. */
static size_t count_most(const struct discovery *discovery, bool named,
			 const struct endpoint **endpoint)
{
	size_t count = discovery->url->seed_count, most = 0;

	for (size_t n = 0; n < SEED_NAMES * count; n++) {
		const struct endpoint *each =
			&discovery->seeds[n / SEED_NAMES].names[n % SEED_NAMES];
		size_t votes = count_votes(discovery, each);

		if (votes <= most || (named && endpoint_is_address(each)))
			continue;
		most = votes;
		*endpoint = each;
	}
	return most;
}

static size_t count_waiting(const struct discovery *discovery)
{
	size_t waiting = 0;

	for (size_t i = 0; i < discovery->url->seed_count; i++)
		waiting += discovery->seeds[i].waiting;
	return waiting;
}

static size_t quorum_of(const struct discovery *discovery)
{
	return majority(discovery->url->seed_count);
}

static struct refusals count_refusals(const struct discovery *discovery)
{
	struct refusals refusals = {0};

	for (size_t i = 0; i < discovery->url->seed_count; i++)
		if (discovery->seeds[i].names[0].host == NULL)
			refusals_add(&refusals,
				     &discovery->seeds[i].conn.refusal);
	return refusals;
}

/* Whether those that have yet to answer decide if another try may do better. */
static bool may_be_final(const struct discovery *discovery)
{
	struct refusals refusals = count_refusals(discovery);
	size_t count = discovery->url->seed_count;

	if (refusals.final_count == 0 || refusals_are_final(&refusals, count))
		return false;
	refusals.final_count += count_waiting(discovery);
	return refusals_are_final(&refusals, count);
}

/* A majority has said, or there will be none, and it is known whether ever. */
static bool is_decided(const struct discovery *discovery,
		       const struct endpoint **endpoint)
{
	size_t most = 0;

	if (discovery->url->tls)
		most = count_most(discovery, true, endpoint);
	if (most < quorum_of(discovery))
		most = count_most(discovery, false, endpoint);
	if (most >= quorum_of(discovery))
		return true;
	*endpoint = NULL;
	return most + count_waiting(discovery) < quorum_of(discovery) &&
	       !may_be_final(discovery);
}

/* A server may have two names, each by a majority: the one in use stays. */
static bool is_known(const struct discovery *discovery,
		     const struct endpoint *endpoint)
{
	const struct endpoint *known = &discovery->endpoint;

	return endpoint_is_same(known, endpoint) ||
	       (endpoint_is_address(known) == endpoint_is_address(endpoint) &&
		count_votes(discovery, known) >= quorum_of(discovery));
}

static enum discovered decide(struct discovery *discovery)
{
	const struct endpoint *endpoint = NULL;
	bool checked = discovery->checking, known;

	if (!is_decided(discovery, &endpoint))
		return DISCOVERY_UNDECIDED;
	discovery_stop(discovery);
	if (endpoint == NULL)
		return checked ? DISCOVERY_UNDECIDED : DISCOVERY_FAILED;
	discovery->confirmed = clock_ms();
	known = is_known(discovery, endpoint);
	if (!known) {
		discovery_forget(discovery);
		discovery->endpoint = endpoint_copy(endpoint);
	}
	if (!known || discovery->last_place.old)
		last_place_write(&discovery->last_place, discovery->hash_slot,
				 &discovery->endpoint);
	return known ? DISCOVERY_CONFIRMED : DISCOVERY_CHANGED;
}

/* These seeds have named a server before, in this process. So the URL is right, and
 * what is wrong with them may pass. */
static void soften(const struct discovery *discovery, struct refusal *refusal)
{
	if (discovery->confirmed > 0)
		refusal->cause = cause_elsewhere(refusal->cause);
}

size_t discovery_prepare(struct discovery *discovery, struct pollfd *polled,
			 struct deadline *until)
{
	const struct endpoint *endpoint = NULL;
	size_t count = discovery->url->seed_count;

	for (size_t i = 0; i < count; i++)
		conn_prepare(&discovery->seeds[i].conn, true, &polled[i],
			     until);
	if (discovery_is_busy(discovery) && is_decided(discovery, &endpoint))
		*until = deadline_at(0); /* all of them failed at once */
	return count;
}

enum discovered discovery_pump(struct discovery *discovery,
			       const struct pollfd *polled)
{
	for (size_t i = 0; i < discovery->url->seed_count; i++) {
		struct seed *seed = &discovery->seeds[i];
		struct asked asked = {discovery, seed};

		if (conn_pump(&seed->conn, polled[i].revents, on_reply,
			      &asked) < 0)
			seed->waiting = false;
		soften(discovery, &seed->conn.refusal);
	}
	return decide(discovery);
}

/* What a seed has said, or why it has not. */
static const char *quote(const struct discovery *discovery,
			 const struct seed *seed, char name[ENDPOINT_TEXT])
{
	if (seed->names[0].host != NULL)
		return endpoint_format(name, &seed->names[0]);
	if (seed->conn.refusal.text[0] != '\0')
		return seed->conn.refusal.text;
	/* the others have decided it before */
	return discovery->seeking ? "no answer" : "not waited for";
}

void discovery_explain(const struct discovery *discovery,
		       struct refusal *refusal)
{
	struct refusals refusals = count_refusals(discovery);
	struct refusal_list list = {.refusal = refusal};

	bool is_cluster = discovery->url->kind == URL_CLUSTER;

	refusal_set(refusal,
		    is_cluster ? CAUSE_NODES_DIFFER : CAUSE_NO_MAJORITY,
		    is_cluster ? "no majority of its nodes says where KEY is"
			       : "no majority of its Sentinels names a master");
	for (size_t i = 0; i < discovery->url->seed_count; i++) {
		const struct seed *seed = &discovery->seeds[i];
		char name[ENDPOINT_TEXT];

		refusal_list_add(&list, seed->url.name,
				 quote(discovery, seed, name));
	}
	refusal_list_end(&list);
	refusal->cause = refusals_cause(&refusals, discovery->url->seed_count,
					refusal->cause);
	if (!is_cluster)
		refusal->cause = cause_of_sentinel(refusal->cause);
}

enum moved discovery_sort(enum cause cause)
{
	switch (cause) {
	case CAUSE_MOVED:
	case CAUSE_REPLICA:
		return MOVED_AWAY;
	case CAUSE_ASK:
	case CAUSE_TRY_AGAIN:
		return MOVING;
	default:
		return MOVED_NOT;
	}
}
