#include "plan.h"

#include <stdio.h>
#include <string.h>

#include "base/lease.h"
#include "client.h"
#include "judge.h"

#define WATCHED_TTL 15000     /* ms: a heartbeat is as long as it can be */
#define HIDES_AT (2 * SECOND) /* before that servers dump what all know */
#define HIDDEN_TTL 10000      /* ms: long enough for others to come meanwhile */
#define DRIFT 4800 /* millionths that a clock is fast or slow, at most */
#define AGE (5 * 86400 * SECOND) /* of servers, when the world begins */
#define CUTS 350                 /* per mille of the seeds: plan.cuts */
#define PEACEFUL 60              /* ... plan.peace */
#define ARMED SECOND             /* that a fault waits for a holder, at most */
#define CALM 6 /* times as long as in a storm nothing is wanted */
#define EPOCH (1700000000 * SECOND)
#define HAND_OVER 300 /* ms that a hand-over may take, and some round trips */
#define NEAR 20000    /* us that servers are away for FORGETS_TOLD */
#define NEARER 5000   /* us, if rounds are short */
#define SITE 200      /* us, within a site (plan.sites) */
#define SLOWEST \
	80 /* ms: twice as long, to connect and to answer, is waited for (silence.h) */
#define IDLE 6000 /* ms that nobody may run: a heartbeat, and a hand-over */
#define HALF_OPEN 7000       /* ms until such a connection is replaced */
#define DEAD (20 * SECOND)   /* that a holder may keep a connection that is */
#define STRETCH (6 * SECOND) /* in which it is calm, and some begin */
#define BUSY_LONGEST (5 * SECOND)
#define LOADS_LONGEST (2 * SECOND)
#define RECOVERY 8000 /* ms that a waiter may lose once: pauses, heartbeats */
#define CROWDED (3 * SECOND)        /* from one crowd to the next */
#define CROWDS (30 * SECOND)        /* in which it is calm, and crowds come */
#define SET_BACK (50 * 60 * SECOND) /* at most */
#define NEW (12 * SECOND)           /* in which all is well, if it begins so */
#define PEACE (60 * SECOND)
#define RENEWED_TTL 2000 /* ms: plan.renews */
#define COMING \
	(5 * SECOND) /* from the time when some come to when they come again */
#define DESERTED (7 * SECOND) /* until all who came before have ended */
#define NEEDLESS 2000         /* ms that a wait may need: rounds and pauses */
#define CONTENDER (100 * MS)  /* more, for each who waits: split votes */

struct plan plan;
bool plan_permits, plan_several, plan_crowds, plan_peace;
size_t plan_faults[FAULT_KINDS];

static int64_t usual[HOSTS_MOST][NODES_MOST]; /* distances, without faults */
static int64_t late_until[HOSTS_MOST];
static int64_t lost =
	-1000 * SECOND; /* when a server last lost data while it was up */
static struct store *old[NODES_MOST]; /* what a server has on its disk */
/* until when a fault may be noticed */
static int64_t unwell[HOSTS_MOST][NODES_MOST], shaken[HOSTS_MOST];
static int64_t voteless[NODES_MOST]; /* until when it may be */
static int64_t flushed[NODES_MOST];  /* when it last forgot its scripts */

const char *const fault_names[FAULT_KINDS] = {
	[FAULT_CUT] = "a link is cut",
	[FAULT_CUT_HOST] = "a client is cut off",
	[FAULT_CUT_NODE] = "a server is cut off",
	[FAULT_SLOW_LINK] = "a link is slow",
	[FAULT_LOSS] = "a link loses packets",
	[FAULT_LATE] = "a holder is answered late, or no more",
	[FAULT_RESET] = "connections are reset",
	[FAULT_FORGOTTEN] = "connections are half-open",
	[FAULT_STOP] = "a server is stopped",
	[FAULT_RESTART] = "a server is restarted",
	[FAULT_POWER] = "a server loses its power",
	[FAULT_AMNESIA] = "a server is restarted without its data",
	[FAULT_EMPTIED] = "a server is emptied",
	[FAULT_EVICTED] = "a server loses a key or a record",
	[FAULT_BREAK] = "a connection breaks at a request",
	[FAULT_SLOW_NODE] = "a server is slow",
	[FAULT_PAUSE] = "a client is paused",
	[FAULT_KILL] = "a client is killed",
	[FAULT_WALL] = "a wall clock is set",
	[FAULT_REQUEST] = "a link is cut at a request",
	[FAULT_STRAY] = "requests come after later ones",
	[FAULT_BUSY] = "servers are busy with a script",
};

/* --- what there is --------------------------------------------------------- */

static int64_t pick(struct chance *chance, const int64_t *choices, size_t count)
{
	return choices[chance_between(chance, 0, (int64_t)count - 1)];
}

static const int64_t ttls[] = {1000, 2000, 2000, 3000, 5000, 10000};

static void draw_key(struct chance *chance, size_t i)
{
	static const enum kind kinds[] = {KIND_EXCLUSIVE, KIND_EXCLUSIVE,
					  KIND_EXCLUSIVE, KIND_SHARED,
					  KIND_PERMITS,   KIND_REENTRANT};
	struct key_plan *key = &plan.key[i];

	snprintf(key->name, sizeof(key->name), "key%zu", i);
	key->kind = kinds[chance_between(chance, 0, 5)];
	key->mixed = key->kind == KIND_SHARED;
	key->permits = chance_between(chance, 1, PERMITS_DRAWN);
	if (plan_permits) {
		key->kind = KIND_PERMITS;
		key->mixed = false;
		key->permits = 2 + key->permits % (PERMITS_DRAWN - 1);
	}
	if (plan_several || (plan_crowds && key->kind == KIND_REENTRANT)) {
		key->kind = KIND_EXCLUSIVE;
		key->mixed = false;
	}
	key->ttl = pick(chance, ttls, sizeof(ttls) / sizeof(ttls[0]));
}

static void draw_client(struct chance *chance, size_t i)
{
	static const int64_t holds[] = {5, 20, 100, 500, 1500};
	struct client_plan *client = &plan.client[i];
	struct key_plan *key;

	client->key = (size_t)chance_between(chance, 0, (int64_t)plan.keys - 1);
	key = &plan.key[client->key];
	client->kind = key->kind;
	if (key->mixed && chance_is(chance, 500))
		client->kind = KIND_EXCLUSIVE;
	else if (chance_is(chance, 60))
		client->kind = KIND_NONE;
	client->think = chance_between(chance, 0, 3000);
	client->hold = pick(chance, holds, 5);
	if (chance_is(chance, 150))
		client->hold = key->ttl < 3000 ? 3 * key->ttl : key->ttl;
	client->limit = chance_is(chance, 200)
				? chance_between(chance, 0, 4 * key->ttl)
				: -1;
	client->nonblock = chance_is(chance, 120);
	client->poll = chance_is(chance, 120);
	if (chance_is(chance, 80))
		client->min_hold = chance_between(chance, 1, 1000);
	key->users++;
}

static void draw_clients(struct chance *chance)
{
	plan.clients = (size_t)chance_between(chance, 2, 7);
	if (chance_is(chance, 30))
		plan.clients = (size_t)chance_between(chance, 10, CLIENTS_MOST);
	if (plan_crowds)
		plan.clients = (size_t)chance_between(chance, 3, 16);
	plan.keys = (size_t)(plan_crowds || chance_is(chance, 700)
				     ? 1
				     : chance_between(chance, 2, KEYS_MOST));
	if (plan_several && plan.keys == 1)
		plan.keys = KEYS_MOST;
	for (size_t i = 0; i < plan.keys; i++)
		draw_key(chance, i);
	for (size_t i = 0; i < plan.clients; i++)
		draw_client(chance, i);
}

/* Keys that nobody wants for itself, so that several always have them. */
static void draw_readers(uint64_t seed)
{
	struct chance chance = chance_of(seed, 14);

	if (!chance_is(&chance, 600))
		return;
	for (size_t i = 0; i < plan.clients; i++) {
		struct client_plan *client = &plan.client[i];
		struct key_plan *key = &plan.key[client->key];

		if (!key->mixed)
			continue;
		client->kind = KIND_SHARED;
		client->hold = 2 * key->ttl;
		client->think = chance_between(&chance, 0, key->ttl);
	}
}

/* A client for whose key others ask, too; plan.clients: there is none. */
static size_t pick_holder(struct chance *chance)
{
	size_t first =
		(size_t)chance_between(chance, 0, (int64_t)plan.clients - 1);

	for (size_t n = 0; n < plan.clients; n++) {
		size_t i = (first + n) % plan.clients;
		const struct client_plan *client = &plan.client[i];

		if (client->kind != KIND_NONE &&
		    plan.key[client->key].users >= 2)
			return i;
	}
	return plan.clients;
}

static int64_t hides_at(void)
{
	return plan.hiding.early ? 0 : HIDES_AT;
}

/* Mostly a reader, which others do not name as one that has KEY alone, beside writers. */
static void draw_early(struct chance *chance)
{
	struct client_plan *holder = &plan.client[plan.hiding.holder];
	struct key_plan *key = &plan.key[holder->key];

	plan.hiding.early = true;
	holder->think = 0;
	if (plan_permits || chance_is(chance, 400))
		return;
	key->kind = KIND_SHARED;
	key->mixed = true;
	for (size_t i = 0; i < plan.clients; i++)
		if (plan.client[i].key == holder->key &&
		    plan.client[i].kind != KIND_NONE)
			plan.client[i].kind =
				&plan.client[i] == holder ||
						chance_is(chance, 300)
					? KIND_SHARED
					: KIND_EXCLUSIVE;
}

/* Most of the others come often and do not wait: whoever waits has heard of the holder, and what
 * it is granted elsewhere keeps the others out. Or they wait, and soon give up: a server that has
 * lost the key hears of that first, and grants it to the next in line. */
