#include "server/discovery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "net/endpoint.h"
#include "server/hash_slot.h"

#define CHECK_PAUSE 1000 /* ms */

struct discovery *discovery_new(const struct url *url)
{
	struct discovery *discovery;

	if (url->seeds == NULL)
		return NULL;
	discovery = heap_get(1, sizeof(*discovery));
	discovery->url = url;
	discovery->seeds = heap_get(url->seed_count, sizeof(*discovery->seeds));
	for (size_t i = 0; i < url->seed_count; i++) {
		struct url seed = url_copy(&url->seeds[i]);

		seed.user = heap_copy(url->user);
		seed.password = heap_copy(url->password);
		server_init(&discovery->seeds[i], &seed, false);
		discovery->seeds[i].guest = true;
		discovery->seeds[i].stream.keep_alive = true;
	}
	hint_init(&discovery->hint, "places", url->name);
	return discovery;
}

static void forget_said(struct discovery *discovery, size_t i)
{
	discovery->said[i].waiting = false;
	url_release(&discovery->said[i].names[0]);
	url_release(&discovery->said[i].names[1]);
}

void discovery_free(struct discovery *discovery)
{
	if (discovery == NULL)
		return;
	for (size_t i = 0; i < discovery->url->seed_count; i++) {
		forget_said(discovery, i);
		server_release(&discovery->seeds[i]);
	}
	free(discovery->seeds);
	url_release(&discovery->place);
	buffer_release(&discovery->key);
	free(discovery);
}

static unsigned slot_of(const struct discovery *discovery)
{
	if (discovery->url->kind == URL_SENTINEL || discovery->key.length == 0)
		return 0;
	return slot_find(discovery->key.data, discovery->key.length);
}

/* --- asking ---------------------------------------------------------------- */

static int ask(struct discovery *discovery, size_t i)
{
	const struct argument sentinel[] = {
		{"SENTINEL", 8},
		{"GET-MASTER-ADDR-BY-NAME", 23},
		{discovery->url->master,
		 discovery->url->master != NULL ? strlen(discovery->url->master)
						: 0},
	};
	const struct argument cluster[] = {
		{"EXISTS", 6},
		{discovery->key.data, discovery->key.length},
	};
	bool is_cluster = discovery->url->kind == URL_CLUSTER;

	return server_ask(&discovery->seeds[i], discovery->ticket, false,
			  is_cluster ? cluster : sentinel, is_cluster ? 2 : 3);
}