static void draw_hiding(uint64_t seed)
{
	static const int64_t short_ttls[] = {1000, 2000};
	struct chance chance = chance_of(seed, 5), anew = chance_of(seed, 9);
	struct chance limits = chance_of(seed, 16), early = chance_of(seed, 19);
	bool impatient = chance_is(&limits, 350);
	struct hiding *hiding = &plan.hiding;

	if (plan.servers < 3 || plan_several || plan_crowds ||
	    !chance_is(&chance, 350))
		return;
	hiding->holder = pick_holder(&chance);
	if (hiding->holder == plan.clients)
		return;
	plan.hides = plan.uneven = true;
	hiding->silent = chance_is(&chance, 250);
	hiding->anew = !hiding->silent && chance_is(&anew, 400);
	hiding->slow = hiding->anew && chance_is(&anew, 400)
			       ? chance_between(&anew, 28, SLOWEST) * MS
			       : 0;
	for (size_t n = 0; n < plan.servers - (plan.servers / 2 + 1); n++)
		hiding->away[(hiding->holder + n) % plan.servers] = true;
	for (size_t i = 0; i < plan.keys; i++)
		plan.key[i].ttl = HIDDEN_TTL;
	for (size_t i = 0; i < plan.clients; i++) {
		struct client_plan *client = &plan.client[i];
		bool holds = i == hiding->holder;

		client->ttl = holds ? HIDDEN_TTL : pick(&chance, short_ttls, 2);
		client->nonblock =
			!holds && (chance_is(&chance, 600) || hiding->anew);
		client->poll = client->poll && !holds;
		client->limit = holds ? -1 : client->limit;
		client->think = 500;
		client->hold = 100;
		client->min_hold = 0;
		if (impatient && !hiding->anew && !holds) {
			client->nonblock = client->poll = false;
			client->think = 50;
			client->limit = chance_between(&limits, 50, 1000);
		}
	}
	if (!hiding->silent && !hiding->anew && plan.keys == 1 &&
	    chance_is(&early, 400))
		draw_early(&early);
}

/* What a killed redlock of an owner has left on a server lasts as long as others of the
 * owner want the key. If all servers that are there are needed for a quorum, two owners may
 * keep each other out in this way. */
static void draw_away(uint64_t seed)
{
	struct chance chance = chance_of(seed, 7);
	size_t first = (size_t)chance_between(&chance, 0, NODES_MOST);

	if (plan.servers < 3 || plan.hides || plan.watches || plan.strays ||
	    (!plan.crowds && !chance_is(&chance, plan.peace ? 300 : 150)))
		return;
	for (size_t i = 0; i < plan.keys; i++)
		if (plan.key[i].kind == KIND_REENTRANT)
			return;
	plan.away_stopped = chance_is(&chance, 500);
	for (size_t n = 0; n < plan.servers - (plan.servers / 2 + 1); n++)
		plan.away[(first + n) % plan.servers] = true;
}

/* (Those who are refused a key of several wait for a time that supposes that all have the same
 * --server-timeout: cmd/several.h.) */
static void draw_crowd(uint64_t seed)
{
	static const int64_t holds[] = {5, 20, 100};
	static const int64_t crowding[] = {1000, 1000, 700, 0};
	struct chance chance = chance_of(seed, 6);
	int64_t nonblocking = 700; /* per mille */

	if (plan.servers < 3 || plan.hides ||
	    (!chance_is(&chance, 150) && !plan_crowds))
		return;
	plan.crowds = true;
	plan.uneven = plan.uneven && !plan.several;
	if (plan_crowds)
		nonblocking = pick(&chance, crowding, 4);
	for (size_t i = 0; i < plan.clients; i++) {
		struct client_plan *client = &plan.client[i];

		client->nonblock = chance_is(&chance, nonblocking);
		client->poll = false;
		client->limit = -1;
		client->hold = pick(&chance, holds, 3);
		client->min_hold = 0;
	}
}

/* None waits, and of the time that all may try (waiter.h) each attempt takes much. */
static void draw_sites(uint64_t seed)
{
	struct chance chance = chance_of(seed, 26);

	plan.sites = plan.crowds && !plan.several && chance_is(&chance, 700);
	for (size_t i = 0; i < plan.clients; i++)
		plan.sites &= plan.client[i].nonblock;
	for (size_t i = 0; plan.sites && i < plan.keys; i++)
		plan.key[i].ttl = ttls[0];
}

/* With others, who have --once-in, so that what they rely on is kept for them alone. */
static void draw_plain(uint64_t seed)
{
	struct chance chance = chance_of(seed, 17);

	if (!chance_is(&chance, 400))
		return;
	for (size_t i = 0; i < plan.clients; i++) {
		struct client_plan *client = &plan.client[i];
		struct key_plan *key = &plan.key[client->key];

		client->plain = key->once_in > 0 && chance_is(&chance, 400);
		if (!client->plain)
			continue;
		key->remember = key->once_in;
		client->think = chance_between(&chance, 0, 500);
	}
}

/* Keys with --once-in. A chance of its own, so nothing else in the seed's plan changes. */
static void draw_once(uint64_t seed)
{
	static const int64_t times[] = {500, 2000, 5000, 10000, 20000};
	struct chance chance = chance_of(seed, 3);

	for (size_t i = 0; i < plan.keys; i++) {
		struct key_plan *key = &plan.key[i];

		key->remember = -1;
		if (key->kind == KIND_REENTRANT || !chance_is(&chance, 200))
			continue;
		key->once_in = pick(&chance, times, 5);
		if (chance_is(&chance, 300))
			key->remember = key->once_in;
	}
	draw_plain(seed);
}

static void want_also(struct chance *chance, struct client_plan *client)
{
	size_t first = (size_t)chance_between(chance, 0, KEYS_MOST - 1);

	for (size_t n = 0; n < plan.keys; n++) {
		size_t i = (first + n) % plan.keys;

		if (i == client->key || plan.key[i].kind != KIND_EXCLUSIVE ||
		    (client->also_count > 0 && chance_is(chance, 500)))
			continue;
		client->also[client->also_count++] = i;
	}
}

/* What plain runs of any of several keys leave behind is soon forgotten, fences too. */
static void forget_soon(void)
{
	bool plain = false;

	for (size_t i = 0; plan.several && i < plan.clients; i++) {
		struct client_plan *client = &plan.client[i];

		client->plain &= plan.key[client->key].once_in > 0;
		plain |= client->plain;
	}
	for (size_t i = 0; plain && i < plan.keys; i++)
		if (plan.key[i].once_in > 0)
			plan.key[i].remember = plan.key[i].once_in;
}

/* Some of the clients that want an exclusive key want others with it. redlock has one
 * --ttl for all of them, so all exclusive keys become like the first. */
static void draw_several(uint64_t seed)
{
	struct chance chance = chance_of(seed, 4);
	const struct key_plan *first = NULL;

	if (!plan_several && !chance_is(&chance, 600))
		return;
	for (size_t i = 0; i < plan.keys; i++) {
		struct key_plan *key = &plan.key[i], was = *key;

		if (key->kind != KIND_EXCLUSIVE)
			continue;
		if (first == NULL)
			first = key;
		else
			plan.several = true;
		*key = *first;
		memcpy(key->name, was.name, sizeof(was.name));
	}
	forget_soon();
	for (size_t i = 0; plan.several && i < plan.clients; i++)
		if (plan.client[i].kind == KIND_EXCLUSIVE &&
		    plan.key[plan.client[i].key].kind == KIND_EXCLUSIVE &&
		    chance_is(&chance, 600))
			want_also(&chance, &plan.client[i]);
}

/* A script that has lost the lock of an owner, and gives it back, gives back what another of that
 * owner has: so none may take an owner's lock beside others. */
static bool may_be_script(size_t client)
{
	const struct client_plan *its = &plan.client[client];

	for (size_t i = 0; its->kind == KIND_REENTRANT && i < plan.clients; i++)
		if (i != client && i % 2 == client % 2 &&
		    plan_wants(i, its->key) &&
		    plan.client[i].kind == KIND_REENTRANT)
			return false;
	return its->kind != KIND_NONE && its->also_count == 0;
}

/* What else people do with a lock: scripts that take it, and breaks. (If an owner is asked to
 * stop, its next redlock has KEY all the same: so nobody is asked there.) */
static void draw_uses(uint64_t seed)
{
	struct chance chance = chance_of(seed, 8);
	bool scripts = chance_is(&chance, 250);

	if (plan.hides || plan.crowds)
		return;
	plan.breaks = chance_is(&chance, 200);
	for (size_t i = 0; scripts && i < plan.clients; i++)
		plan.client[i].script =
			chance_is(&chance, 500) && may_be_script(i);
}

/* ttls are long, so that no wait ends with one; but not longer than most of the time if some are
 * killed, as records are judged that are older than two. */
static void draw_peace(struct chance *chance)
{
	static const int64_t long_ttls[] = {10000, 30000, 60000};
	static const int64_t holds[] = {5, 20, 100};
	static const int64_t aparts[] = {0, 2, 20, 200, 1000};
	int64_t waits = chance_between(chance, 300, 1000);

	plan.apart = pick(chance, aparts, 5) * MS;
	plan.mishaps = chance_is(chance, 450);
	for (size_t i = 0; i < plan.keys; i++) {
		plan.key[i].ttl =
			plan.mishaps ? 10000 : pick(chance, long_ttls, 3);
		plan.key[i].once_in = 0;
		plan.key[i].remember = -1;
	}
	for (size_t i = 0; i < plan.clients; i++) {
		struct client_plan *client = &plan.client[i];

		client->plain = false;
		client->nonblock = !chance_is(chance, waits);
		client->poll = client->poll && chance_is(chance, 300);
		client->limit = -1;
		client->hold = pick(chance, holds, 3);
		client->min_hold = 0;
	}
	for (size_t i = 0; plan.mishaps && i < plan.clients; i++)
		plan.client[i].script = plan.client[i].kind == KIND_REENTRANT &&
					chance_is(chance, 500) &&
					may_be_script(i);
}

/* Nobody loses what it has, so a script gives back what is its own (may_be_script). */
static void draw_twice(uint64_t seed)
{
	struct chance chance = chance_of(seed, 35), reach = chance_of(seed, 39);

	if (plan.mishaps || plan.several || plan_permits ||
	    !chance_is(&chance, 150))
		return;
	plan.twice = true;
	plan.partial = plan.servers >= 3 && chance_is(&reach, 500);
	plan.uneven = false; /* `extend` asks for the ttl that the first had */
	for (size_t i = 0; i < plan.keys; i++) {
		plan.key[i].kind = KIND_REENTRANT;
		plan.key[i].mixed = false;
	}
	for (size_t i = 0; i < plan.clients; i++) {
		struct client_plan *client = &plan.client[i];

		client->kind = KIND_REENTRANT;
		client->script = chance_is(&chance, 600);
		client->nonblock = client->poll = false;
		client->hold = 300;
	}
}

/* Their heartbeats are far apart, so that it is seen who is told of something only with the next. */
static void draw_watches(uint64_t seed)
{
	struct chance chance = chance_of(seed, 29);

	plan.deserted = INT64_MAX;
	if (plan.servers < 3 || plan.mishaps || plan.twice || plan.several ||
	    plan_permits || !chance_is(&chance, 250))
		return;
	plan.watches = true;
	if (chance_is(&chance, 500))
		plan.deserted = chance_between(&chance, 20, 25) * SECOND;
	for (size_t i = 0; i < plan.keys; i++) {
		plan.key[i].kind = KIND_EXCLUSIVE;
		plan.key[i].mixed = false;
		plan.key[i].ttl = WATCHED_TTL;
	}
	for (size_t i = 0; i < plan.clients; i++) {
		struct client_plan *client = &plan.client[i];

		client->kind = i % 2 == 0 ? KIND_EXCLUSIVE : KIND_NONE;
		client->hold = 800;
		if (client->kind == KIND_NONE)
			client->nonblock = client->poll = false;
	}
}

/* Some clients take keys away. Who runs on beside the next holder is known of exclusive keys
 * only, so all are. */
static void draw_forcers(struct chance *chance)
{
	if (plan_permits || plan.several || !chance_is(chance, 500))
		return;
	for (size_t i = 0; i < plan.keys; i++) {
		plan.key[i].kind = KIND_EXCLUSIVE;
		plan.key[i].mixed = false;
		plan.key[i].once_in = 0;
		plan.key[i].remember = -1;
	}
	for (size_t i = 0; i < plan.clients; i++) {
		struct client_plan *client = &plan.client[i];

		if (client->kind != KIND_NONE)
			client->kind = KIND_EXCLUSIVE;
		client->forces = i < plan.keys;
		client->plain = false; /* its fences would be forgotten */
		if (client->forces)
			client->think = 20;
	}
}

/* Several want the same key soon again, so votes are split, servers come to store different
 * fences, and it matters which requests get through. */
static void draw_cuts(uint64_t seed)
{
	static const int64_t holds[] = {5, 20, 100};
	struct chance chance = chance_of(seed, 10);

	if (plan.servers < 3 || plan.hides || plan.crowds || plan.strays ||
	    !chance_is(&chance, CUTS))
		return;
	plan.cuts = true;
	for (size_t i = 0; i < plan.clients; i++) {
		struct client_plan *client = &plan.client[i];

		client->think = chance_between(&chance, 0, 300);
		if (client->kind == KIND_PERMITS)
			client->hold = plan.key[client->key].ttl *
				       chance_between(&chance, 1, 6) / 2;
		else if (chance_is(&chance, 700))
			client->hold = pick(&chance, holds, 3);
	}
	draw_forcers(&chance);
}

/* One wants two keys, and waits for the second, which others have for long; the first is free most of the
 * time. */
static void draw_straying(uint64_t seed)
{
	struct chance chance = chance_of(seed, 33);

	if (!plan_several || plan.crowds || plan.hides ||
	    !chance_is(&chance, 300))
		return;
	plan.strays = true;
	for (size_t i = 0; i < plan.keys; i++) {
		plan.key[i].ttl = 1000;
		plan.key[i].once_in = 0;
		plan.key[i].remember = -1;
	}
	for (size_t i = 0; i < plan.clients; i++) {
		struct client_plan *client = &plan.client[i];

		if (client->kind != KIND_EXCLUSIVE)
			continue;
		client->script = client->plain = false;
		client->nonblock = client->poll = false;
		client->limit = -1;
		client->min_hold = 0;
		client->also_count = i == 0;
		client->also[0] = 1;
		client->key = i % 2;
		client->think = client->key == 1 ? 50 : 700;
		client->hold = client->key == 1 ? 3 * plan.key[1].ttl : 20;
	}
}

/* So many want a key that some come long after others who still wait. */
static void draw_steps(uint64_t seed)
{
	struct chance chance = chance_of(seed, 31);

	if (!plan.set_back || plan.crowds || plan.cuts || plan.several ||
	    !chance_is(&chance, 500))
		return;
	plan.steps = true;
	for (size_t i = 0; i < plan.clients; i++) {
		struct client_plan *client = &plan.client[i];

		if (plan.key[client->key].kind != KIND_EXCLUSIVE)
			continue;
		client->think = chance_between(&chance, 0, 500);
		client->hold = chance_between(&chance, 500, 1500);
		client->nonblock = client->poll = false;
		client->limit = -1;
	}
}

/* Hosts, and clocks of servers. */
static void draw_boots(uint64_t seed)
{
	struct chance chance = chance_of(seed, 13), calm = chance_of(seed, 20);

	plan.boots = chance_is(&chance, 250);
	plan.set_back = chance_is(&chance, 250) && !plan.hides;
	plan.agrees = chance_is(&chance, 400) && !plan.cuts;
	plan.patient = chance_is(&chance, 150) && !plan.hides;
	plan.flushes = chance_is(&chance, 150);
	plan.begins_calm = chance_is(&calm, 200) && !plan.hides &&
			   !plan.set_back && !plan.flushes;
	draw_steps(seed);
}

/* Those who wait for long enough see the servers again before their limit is over, in one try.
 * (Where a holder is known by a single server, nothing delays what that one tells.) */
static void draw_refusals(void)
{
	struct chance chance = chance_of(plan.seed, 21);

	plan.refuses = chance_is(&chance, 300) && !plan.hides && !plan.peace &&
		       !plan.strays && plan.forgetting != FORGETS_TOLD;
	plan.fresh = plan.refuses && chance_is(&chance, 700) &&
		     plan.forgetting == FORGETS_AT_ANY_TIME;
	for (size_t i = 0; plan.refuses && i < plan.clients; i++)
		if (plan.fresh && chance_is(&chance, 600)) {
			plan.client[i].nonblock = false;
			plan.client[i].limit = -1;
		} else if (chance_is(&chance, 400))
			plan.client[i].limit =
				chance_between(&chance, 5000, 60000);
}

bool plan_forces(size_t client)
{
	return plan.client[client].forces && plan_storms();
}

static void draw_lease(struct chance *chance, struct client_plan *client)
{
	int64_t longest = plan.key[client->key].ttl;

	if (!plan.hides)
		client->ttl = longest;
	if (plan.uneven && !plan.hides && chance_is(chance, 500))
		do
			client->ttl = pick(chance, ttls,
					   sizeof(ttls) / sizeof(ttls[0]));
		while (client->ttl > longest);
	client->timeout = lease_server_timeout(client->ttl);
	client->kill_after = chance_between(
		chance, 0,
		plan.patient ? client->ttl : lease_kill_after(client->ttl));
	while (client->ttl <=
	       lease_need(client->ttl, client->kill_after, client->timeout))
		client->kill_after /= 2;
}

size_t plan_wanted(size_t client, size_t i)
{
	const struct client_plan *its = &plan.client[client];

	return i == 0 ? its->key : its->also[i - 1];
}

bool plan_wants(size_t client, size_t key)
{
	size_t i = 0;

	while (i <= plan.client[client].also_count &&
	       plan_wanted(client, i) != key)
		i++;
	return i <= plan.client[client].also_count;
}

static int64_t longest_ttl(void)
{
	int64_t longest = 0;

	for (size_t i = 0; i < plan.keys; i++)
		if (plan.key[i].ttl > longest)
			longest = plan.key[i].ttl;
	return longest;
}

static int64_t longest_hold(size_t key)
{
	int64_t longest = 0;

	for (size_t i = 0; i < plan.clients; i++)
		if (plan_wants(i, key)) {
			int64_t hold =
				plan.client[i].hold + plan.client[i].min_hold;

			if (hold > longest)
				longest = hold;
		}
	return longest;
}

bool plan_has_flushed(size_t node)
{
	return plan.flushes && world_now < flushed[node] + 3 * SECOND;
}

bool plan_storms(void)
{
	for (size_t i = 0; i < plan.stretches; i++)
		if (world_now >= plan.stretch[i].begins &&
		    world_now < plan.stretch[i].ends)
			return false;
	return true;
}

/* Hosts whose clocks are some ms apart. */
int64_t plan_return(size_t client, struct chance *chance)
{
	int64_t most = plan.client[client].think * MS;

	if (plan.crowds)
		return (world_now / CROWDED + 1) * CROWDED +
		       chance_between(chance, 0, 2 * MS);
	if (plan.peace && world_now > plan.deserted &&
	    plan.client[client].kind != KIND_NONE)
		return PEACE;
	if (plan.peace)
		return (world_now / COMING + 1) * COMING +
		       chance_between(chance, 0, plan.apart);
	return world_now +
	       chance_between(chance, 0, plan_storms() ? most : CALM * most);
}

int64_t plan_way(void)
{
	int64_t longest = 0;

	for (size_t i = 0; i < plan.clients; i++)
		for (size_t k = 0; k < plan.servers; k++)
			if (links[i][k].distance + links[i][k].jitter > longest)
				longest = links[i][k].distance +
					  links[i][k].jitter;
	return longest;
}

static int64_t count_half_open(void)
{
	int64_t count = 0;

	for (size_t i = 0; i < plan.faults; i++)
		count += plan.fault[i].kind == FAULT_FORGOTTEN;
	return count;
}

/* If some clients hold a key while they wait for another. Once no redlock is started any
 * more (STRETCH), one of those that run can always go on (cmd/several.h), so at worst they
 * go one after the other. Each connection of a client may be half-open, which the client
 * finds out when it asks for that key. */
static int64_t bound_of_several(int64_t way)
{
	int64_t sum = STRETCH + count_half_open() * KEYS_MOST * HALF_OPEN * MS;

	for (size_t i = 0; i < plan.clients; i++) {
		const struct client_plan *its = &plan.client[i];

		sum += (its->hold + its->min_hold) * MS +
		       (int64_t)(1 + its->also_count) *
			       (HAND_OVER * MS + 8 * way);
	}
	return sum + (longest_ttl() + RECOVERY) * MS;
}

/* us: of those who are killed while there is peace, one after the other. */
static int64_t leases_left(void)
{
	return plan.peace ? (int64_t)plan.faults * longest_ttl() * MS : 0;
}

int64_t plan_bound(size_t key)
{
	int64_t way = plan_way();

	if (plan.several)
		return bound_of_several(way) + leases_left();
	return leases_left() +
	       (int64_t)plan.key[key].users *
		       (longest_hold(key) * MS + HAND_OVER * MS + 8 * way) +
	       (plan.key[key].ttl + RECOVERY) * MS;
}

bool plan_is_near(size_t client)
{
	return 4 * plan_way() < plan.client[client].timeout * MS;
}

bool plan_is_nearer(size_t client)
{
	return 6 * plan_way() < plan.client[client].timeout * MS;
}