static void ask_all(struct discovery *discovery)
{
	discovery->ticket++;
	discovery->place_slot = slot_of(discovery);
	discovery->next_check = deadline_in(CHECK_PAUSE);
	for (size_t i = 0; i < discovery->url->seed_count; i++) {
		forget_said(discovery, i);
		discovery->said[i].waiting = ask(discovery, i) == 0;
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
	unsigned slot = slot_of(discovery);

	if (discovery->seeking || discovery->pinned)
		return;
	discovery_stop(discovery);
	discovery->seeking = true;
	discovery->found = false;
	if (discovery->place_slot != slot)
		discovery_forget(discovery);
	if (discovery->place.host == NULL)
		hint_read(&discovery->hint, slot, &discovery->place);
	ask_all(discovery);
}

void discovery_stop(struct discovery *discovery)
{
	discovery->seeking = discovery->checking = false;
	for (size_t i = 0; i < discovery->url->seed_count; i++)
		server_renew(&discovery->seeds[i]);
}

void discovery_forget(struct discovery *discovery)
{
	url_release(&discovery->place);
	discovery->pinned = discovery->found = false;
}

/* --- what the seeds say ---------------------------------------------------- */

static int reject(struct discovery *discovery, size_t i, enum cause cause,
		  const char *why)
{
	url_release(&discovery->said[i].names[0]);
	server_blame(&discovery->seeds[i], cause, why);
	return -1;
}

/* Its host as the URL has it, and its address. */
static int take_self(struct discovery *discovery, size_t i)
{
	const struct server *seed = &discovery->seeds[i];
	char address[64], port[8];

	discovery->said[i].names[0] = url_copy(&discovery->url->seeds[i]);
	snprintf(port, sizeof(port), "%u", seed->url.port);
	if (stream_address(&seed->stream, address, sizeof(address)) == 0)
		place_set(&discovery->said[i].names[1], address, port);
	return 0;
}

/* "MOVED slot host:port" */
static int take_moved(struct discovery *discovery, size_t i, const char *text)
{
	char host[256], *port;
	const char *place = strrchr(text, ' ');
	size_t length = place != NULL ? strlen(++place) : 0;

	if (length == 0 || length >= sizeof(host))
		return reject(discovery, i, CAUSE_NONSENSE,
			      "its MOVED makes no sense");
	memcpy(host, place, length + 1);
	port = strrchr(host, ':');
	if (port == NULL)
		return reject(discovery, i, CAUSE_NONSENSE,
			      "its MOVED makes no sense");
	*port++ = '\0';
	/* one that has not been told its own address leaves it out */
	if (place_set(&discovery->said[i].names[0],
		      *host != '\0' ? host : discovery->url->seeds[i].host,
		      port) < 0)
		return reject(discovery, i, CAUSE_NONSENSE,
			      "its MOVED makes no sense");
	return 0;
}

static int take_node(struct discovery *discovery, size_t i,
		     const struct reply *reply)
{
	if (reply->failure != NULL && reply->cause == CAUSE_MOVED)
		return take_moved(discovery, i, reply->failure);
	if (reply->failure != NULL && reply->cause != CAUSE_ASK)
		return -1;
	if (reply->failure == NULL &&
	    (reply->count != 1 || reply->value[0].text != NULL))
		return reject(discovery, i, CAUSE_NONSENSE,
			      "its answer makes no sense");
	return take_self(discovery, i);
}

static int take_master(struct discovery *discovery, size_t i,
		       const struct reply *reply)
{
	const struct value *said = reply->value;

	if (reply->failure != NULL)
		return -1;
	if (reply->count == 1 && said[0].text != NULL && said[0].length == 0)
		return reject(discovery, i, CAUSE_NO_MASTER,
			      "it knows no master of that name");
	if (reply->count != 2 || said[0].text == NULL || said[1].text == NULL ||
	    strlen(said[0].text) != said[0].length ||
	    place_set(&discovery->said[i].names[0], said[0].text,
		      said[1].text) < 0)
		return reject(discovery, i, CAUSE_NONSENSE,
			      "its answer makes no sense");
	return 0;
}

static void on_reply(void *context, struct server *seed, uint64_t ticket,
		     const struct reply *reply)
{
	struct discovery *discovery = context;
	size_t i = (size_t)(seed - discovery->seeds);
	int taken;

	if (ticket != discovery->ticket || !discovery->said[i].waiting)
		return;
	discovery->said[i].waiting = false;
	taken = discovery->url->kind == URL_CLUSTER
			? take_node(discovery, i, reply)
			: take_master(discovery, i, reply);
	if (taken == 0)
		log_step("%s: %s is at %s", seed->url.name,
			 discovery->url->name,
			 discovery->said[i].names[0].name);
}

/* --- what to make of it ---------------------------------------------------- */

static bool says(const struct discovery *discovery, size_t i, const char *name)
{
	for (int n = 0; n < 2; n++) {
		const char *said = discovery->said[i].names[n].name;

		if (said != NULL && strcasecmp(said, name) == 0)
			return true;
	}
	return false;
}

/* The place that most say, by how many. */
static size_t count_most(const struct discovery *discovery,
			 const struct url **place)
{
	size_t count = discovery->url->seed_count, most = 0;

	for (size_t n = 0; n < 2 * count; n++) {
		const struct url *each = &discovery->said[n / 2].names[n % 2];
		size_t votes = 0;

		for (size_t i = 0; i < count && each->name != NULL; i++)
			votes += says(discovery, i, each->name);
		if (votes > most) {
			most = votes;
			*place = each;
		}
	}
	return most;
}

static size_t count_waiting(const struct discovery *discovery)
{
	size_t waiting = 0;

	for (size_t i = 0; i < discovery->url->seed_count; i++)
		waiting += discovery->said[i].waiting;
	return waiting;
}

static size_t quorum_of(const struct discovery *discovery)
{
	return discovery->url->seed_count / 2 + 1;
}

/* A majority has said, or there will be none. */
static bool is_decided(const struct discovery *discovery,
		       const struct url **place)
{
	size_t most = count_most(discovery, place);

	if (most >= quorum_of(discovery))
		return true;
	*place = NULL;
	return most + count_waiting(discovery) < quorum_of(discovery);
}

static enum discovered decide(struct discovery *discovery)
{
	const struct url *place = NULL, *last = &discovery->place;
	bool checked = discovery->checking, known;

	if (!is_decided(discovery, &place))
		return DISCOVERY_UNDECIDED;
	discovery_stop(discovery);
	if (place == NULL)
		return checked ? DISCOVERY_UNDECIDED : DISCOVERY_FAILED;
	known = last->name != NULL && strcasecmp(last->name, place->name) == 0;
	if (!known) {
		discovery_forget(discovery);
		discovery->place = url_copy(place);
	}
	discovery->found = true;
	if (!known || discovery->hint.old)
		hint_write(&discovery->hint, discovery->place_slot, place);
	return known ? DISCOVERY_CONFIRMED : DISCOVERY_CHANGED;
}

size_t discovery_prepare(struct discovery *discovery, struct pollfd *polled,
			 struct deadline *until)
{
	const struct url *place = NULL;
	size_t count = 0;

	for (size_t i = 0; i < discovery->url->seed_count; i++)
		count += server_prepare(&discovery->seeds[i], polled + count,
					until);
	if (discovery_is_busy(discovery) && is_decided(discovery, &place))
		*until = deadline_at(0); /* all of them failed at once */
	return count;
}

enum discovered discovery_pump(struct discovery *discovery,
			       const struct pollfd *polled)
{
	for (size_t i = 0; i < discovery->url->seed_count; i++)
		if (server_pump(&discovery->seeds[i], &polled[i], on_reply,
				discovery) < 0)
			discovery->said[i].waiting = false;
	return decide(discovery);
}

const struct server *discovery_explain(const struct discovery *discovery,
				       char why[DISCOVERY_WHY])
{
	bool cluster = discovery->url->kind == URL_CLUSTER;
	const struct server *culprit = NULL;
	int length = snprintf(
		why, DISCOVERY_WHY, "%s",
		cluster ? "no majority of its nodes says where KEY is"
			: "no majority of its Sentinels names a master");

	for (size_t i = 0; i < discovery->url->seed_count; i++) {
		const struct server *seed = &discovery->seeds[i];
		const char *said = discovery->said[i].names[0].name;

		if (said == NULL && seed->why[0] != '\0' &&
		    (culprit == NULL || !cause_is_passing(seed->cause)))
			culprit = seed;
		if (length < DISCOVERY_WHY)
			length += snprintf(
				why + length, (size_t)(DISCOVERY_WHY - length),
				"%s%s: %s", i == 0 ? ": " : ", ",
				seed->url.name,
				said != NULL           ? said
				: seed->why[0] != '\0' ? seed->why
						       : "no answer");
	}
	return culprit;
}

void server_aim(struct server *server, struct argument key)
{
	struct discovery *discovery = server->discovery;

	if (discovery == NULL)
		return;
	discovery->key.length = 0;
	buffer_append(&discovery->key, key.data, key.length);
}

void server_visit(struct server *server, const struct url *place)
{
	const struct url *now = &server->discovery->place;

	if (server_is_up(server) && strcmp(now->name, place->name) == 0)
		return;
	server_renew(server);
	discovery_forget(server->discovery);
	server->discovery->place = url_copy(place);
	server->discovery->pinned = server->discovery->found = true;
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