bool plan_is_well(size_t client, size_t node, int64_t since)
{
	const struct process *process = client_process(client);

	return nodes[node].up && !nodes[node].stopped &&
	       unwell[client][node] < since &&
	       links[client][node].cut[0] < since &&
	       links[client][node].cut[1] < since &&
	       links[client][node].held < since && shaken[client] < since &&
	       process->trap == 0 && process->paused == 0 &&
	       process->resumed < since;
}

/* With one more server away there would be no majority: whoever lacks one vote has a split vote. */
static bool needs_every_server(void)
{
	size_t away = 0;

	for (size_t i = 0; i < plan.servers; i++)
		away += plan.away[i];
	return away > 0 && away == (plan.servers - 1) / 2;
}

int64_t plan_needless(size_t client)
{
	const struct client_plan *its = &plan.client[client];
	int64_t splits =
		needs_every_server() ? 2 * lease_heartbeat(its->ttl) : 0;

	return (NEEDLESS + splits) * MS + 20 * plan_way() +
	       (int64_t)plan.key[its->key].users * CONTENDER;
}

int64_t plan_needless_young(size_t client)
{
	const struct client_plan *its = &plan.client[client];

	return (longest_ttl() + 2 * lease_heartbeat(its->ttl)) * MS +
	       plan_needless(client);
}

int64_t plan_free(void)
{
	return (IDLE + (count_half_open() > 0) * HALF_OPEN) * MS;
}

int64_t plan_idle(void)
{
	bool near = true, left = plan.mishaps;

	for (size_t i = 0; i < plan.clients; i++)
		near &= plan_is_near(i);
	return !plan.several || !near || left
		       ? INT64_MAX
		       : (IDLE + (count_half_open() > 0) * HALF_OPEN) * MS;
}

/* --- faults ---------------------------------------------------------------- */

/* Often longer than the lease of somebody, as then others may hold KEY. */
static int64_t draw_time(struct chance *chance)
{
	static const int64_t times[] = {10, 100, 500, 2000};
	int64_t ttl =
		plan.key[chance_between(chance, 0, (int64_t)plan.keys - 1)].ttl;

	return chance_is(chance, 400)
		       ? chance_between(chance, ttl / 2, ttl * 3 / 2) * MS
		       : chance_between(chance, 0, pick(chance, times, 4) * MS);
}

/* For FORGETS_TOLD none that delays an answer. */
static enum fault_kind draw_kind(struct chance *chance)
{
	static const enum fault_kind hidden[] = {FAULT_AMNESIA, FAULT_AMNESIA,
						 FAULT_EMPTIED, FAULT_EVICTED};
	static const enum fault_kind told[] = {FAULT_AMNESIA, FAULT_EMPTIED,
					       FAULT_EVICTED, FAULT_KILL,
					       FAULT_WALL};

	if (plan.hides && plan.hiding.anew)
		return FAULT_EMPTIED;
	if (plan.hides)
		return plan.hiding.silent
			       ? FAULT_AMNESIA
			       : hidden[chance_between(chance, 0, 3)];
	return plan.forgetting == FORGETS_TOLD
		       ? told[chance_between(chance, 0, 4)]
		       : (enum fault_kind)chance_between(chance, 0, FAULT_WALL);
}

static void draw_fault(struct chance *chance, int64_t from, int64_t until)
{
	struct fault *fault = &plan.fault[plan.faults++];

	*fault = (struct fault){
		.kind = draw_kind(chance),
		.at = chance_between(chance, from, until),
		.lasts = draw_time(chance),
		.host = (size_t)chance_between(chance, 0,
					       (int64_t)plan.clients - 1),
		.node = (size_t)chance_between(chance, 0,
					       (int64_t)plan.servers - 1),
		.detail = (int64_t)(chance_draw(chance) >> 1),
		.aims = chance_is(chance, 400) || plan.hides,
	};
	if (!plan.hides)
		return;
	fault->lasts = chance_between(chance, 10, 200) * MS;
	if (plan.hiding.early)
		fault->at = from;
	while (plan.hiding.away[fault->node])
		fault->node = (fault->node + 1) % plan.servers;
}

/* How much longer (us) those that know more are out of reach, so that servers which have
 * forgotten get their vote, and fences rise by the clock alone. */
static int64_t until_vote(void)
{
	return plan.agrees && plan.forgetting == FORGETS_AT_ANY_TIME
		       ? plan.quarantine * MS + 3 * SECOND
		       : 0;
}

/* When it is over, and links are whole again: forget_together() and plan_held() cut some
 * for longer than it lasts. */
static int64_t ends_at(const struct fault *fault)
{
	bool cuts_more =
		fault->kind == FAULT_LATE || fault->kind == FAULT_REQUEST ||
		(plan.forgetting == FORGETS_AT_ANY_TIME &&
		 fault->kind >= FAULT_RESTART && fault->kind <= FAULT_AMNESIA);

	return fault->at + fault->lasts +
	       cuts_more * (2 * longest_ttl() * MS + until_vote()) +
	       plan.refuses * LOADS_LONGEST;
}

/* All the time, at each server: often, now and then or never, for each kind of request. */
static void draw_cut_at(struct chance *chance, enum request_kind kind,
			int64_t from, int64_t until)
{
	static const int64_t most[REQUEST_KINDS] = {
		[REQUEST_ACQUIRE] = 100, [REQUEST_PUT_BACK] = 500,
		[REQUEST_MOVE] = 1000,   [REQUEST_RAISE] = 1000,
		[REQUEST_EXTEND] = 200,  [REQUEST_RELEASE] = 200,
	};
	static const int64_t parts[] = {0, 10, 40, 100};

	plan.fault[plan.faults++] = (struct fault){
		.kind = FAULT_REQUEST,
		.at = from,
		.lasts = until - from,
		.request = kind,
		.detail = most[kind] * pick(chance, parts, 4) / 100,
	};
}

/* All servers; what detail says is forget_together()'s, of the servers that are killed. */
static void draw_fresh(struct chance *chance, int64_t from, int64_t until)
{
	int64_t at = chance_between(chance, from, until);

	plan.fault[plan.faults++] = (struct fault){
		.kind = FAULT_AMNESIA,
		.at = at,
		.lasts = chance_between(chance, 10, 300) * MS,
		.detail = 0x7f01,
	};
	plan.fault[plan.faults++] = (struct fault){
		.kind = FAULT_BUSY,
		.at = at + chance_between(chance, 0, plan.quarantine * MS),
		.lasts = chance_between(chance, SECOND / 2, BUSY_LONGEST),
		.detail = (int64_t)plan.servers,
	};
}

/* Which servers: one of them, most of them beginning with that, or all, by detail. */
static void draw_busy(struct chance *chance, int64_t from, int64_t until)
{
	const int64_t counts[] = {1, (int64_t)plan.servers / 2 + 1,
				  (int64_t)plan.servers};

	plan.fault[plan.faults++] = (struct fault){
		.kind = FAULT_BUSY,
		.at = chance_between(chance, from, until),
		.lasts = chance_between(chance, SECOND / 10, BUSY_LONGEST),
		.node = (size_t)chance_between(chance, 0,
					       (int64_t)plan.servers - 1),
		.detail = pick(chance, counts, 3),
		.aims = chance_is(chance, 400),
	};
}

static int64_t draw_storm(struct chance *chance)
{
	if (plan.hides)
		return 30 * SECOND;
	return (chance_between(chance, 2, 10) + plan.cuts * 20 +
		plan.strays * 20) *
	       SECOND;
}

/* Those of plan.refuses. */
static void draw_scripts(struct chance *chance, int64_t from, int64_t until)
{
	int64_t count = chance_between(chance, 1, 6);

	for (int64_t n = 0; plan.refuses && n < count; n++)
		draw_busy(chance, from, until);
	for (int64_t n = 0; plan.fresh && n < count / 2; n++)
		draw_fresh(chance, from, until);
}

static bool has_owners(void)
{
	for (size_t i = 0; i < plan.clients; i++)
		if (plan.client[i].kind == KIND_REENTRANT)
			return true;
	return false;
}

/* What befalls a server while there is peace. Owners' holds are counted: some requests arrive
 * twice, and some records are lost, but not the key. */
static enum fault_kind draw_loss(int64_t n)
{
	static const enum fault_kind kinds[] = {FAULT_EVICTED, FAULT_BREAK};

	return has_owners() ? kinds[n % 2] : FAULT_EMPTIED;
}

/* Records are lost while several of an owner have the key, and renew it; some want it kept. */
static void draw_renewals(struct chance *chance)
{
	plan.renews = true;
	for (size_t i = 0; i < plan.keys; i++)
		plan.key[i].ttl = RENEWED_TTL;
	for (size_t i = 0; i < plan.clients; i++) {
		struct client_plan *client = &plan.client[i];

		client->hold = RENEWED_TTL * 3 / 2;
		client->ttl = RENEWED_TTL;
		client->timeout = lease_server_timeout(client->ttl);
		client->kill_after = 100;
		if (client->kind == KIND_REENTRANT && chance_is(chance, 300))
			client->min_hold =
				chance_between(chance, 100, 2 * RENEWED_TTL);
	}
}

/* Some that leave something for others to wait for, and most of the servers to rely on: while
 * there is peace, soon after all have come. */
static void draw_mishaps(void)
{
	static const int64_t mosts[] = {0, 5, 20};
	struct chance chance = chance_of(plan.seed, 25);
	bool owners = has_owners();
	int64_t kills = pick(&chance, mosts, 3);
	int64_t losses = pick(&chance, mosts, 3) * (owners ? 2 : 1);

	/* what an owner has is left to it as long as it was killed lately */
	plan.records = plan.mishaps && owners && losses > 0;
	if (plan.records)
		kills = 0;
	if (plan.records && chance_is(&chance, 500))
		draw_renewals(&chance);
	for (int64_t n = 0; plan.mishaps && n < kills + losses; n++)
		plan.fault[plan.faults++] = (struct fault){
			.kind = n < kills ? FAULT_KILL : draw_loss(n),
			.at = chance_between(&chance, 0, PEACE / COMING - 1) *
				      COMING +
			      chance_between(&chance, 0,
					     plan.renews
						     ? RENEWED_TTL * MS * 3 / 2
					     : plan.records ? plan.apart
							    : SECOND / 2),
			.host = (size_t)chance_between(
				&chance, 0, (int64_t)plan.clients - 1),
			.node = (size_t)chance_between(
				&chance, 0, (int64_t)plan.servers - 1),
			.detail = (int64_t)(chance_draw(&chance) >> 1),
			.aims = plan.records || chance_is(&chance, 500),
		};
}

static void draw_repeats(void)
{
	struct chance chance = chance_of(plan.seed, 36);

	for (int64_t n = 0; n < 40; n++)
		plan.fault[plan.faults++] = (struct fault){
			.kind = FAULT_BREAK,
			.at = chance_between(&chance, 0, PEACE / COMING - 1) *
				      COMING +
			      chance_between(&chance, 0, SECOND),
			.detail = (int64_t)(chance_draw(&chance) >> 1),
			.aims = true,
		};
}

/* One server, so that most are there; at the end most of them are emptied. */
static void draw_stops(void)
{
	struct chance chance = chance_of(plan.seed, 30);
	size_t node =
		(size_t)chance_between(&chance, 0, (int64_t)plan.servers - 1);
	int64_t count = chance_between(&chance, 2, 10);

	for (int64_t n = 0; n < count; n++)
		plan.fault[plan.faults++] = (struct fault){
			.kind = FAULT_STOP,
			.at = chance_between(&chance, 0, PEACE / COMING - 1) *
				      COMING +
			      chance_between(&chance, 0, SECOND),
			.lasts = chance_between(&chance, 1, 8) * SECOND,
			.node = node,
			.detail = (int64_t)(chance_draw(&chance) >> 1),
			.aims = chance_is(&chance, 800),
		};
	if (plan.deserted < INT64_MAX)
		plan.fault[plan.faults++] = (struct fault){
			.kind = FAULT_EMPTIED,
			.at = plan.deserted + DESERTED,
			.node = node,
		};
}

/* The one that wants two is paused for longer than its lease, and all comes when others have had the
 * first. */
static void draw_strays(int64_t from, int64_t until)
{
	struct chance chance = chance_of(plan.seed, 34);
	int64_t ttl = plan.client[0].ttl * MS;

	for (; plan.strays && from < until; from += 5 * ttl) {
		struct fault fault = {
			.kind = FAULT_STRAY,
			.at = from + chance_between(&chance, 0, ttl),
			.lasts = 2 * ttl +
				 chance_between(&chance, ttl / 2, 2 * ttl),
			.detail = chance_between(&chance, 0, ttl * 8 / 10),
		};

		plan.fault[plan.faults++] = fault;
		fault.kind = FAULT_PAUSE;
		fault.at += ttl;
		fault.lasts -= ttl;
		fault.detail = 1; /* at once */
		plan.fault[plan.faults++] = fault;
	}
}

static void draw_faults(struct chance *chance)
{
	struct chance cutting = chance_of(plan.seed, 11);
	struct chance busy = chance_of(plan.seed, 22);
	int64_t at = chance_between(chance, 0, 4) * SECOND * !plan.hiding.early;
	int64_t quarantine = plan.quarantine > longest_ttl() ? plan.quarantine
							     : longest_ttl();

	plan.stretches = chance_is(chance, 150) ? 2 : 1;
	if (plan.peace) {
		plan.stretches = 1;
		plan.stretch[0] = (struct stretch){0, 0, PEACE};
		draw_mishaps();
		if (plan.watches)
			draw_stops();
		if (plan.twice)
			draw_repeats();
		return;
	}
	if (plan.begins_calm) {
		plan.stretch[0] = (struct stretch){0, 0, NEW};
		plan.stretches++;
		at += NEW;
	}
	for (size_t i = plan.begins_calm; i < plan.stretches; i++) {
		int64_t lasts = draw_storm(chance);
		size_t count =
			plan.hides ? 3 : (size_t)chance_between(chance, 0, 25);
		size_t cuts = plan.cuts ? REQUEST_KINDS : 0;
		size_t first = plan.faults;
		struct stretch *calm = &plan.stretch[i];

		calm->begins = at + lasts;
		for (size_t n = 0; n < count; n++)
			draw_fault(chance, at, at + lasts);
		for (size_t n = 0; n < cuts; n++)
			draw_cut_at(&cutting, (enum request_kind)n, at,
				    at + lasts);
		draw_scripts(&busy, at, at + lasts);
		draw_strays(at, at + lasts);
		for (size_t n = first; n < plan.faults; n++)
			if (ends_at(&plan.fault[n]) > calm->begins)
				calm->begins = ends_at(&plan.fault[n]);
		calm->begins +=
			ARMED + 2 * SECOND; /* what is sent again, too */
		calm->settled = calm->begins + 2 * SECOND + quarantine * MS;
		calm->ends = calm->settled + (plan.sites    ? 4 * CROWDS
					      : plan.crowds ? CROWDS
					      : plan.steps  ? 2 * STRETCH
							    : STRETCH);
		at = calm->ends;
	}
}

static void draw_links(struct chance *chance)
{
	static const int64_t distances[] = {50, 200, 1000, 5000, 20000, 80000};
	int64_t far = pick(chance, distances, 6);

	if (plan.forgetting == FORGETS_TOLD && far > NEAR)
		far = NEAR;
	if (plan.hides && far > NEARER)
		far = NEARER;
	for (size_t i = 0; i < plan.clients; i++)
		for (size_t k = 0; k < plan.servers; k++)
			links[i][k] = (struct link){
				.distance = chance_between(chance, 50, far),
				.jitter = chance_is(chance, 500) ? far / 10
								 : 2 * far,
			};
}

/* Each gets the votes of its own site first, whoever comes a little earlier. */
static void draw_distances(void)
{
	struct chance chance = chance_of(plan.seed, 27);
	int64_t far = plan.client[0].timeout * MS *
		      chance_between(&chance, 120, 135) / 1000;

	for (size_t i = 0; plan.sites && i < plan.clients; i++) {
		size_t site = (size_t)chance_between(&chance, 0, 1);

		for (size_t k = 0; k < plan.servers; k++)
			links[i][k].distance = k % 2 == site ? SITE : far;
		for (size_t k = 0; k < plan.servers; k++)
			links[i][k].jitter = links[i][k].distance / 10;
	}
}

/* Whether no record tells by its age that its server has forgotten. */
static bool are_as_young(void)
{
	return plan.hiding.anew || plan.hiding.early;
}

/* How servers forget, and the clients' quarantines: a client's own ttl (--quarantine), the
 * default for that ttl, or the longest ttl of all (max-ttl). */
static void draw_forgetting(struct chance *chance)
{
	int64_t forgetting = chance_between(chance, 0, 9);
	bool guessed = chance_is(chance, plan.uneven ? 500 : 50);

	if (plan.cuts)
		forgetting = 9;
	if (plan.hides) {
		forgetting = plan.hiding.silent ? 0 : 3;
		guessed = !are_as_young();
	}
	plan.forgetting = forgetting < 3 ? FORGETS_AT_ANY_TIME
			  : forgetting == 3 || (forgetting < 6 && plan.uneven)
				  ? FORGETS_TOLD
				  : FORGETS_CAUGHT_UP;
	for (size_t i = 0; i < plan.clients; i++) {
		struct client_plan *client = &plan.client[i];

		if (plan.forgetting == FORGETS_TOLD && !are_as_young())
			client->quarantine = client->ttl;
		else if (guessed)
			client->quarantine = lease_quarantine(client->ttl);
		else
			client->quarantine = longest_ttl();
		if (client->quarantine > plan.quarantine)
			plan.quarantine = client->quarantine;
	}
}

static void draw_way(uint64_t seed)
{
	struct chance chance = chance_of(seed, 23);

	plan.peace = chance_is(&chance, PEACEFUL) || plan_peace;
	if (plan.peace) {
		draw_peace(&chance);
		draw_twice(seed);
		draw_watches(seed);
		draw_away(seed);
		return;
	}
	draw_hiding(seed);
	draw_crowd(seed);
	draw_sites(seed);
	draw_straying(seed);
	draw_away(seed);
	draw_uses(seed);
	draw_cuts(seed);
	draw_boots(seed);
}

void plan_draw(uint64_t seed, size_t servers)
{
	static const int64_t counts[] = {1, 1, 3, 3, 3, 5, 7};
	struct chance chance = chance_of(seed, 1);

	memset(&plan, 0, sizeof(plan)); /* --shrink draws it more than once */
	plan.seed = seed;
	plan.servers = (size_t)pick(&chance, counts, 7);
	if (plan_crowds && plan.servers < 3)
		plan.servers = 3;
	if (servers > 0)
		plan.servers = servers;
	plan.uneven = chance_is(&chance, 300);
	draw_clients(&chance);
	draw_readers(seed);
	draw_once(seed);
	draw_several(seed);
	draw_way(seed);
	for (size_t i = 0; i < plan.clients; i++)
		draw_lease(&chance, &plan.client[i]);
	if (plan.servers >= 3)
		draw_forgetting(&chance);
	draw_refusals();
	draw_links(&chance);
	draw_distances();
	draw_faults(&chance);
}

static const char *others_of(size_t client)
{
	static char text[40];

	*text = '\0';
	for (size_t i = 1; i <= plan.client[client].also_count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 " and key%zu", plan_wanted(client, i));
	return text;
}

static void print_client(size_t i, const struct client_plan *client)
{
	static const char *const kinds[] = {
		[KIND_EXCLUSIVE] = "exclusive", [KIND_REENTRANT] = "reentrant",
		[KIND_SHARED] = "shared",       [KIND_PERMITS] = "permits",
		[KIND_NONE] = "waits only",
	};

	printf("client %zu: key%zu%s, %s%s%s%s, ttl %lld ms, a round %lld ms, "
	       "--kill-after %lld ms, quarantine %lld ms, holds it for up to "
	       "%lld ms, waits for %lld ms\n",
	       i, client->key, others_of(i), kinds[client->kind],
	       client->forces   ? ", breaks it"
	       : client->plain  ? ", --remember 0.1s"
	       : client->script ? ", acquire"
				: "",
	       client->nonblock ? ", -n" : "", client->poll ? ", --poll" : "",
	       (long long)client->ttl, (long long)client->timeout,
	       (long long)client->kill_after, (long long)client->quarantine,
	       (long long)client->hold, (long long)client->limit);
}

static void print_fault(size_t i, const struct fault *fault)
{
	printf("fault %zu at %.3f for %.3f s: %s ", i, (double)fault->at / 1e6,
	       (double)fault->lasts / 1e6, fault_names[fault->kind]);
	if (fault->kind == FAULT_REQUEST)
		printf("(%s, %lld of 1000)\n", request_names[fault->request],
		       (long long)fault->detail);
	else if (fault->kind == FAULT_BUSY)
		printf("(%lld, server %zu first)\n", (long long)fault->detail,
		       fault->node);
	else
		printf("(client %zu, server %zu)\n", fault->host, fault->node);
}

void plan_print(void)
{
	static const char *const forgettings[] = {
		[FORGETS_CAUGHT_UP] = "",
		[FORGETS_AT_ANY_TIME] = " that forget at any time",
		[FORGETS_TOLD] = " that forget what another one knows",
	};

	printf("seed %llu: %zu servers%s\n", (unsigned long long)plan.seed,
	       plan.servers, forgettings[plan.forgetting]);
	for (size_t i = 0; plan.hides && i < plan.servers; i++)
		if (plan.hiding.away[i])
			printf("client %zu does not reach server %zu%s\n",
			       plan.hiding.holder, i,
			       plan.hiding.silent  ? ", and the others reach "
						     "nobody who knows it"
			       : plan.hiding.anew  ? ", and all but one forget"
			       : plan.hiding.early ? ", and one forgets at once"
						   : "");
	for (size_t i = 0; i < plan.servers; i++)
		if (plan.away[i])
			printf("server %zu is %s all the time\n", i,
			       plan.away_stopped ? "stopped" : "out of reach");
	if (plan.peace)
		printf("nothing befalls anybody, and clients come within %.3f "
		       "s\n",
		       (double)plan.apart / 1e6);
	if (plan.twice)
		printf("releases of owners arrive twice\n");
	if (plan.partial)
		printf("each client reaches all servers but one\n");
	if (plan.watches)
		printf("many only wait, and a server is stopped now and "
		       "then\n");
	if (plan.crowds)
		printf("all clients come at the same moment\n");
	if (plan.sites)
		printf("clients and servers are at two sites\n");
	if (plan.cuts)
		printf("links are cut at requests\n");
	if (plan.strays)
		printf("requests come after later ones\n");
	if (plan.refuses)
		printf("servers refuse all for a time%s\n",
		       plan.fresh ? ", and after they have forgotten all" : "");
	if (plan.boots)
		printf("hosts are restarted\n");
	if (plan.patient)
		printf("commands may take long to stop\n");
	if (plan.flushes)
		printf("servers forget scripts\n");
	if (plan.agrees)
		printf("clocks are not set\n");
	if (plan.set_back)
		printf("clocks of servers are set back%s\n",
		       plan.steps ? ", while others wait in line, too" : "");
	if (plan.breaks)
		printf("now and then one asks the holders to stop\n");
	for (size_t i = 0; i < plan.keys; i++)
		printf("%s: permits %lld, --once-in %lld ms, --remember %lld "
		       "ms\n",
		       plan.key[i].name, (long long)plan.key[i].permits,
		       (long long)plan.key[i].once_in,
		       (long long)plan.key[i].remember);
	for (size_t i = 0; i < plan.clients; i++)
		if (!plan.client[i].dropped)
			print_client(i, &plan.client[i]);
	for (size_t i = 0; i < plan.faults; i++)
		if (!plan.fault[i].dropped)
			print_fault(i, &plan.fault[i]);
	for (size_t i = 0; i < plan.stretches; i++)
		printf("calm from %.3f on, settled at %.3f, until %.3f\n",
		       (double)plan.stretch[i].begins / 1e6,
		       (double)plan.stretch[i].settled / 1e6,
		       (double)plan.stretch[i].ends / 1e6);
}

/* --- what happens ---------------------------------------------------------- */

static void cut(size_t host, size_t node, int64_t way, int64_t lasts)
{
	for (int64_t i = 0; i < 2; i++)
		if ((way & (1 << i)) == 0 &&
		    links[host][node].cut[i] < world_now + lasts)
			links[host][node].cut[i] = world_now + lasts;
}

static void cut_node(size_t node, int64_t way, int64_t lasts)
{
	for (size_t i = 0; i < plan.clients; i++)
		cut(i, node, way, lasts);
}

static void note_unwell(size_t host, size_t node, int64_t lasts)
{
	if (unwell[host][node] < world_now + lasts)
		unwell[host][node] = world_now + lasts;
}

/* forgets: and for a while it has no vote. It tells how long it has been up in whole
 * seconds. */
static void note_sick(const struct node *node, int64_t lasts, bool forgets)
{
	int64_t until = world_now + lasts + plan.quarantine * MS + 3 * SECOND;

	if (forgets && voteless[node->number] < until)
		voteless[node->number] = until;
	for (size_t i = 0; i < plan.clients; i++)
		note_unwell(i, node->number, lasts);
}

/* us. Nobody is told that a server has lost its power, or is there again. */
static int64_t until_back(const struct fault *fault)
{
	bool silent = fault->kind == FAULT_POWER ||
		      (fault->kind <= FAULT_AMNESIA && fault->detail % 3 == 0);

	return fault->lasts + silent * DEAD;
}

static void do_near(void *context, uint64_t value)
{
	const struct fault *fault = context;
	struct link *link = &links[fault->host][fault->node];

	(void)value;
	link->distance = usual[fault->host][fault->node];
	link->lost = 0;
}

static void do_prompt(void *context, uint64_t value)
{
	const struct fault *fault = context;

	(void)value;
	late_until[fault->host] = 0;
	for (size_t i = 0; i < plan.servers; i++)
		links[fault->host][i].late = 0;
}

static void do_fast(void *context, uint64_t value)
{
	(void)value;
	((struct node *)context)->slowness = 0;
}

static void do_continue(void *context, uint64_t value)
{
	(void)value;
	node_continue(context);
}

/* What it has on its disk is read first. */
static void load(struct node *node)
{
	int64_t lasts;

	if (!plan.refuses)
		return;
	lasts = chance_between(&node->chance, 0, LOADS_LONGEST);
	note_sick(node, lasts, false);
	node_load(node, lasts);
}

static void do_restart(void *context, uint64_t value)
{
	struct node *node = context;

	if (!node->up) {
		node_restart(node, value ? store_copy(node->store) : NULL);
		load(node);
		if (value == 0)
			network_note_loss(node, true);
	}
}

static void do_restart_old(void *context, uint64_t value)
{
	struct node *node = context;

	(void)value;
	if (node->up)
		return;
	node_restart(node, old[node->number]);
	load(node);
	node->losses++;
	node->lost = world_now;
	if (node->number == 0)
		network_record = NULL; /* there is no telling Redis of this */
	old[node->number] = NULL;
}

static struct word name_of(size_t key)
{
	return (struct word){plan.key[key].name, strlen(plan.key[key].name)};
}

static struct word record_of(size_t key, char name[40])
{
	snprintf(name, 40, "{%s}:redlock", plan.key[key].name);
	return (struct word){name, strlen(name)};
}

static bool knows_fence(struct node *node, size_t key)
{
	char name[40];
	struct word record = record_of(key, name);

	return store_field(node->store, node_now(node) / MS, record, "fence") >=
	       judge_fence(key);
}

static bool has_old_record(struct node *node, size_t key)
{
	char name[40];
	struct word record = record_of(key, name);
	int64_t now = node_now(node) / MS,
		began = store_field(node->store, now, record, "began");

	return began != 0 && began <= now - 2 * longest_ttl();
}

/* A record that began when its server was asked again, after others, may have no vote. One from
 * the future began before the clock was set back. */
static bool has_vote(struct node *node, size_t key)
{
	char name[40];
	int64_t began = store_field(node->store, node_now(node) / MS,
				    record_of(key, name), "began");

	return began > node_now(node) / MS || has_old_record(node, key);
}

bool plan_is_whole(size_t client, int64_t since)
{
	size_t count = 0;

	for (size_t k = 0; k < plan.servers; k++)
		count += plan_is_well(client, k, since) &&
			 voteless[k] < since &&
			 has_vote(&nodes[k], plan.client[client].key);
	return count > plan.servers / 2;
}

bool plan_has_old_record(size_t node, size_t key)
{
	return voteless[node] < world_now && has_old_record(&nodes[node], key);
}

/* Whether another server knows all holders that this one knows. */
static bool is_known_by(const struct node *other, const struct node *node,
			size_t key)
{
	return other->up &&
	       store_is_covered(node->store, node_now(node) / MS, name_of(key),
				other->store, node_now(other) / MS);
}

static bool is_known_elsewhere(const struct node *node, size_t key)
{
	for (size_t i = 0; i < plan.servers; i++)
		if (&nodes[i] != node && is_known_by(&nodes[i], node, key))
			return true;
	return false;
}

/* Whether the plan allows it now (enum forgetting). up: it stays up. */
static bool may_forget(const struct node *node, bool up)
{
	if (plan.servers < 3)
		return false;
	if (plan.forgetting == FORGETS_TOLD) {
		if (up && world_now < lost + (longest_ttl() + 1000) * MS)
			return false;
		for (size_t k = 0; k < plan.keys; k++)
			if (!is_known_elsewhere(node, k))
				return false;
		return true;
	}
	if (up && plan.uneven)
		return false;
	for (size_t i = 0; i < plan.servers; i++)
		for (size_t k = 0; k < plan.keys; k++) {
			struct node *other = &nodes[i];

			if (other == node || judge_fence(k) == 0)
				continue;
			if (plan.forgetting == FORGETS_CAUGHT_UP &&
			    (!other->up || !knows_fence(other, k)))
				return false;
			if (up && (!other->up || !has_old_record(other, k)))
				return false;
		}
	return true;
}

/* record: that, and not the key. */
static void evict(struct node *node, size_t key, bool record)
{
	char name[40];
	const struct word words[] = {
		{"DEL", 3}, record ? record_of(key, name) : name_of(key)};
	struct buffer answer = {0};

	world_tell(node->name, record ? "loses a record" : "loses a key");
	store_execute(node->store, node_now(node), words, 2, &answer);
	buffer_release(&answer);
	node->lost = world_now;
	if (node->number == 0)
		network_record = NULL; /* there is no telling Redis of this */
}

static void clear(struct node *node)
{
	store_clear(node->store);
	network_note_loss(node, true);
}

static void empty(struct node *node)
{
	world_tell(node->name, "is emptied");
	note_sick(node, 0, true);
	clear(node);
}

/* Whoever of its owner is there has had the key for a while, no other owner has it, and no acquire
 * or put-back is on its way: of those a server that has lost its record cannot know whether the key counts them already. */
static bool is_quiet(const struct node *node, size_t client)
{
	size_t key = plan.client[client].key;
	const char *token = client_token(client, key);
	int64_t now = node_now(node) / MS;

	for (size_t i = client % 2; i < plan.clients; i += 2)
		if (i != client && client_token(i, key) != NULL &&
		    !judge_holds(i, key, world_now - 4 * plan_way()))
			return false;
	return token != NULL &&
	       judge_holds(client, key, world_now - 4 * plan_way()) &&
	       store_lease(node->store, now, name_of(key), token) >= 0 &&
	       store_size(node->store, now, name_of(key)) == 1;
}

/* plan.records */
static void lose_record(struct node *node, size_t client)
{
	size_t key = plan.client[client].key;

	if (plan.key[key].kind != KIND_REENTRANT || !is_quiet(node, client)) {
		world_tell(node->name, "may not forget now");
		return;
	}
	lost = world_now;
	evict(node, key, true);
}

static bool is_held(const struct node *node)
{
	for (size_t k = 0; k < plan.keys; k++)
		if (store_type(node->store, node_now(node) / MS, name_of(k)) !=
		    NULL)
			return true;
	return false;
}

/* plan.deserted: nobody has anything that they could forget, and whoever waits is told by one
 * server at least that it has known the key for long. */
static void desert(const struct node *node)
{
	for (size_t i = 0; i < plan.servers; i++)
		if (is_held(&nodes[i])) {
			world_tell("servers", "may not forget now");
			return;
		}
	lost = world_now;
	for (size_t n = 0; n <= plan.servers / 2; n++)
		empty(&nodes[(node->number + n) % plan.servers]);
}

static void forget(struct node *node, const struct fault *fault)
{
	bool empties = fault->kind == FAULT_EMPTIED;
	bool evicts = fault->kind == FAULT_EVICTED;

	if (plan.watches) {
		desert(node);
		return;
	}
	note_sick(node, until_back(fault), true);
	if (evicts && plan.records) {
		lose_record(node, fault->host);
		return;
	}
	if (!node->up || !may_forget(node, empties || evicts)) {
		world_tell(node->name, "may not forget now");
		return;
	}
	if (empties || evicts)
		lost = world_now;
	if (evicts) {
		evict(node, (size_t)fault->detail % plan.keys,
		      fault->detail / KEYS_MOST % 2 == 0);
		return;
	}
	if (empties) {
		empty(node);
		return;
	}
	if (node->keeps != KEEPS_NOTHING)
		return;
	node_kill(node, fault->detail % 3 == 0);
	world_at(world_now + fault->lasts,
		 (fault->detail % 2 == 0 || plan.hides) &&
				 old[node->number] != NULL
			 ? do_restart_old
			 : do_restart,
		 node, 0);
}

static void befall_client(const struct fault *fault)
{
	struct process *process = client_process(fault->host);

	shaken[fault->host] = world_now + fault->lasts;
	switch (fault->kind) {
	case FAULT_PAUSE:
		if (fault->detail % 2 == 0 && process->trap == 0) {
			process->trap = 1 + fault->detail / 2 % 200;
			process->trap_pause = fault->lasts + 1;
		} else {
			world_tell("process", "%zu is paused", fault->host);
			world_pause(process, fault->lasts + 1);
		}
		break;
	case FAULT_KILL:
		if (fault->detail % 2 == 0 && process->trap == 0) {
			process->trap = 1 + fault->detail / 2 % 200;
			process->trap_pause = 0;
		} else {
			world_tell("process", "%zu is killed", fault->host);
			client_kill(fault->host);
		}
		break;
	default:
		if (plan.agrees)
			break;
		process->wall.offset = EPOCH +
				       fault->detail % (200 * 86400 * SECOND) -
				       100 * 86400 * SECOND;
	}
}

/* Several servers forget at once; with FORGETS_AT_ANY_TIME the others are sometimes out of
 * reach meanwhile. */
static void forget_together(const struct fault *fault)
{
	bool alone = plan.forgetting == FORGETS_AT_ANY_TIME &&
		     fault->detail % 2 == 0;

	for (size_t i = 0; i < plan.servers; i++)
		if (i == fault->node || (fault->detail >> (8 + i) & 1) != 0)
			forget(&nodes[i], fault);
		else if (alone)
			cut_node(i, 0,
				 fault->lasts + longest_ttl() * MS +
					 until_vote());
}

/* Those that know the hidden holder, for everybody but that one. */
static void silence_others(const struct node *node)
{
	for (size_t i = 0; plan.hiding.silent && i < plan.servers; i++)
		for (size_t k = 0; k < plan.clients; k++)
			if (!plan.hiding.away[i] && &nodes[i] != node &&
			    k != plan.hiding.holder)
				cut(k, i, 0, HIDDEN_TTL * MS);
}

/* All but one, which knows the hidden holder, and whomever else they know. */
static void empty_others(const struct node *node)
{
	size_t knows = (node->number + 1) % plan.servers;

	while (plan.hiding.away[knows])
		knows = (knows + 1) % plan.servers;
	for (size_t i = 0; i < plan.servers; i++)
		for (size_t k = 0; k < plan.keys; k++)
			if (!is_known_by(&nodes[knows], &nodes[i], k) ||
			    world_now < lost + (longest_ttl() + 1000) * MS) {
				world_tell("servers", "may not forget now");
				return;
			}
	lost = world_now;
	for (size_t i = 0; i < plan.servers; i++)
		if (i != knows)
			empty(&nodes[i]);
	nodes[knows].slowness = plan.hiding.slow;
	world_at(plan.stretch[0].begins, do_fast, &nodes[knows], 0);
}

static void befall_server(struct node *node, const struct fault *fault)
{
	int64_t ends = world_now + fault->lasts;
	bool forgets = fault->kind >= FAULT_RESTART &&
		       fault->kind <= FAULT_EVICTED &&
		       node->keeps != KEEPS_ALWAYS;

	note_sick(node, until_back(fault), forgets);
	if (plan.hides && plan.hiding.anew) {
		empty_others(node);
		return;
	}
	if (plan.hides) {
		forget(node, fault);
		silence_others(node);
		return;
	}
	if (plan.forgetting != FORGETS_CAUGHT_UP &&
	    fault->kind >= FAULT_RESTART && fault->kind <= FAULT_AMNESIA) {
		forget_together(fault);
		return;
	}
	switch (fault->kind) {
	case FAULT_STOP:
		node_stop(node);
		world_at(ends, do_continue, node, 0);
		break;
	case FAULT_RESTART:
	case FAULT_POWER:
		if (!node->up ||
		    (node->keeps == KEEPS_NOTHING && plan.servers > 1))
			break;
		node_kill(node, fault->kind == FAULT_POWER);
		world_at(ends, do_restart, node, 1);
		break;
	case FAULT_BREAK:
		if (plan.records) {
			node->breaks_release = true;
			break;
		}
		for (size_t i = 0; plan.twice && i < plan.servers; i++)
			nodes[i].breaks_release = !plan.partial;
		if (plan.twice)
			break;
		node->breaks_before = fault->detail % 2 == 0;
		node->breaks_after = !node->breaks_before;
		break;
	case FAULT_SLOW_NODE:
		node->slowness = fault->detail % (500 * MS);
		world_at(ends, do_fast, node, 0);
		break;
	default:
		forget(node, fault);
	}
}

static void befall_network(struct fault *fault)
{
	struct link *link = &links[fault->host][fault->node];

	for (size_t i = 0; i < plan.servers; i++)
		if (i == fault->node || fault->kind == FAULT_LATE)
			note_unwell(fault->host, i,
				    fault->kind == FAULT_FORGOTTEN
					    ? DEAD
					    : fault->lasts + SECOND);
	switch (fault->kind) {
	case FAULT_CUT:
		cut(fault->host, fault->node, fault->detail % 3, fault->lasts);
		break;
	case FAULT_CUT_HOST:
		for (size_t i = 0; i < plan.servers; i++)
			cut(fault->host, i, fault->detail % 3, fault->lasts);
		break;
	case FAULT_CUT_NODE:
		cut_node(fault->node, fault->detail % 3, fault->lasts);
		break;
	case FAULT_SLOW_LINK:
		link->distance += fault->detail % SECOND;
		world_at(world_now + fault->lasts, do_near, fault, 0);
		break;
	case FAULT_LOSS:
		link->lost = fault->detail % 500;
		world_at(world_now + fault->lasts, do_near, fault, 0);
		break;
	case FAULT_LATE:
		late_until[fault->host] = world_now + fault->lasts;
		for (size_t i = 0; i < plan.servers; i++)
			links[fault->host][i].late =
				fault->detail %
				(plan.client[fault->host].timeout * MS);
		world_at(late_until[fault->host], do_prompt, fault, 0);
		break;
	case FAULT_RESET:
		network_reset(fault->host, fault->node);
		break;
	default:
		network_forget(fault->host, fault->node);
	}
}

static void begin_cuts(const struct fault *fault)
{
	for (size_t i = 0; i < plan.servers; i++)
		nodes[i].cuts[fault->request] = (struct cuts){
			.rate = fault->detail,
			.until = fault->at + fault->lasts,
			.longest = 2 * longest_ttl() * MS,
		};
}

static void occupy(const struct fault *fault)
{
	for (int64_t n = 0; n < fault->detail; n++) {
		struct node *node =
			&nodes[(fault->node + (size_t)n) % plan.servers];

		if (plan.away[node->number])
			continue;
		note_sick(node, fault->lasts, false);
		node_occupy(node, fault->lasts);
	}
}

static void befall(struct fault *fault)
{
	if (fault->kind == FAULT_REQUEST) {
		plan_faults[fault->kind]++;
		begin_cuts(fault);
		return;
	}
	if (fault->kind == FAULT_STRAY) {
		int64_t ttl = plan.client[fault->host].ttl * MS;

		plan_faults[fault->kind]++;
		straying[fault->host].until = world_now + ttl;
		straying[fault->host].come =
			world_now + fault->lasts - fault->detail;
		return;
	}
	if (fault->kind == FAULT_BUSY) {
		world_tell("FAULT", "%s (%lld, server %zu first)",
			   fault_names[fault->kind], (long long)fault->detail,
			   fault->node);
		plan_faults[fault->kind]++;
		occupy(fault);
		return;
	}
	if (plan.away[fault->node] && fault->kind >= FAULT_STOP &&
	    fault->kind <= FAULT_SLOW_NODE)
		return;
	world_tell("FAULT", "%s (client %zu, server %zu)",
		   fault_names[fault->kind], fault->host, fault->node);
	plan_faults[fault->kind]++;
	if (fault->kind <= FAULT_FORGOTTEN)
		befall_network(fault);
	else if (fault->kind <= FAULT_SLOW_NODE)
		befall_server(&nodes[fault->node], fault);
	else
		befall_client(fault);
}

static void do_befall(void *context, uint64_t value)
{
	struct fault *fault = context;

	if (value == 0 && fault->aims) {
		fault->armed = true; /* and now, if nobody holds anything */
		if (!plan.hides)
			world_at(world_now + ARMED, do_befall, fault, 1);
	} else if (value != 1 || fault->armed) {
		fault->armed = false;
		befall(fault);
	}
}

static void cut_holder(size_t client)
{
	for (size_t i = 0; i < plan.servers; i++)
		cut(client, i, 0, 2 * plan.client[client].ttl * MS);
}

static bool is_hidden(size_t client)
{
	return plan.hides && client == plan.hiding.holder &&
	       world_now >= hides_at() && plan_storms();
}

/* Until when (us) the storm lasts that goes on. */
static int64_t storm_ends(void)
{
	size_t i = 0;

	while (i < plan.stretches && world_now >= plan.stretch[i].begins)
		i++;
	return i < plan.stretches ? plan.stretch[i].begins : 0;
}

/* For longer than a round, and not as long as the lease. */
void plan_succeeds(size_t client)
{
	static struct chance chance;
	const struct client_plan *its = &plan.client[client];
	struct fault fault = {.kind = FAULT_BUSY,
			      .detail = (int64_t)plan.servers / 2 + 1};

	if (!plan.refuses || !plan_storms())
		return;
	if (chance.state == 0)
		chance = chance_of(plan.seed, 28);
	fault.node =
		(size_t)chance_between(&chance, 0, (int64_t)plan.servers - 1);
	fault.lasts =
		chance_between(&chance, its->timeout, its->ttl * 2 / 3) * MS;
	if (chance_is(&chance, 400) && world_now + fault.lasts < storm_ends())
		befall(&fault);
}

bool plan_is_late(size_t client)
{
	if (is_hidden(client))
		return true;
	for (size_t i = 0; i < plan.faults; i++)
		if (plan.fault[i].armed && plan.fault[i].kind == FAULT_LATE)
			return true;
	return world_now < late_until[client];
}

/* The servers that it is away from do not know it. */
static bool is_hidden_well(size_t client)
{
	for (size_t i = 0; i < plan.servers; i++)
		if (plan.hiding.away[i] &&
		    store_type(nodes[i].store, node_now(&nodes[i]) / MS,
			       name_of(plan.client[client].key)) != NULL)
			return false;
	return is_hidden(client);
}

void plan_held(size_t client)
{
	if (plan.hides && !is_hidden_well(client))
		return;
	if (world_now < late_until[client])
		cut_holder(client);
	for (size_t i = 0; i < plan.faults; i++) {
		struct fault *fault = &plan.fault[i];

		if (!fault->armed)
			continue;
		fault->armed = false;
		fault->host = client;
		if (fault->kind == FAULT_LATE) {
			plan_faults[FAULT_LATE]++;
			cut_holder(client);
			return;
		}
		world_at(world_now + fault->detail / 1000 %
					     (plan.hiding.early ? SECOND
					      : plan.hides ? HIDDEN_TTL / 3 * MS
							   : 20 * MS),
			 do_befall, fault, 2);
		return;
	}
}

/* From time to time a server dumps its data to its disk. The worst it can forget is a lease
 * but not the record, so where servers may do so there is no dump while a key is held. */
static void do_save(void *context, uint64_t value)
{
	struct node *node = context;

	(void)value;
	if (node->up &&
	    (plan.forgetting == FORGETS_CAUGHT_UP || !is_held(node))) {
		if (old[node->number] != NULL)
			store_free(old[node->number]);
		old[node->number] = store_copy(node->store);
	}
}

/* All servers fast and all clients slow, as far apart as they may be; or anything. */
static int64_t draw_rate(struct chance *chance, bool apart, int64_t rate)
{
	return apart ? rate : chance_between(chance, -DRIFT, DRIFT);
}

static void begin_clocks(struct chance *chance)
{
	bool apart = chance_is(chance, 400);

	for (size_t i = 0; i < plan.servers; i++)
		nodes[i].wall = (struct clock){
			EPOCH + chance_between(chance, 0, 2 * SECOND),
			draw_rate(chance, apart, DRIFT)};
	for (size_t i = 0; i < plan.clients; i++) {
		struct process *process = client_process(i);

		process->boot =
			(struct clock){chance_between(chance, SECOND, AGE),
				       draw_rate(chance, apart, -DRIFT)};
		process->wall = process->boot;
		process->wall.offset =
			EPOCH + chance_between(chance, -SECOND, SECOND);
	}
}

static void do_hide(void *context, uint64_t value)
{
	struct node *node = context;

	(void)value;
	cut(plan.hiding.holder, node->number, 0,
	    plan.stretch[0].begins - world_now);
}

static void set_back(struct node *node, int64_t lasts)
{
	world_tell(node->name, "has its clock set back by %.3f s",
		   (double)lasts / 1e6);
	node->wall.offset -= lasts;
	node->set_back = world_now;
	note_sick(node, 0, true);
	if (old[node->number] != NULL)
		store_free(old[node->number]);
	old[node->number] = NULL;
	if (node->number == 0)
		network_record = NULL; /* there is no telling Redis of this */
}

/* What a server has on its disk would last for longer, too. One that was restarted, and may
 * have forgotten something, would have no vote for as long. */
static void do_set_back(void *context, uint64_t lasts)
{
	struct node *node = context;

	if (!plan_storms() || (node->life > 1 && node->keeps != KEEPS_ALWAYS))
		return;
	if (!node->up || is_held(node)) {
		world_at(world_now + 5 * MS, do_set_back, node, lasts);
		return;
	}
	set_back(node, (int64_t)lasts);
}

/* By so little that leases which are held need not end before. */
static void do_step_back(void *context, uint64_t lasts)
{
	struct node *node = context;

	if (node->up && (node->life == 1 || node->keeps == KEEPS_ALWAYS))
		set_back(node, (int64_t)lasts);
}

static void do_flush_scripts(void *context, uint64_t pause)
{
	struct node *node = context;

	flushed[node->number] = world_now;
	if (node->up && !node->busy) { /* one that is busy would refuse it */
		memset(store_scripts(node->store), 0,
		       SCRIPTS_MOST * sizeof(bool));
		network_note_loss(node, false);
	}
	if (world_now < plan.stretch[0].ends)
		world_at(world_now + (int64_t)pause, do_flush_scripts, node,
			 pause);
}

/* So records are gone. */
static void do_pass_week(void *context, uint64_t value)
{
	(void)context;
	(void)value;
	if (clients_busy() < 0) {
		world_tell("servers", "a week has passed");
		for (size_t i = 0; i < plan.servers; i++) {
			int64_t was = nodes[i].lost;

			clear(&nodes[i]);
			nodes[i].lost = was; /* nobody had anything there */
			nodes[i].losses--;
		}
		for (size_t k = 0; k < plan.keys; k++)
			judge_forget(k);
	}
}

static void pass_weeks(void)
{
	struct chance chance = chance_of(plan.seed, 24);

	for (int64_t at = COMING;
	     plan.peace && !plan.mishaps && !plan.watches && at < PEACE;
	     at += COMING)
		if (chance_is(&chance, 700))
			world_at(at - 100 * MS, do_pass_week, NULL, 0);
}

static void flush_scripts(void)
{
	struct chance chance = chance_of(plan.seed, 18);

	for (size_t i = 0; plan.flushes && i < plan.servers; i++)
		do_flush_scripts(&nodes[i],
				 (uint64_t)chance_between(&chance, 4 * SECOND,
							  6 * SECOND));
}

static void step_clocks_back(void)
{
	struct chance chance = chance_of(plan.seed, 32);
	const struct stretch *calm = &plan.stretch[plan.stretches - 1];
	int64_t at =
		calm->settled + chance_between(&chance, SECOND / 2, SECOND * 7);
	int64_t lasts = chance_between(&chance, 3 * SECOND, 8 * SECOND);

	for (size_t i = 0; plan.steps && i < plan.servers; i++)
		world_at(at + chance_between(&chance, 0, 20 * MS), do_step_back,
			 &nodes[i], (uint64_t)lasts);
}

static void set_clocks_back(void)
{
	struct chance chance = chance_of(plan.seed, 15);

	if (plan.forgetting != FORGETS_CAUGHT_UP || !plan.set_back)
		return;
	step_clocks_back();
	for (size_t i = 0; i < plan.servers; i++)
		if (chance_is(&chance, 600))
			world_at(chance_between(&chance, 0,
						plan.stretch[0].begins),
				 do_set_back, &nodes[i],
				 (uint64_t)chance_between(&chance, SECOND,
							  SET_BACK));
}

/* By hours, so that servers cannot take the next fence from the clock. */
static void hurry_clocks(void)
{
	struct chance chance = chance_of(plan.seed, 12);

	if (!plan.cuts || chance_is(&chance, 300))
		return;
	for (size_t i = 0; i < plan.clients; i++)
		if (chance_is(&chance, 300))
			client_process(i)->wall.offset +=
				chance_between(&chance, 1, 20) * 3600 * SECOND;
}

void plan_begin(void)
{
	struct chance chance = chance_of(plan.seed, 2);

	network_begin(plan.seed, plan.servers);
	begin_clocks(&chance);
	hurry_clocks();
	set_clocks_back();
	for (size_t i = 0; i < plan.servers; i++) {
		nodes[i].keeps =
			(enum persistence)chance_between(&chance, 0, 2);
		if (plan.forgetting == FORGETS_TOLD || until_vote() > 0 ||
		    plan.fresh)
			nodes[i].keeps = KEEPS_NOTHING;
		network_boot(&nodes[i], AGE);
		for (int64_t n = plan.forgetting == FORGETS_CAUGHT_UP ? 0 : -60;
		     n < 6; n++)
			world_at(chance_between(&chance, 0,
						plan.hides ? hides_at()
							   : 20 * SECOND),
				 do_save, &nodes[i], 0);
	}
	for (size_t i = 0; i < plan.clients; i++)
		for (size_t k = 0; k < plan.servers; k++)
			usual[i][k] = links[i][k].distance;
	for (size_t i = 0; i < plan.faults; i++)
		if (!plan.fault[i].dropped)
			world_at(plan.fault[i].at, do_befall, &plan.fault[i],
				 0);
	for (size_t i = 0; i < plan.servers; i++)
		if (plan.away[i] && plan.away_stopped)
			node_stop(&nodes[i]);
		else if (plan.away[i])
			cut_node(i, 0, INT64_MAX / 2);
	for (size_t i = 0; plan.partial && i < plan.clients; i++)
		cut(i, i / 2 % plan.servers, 0, INT64_MAX / 2);
	for (size_t i = 0; plan.hides && i < plan.servers; i++)
		if (plan.hiding.away[i])
			world_at(hides_at(), do_hide, &nodes[i], 0);
	flush_scripts();
	pass_weeks();
}
