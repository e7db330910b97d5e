#include "once.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "judge.h"

#define SUCCESSES 256 /* of a key, the last ones */
#define NEVER INT64_MAX

/* A run of a key, and what each server knows of it. */
struct run {
	char token[TOKEN_LONGEST + 1];
	int64_t began; /* us */
	struct {
		int64_t began; /* ms, by its clock */
		bool granted; /* it had granted KEY by the time COMMAND began */
		unsigned losses; /* by then */
		int64_t noted;   /* us: since when we know that it is noted */
	} at[NODES_MOST];
};

static struct run runs[CLIENTS_MOST][KEYS_MOST]; /* the current or last one */
static int64_t takes[CLIENTS_MOST];              /* us */
static struct run successes[KEYS_MOST][SUCCESSES];
static size_t counts[KEYS_MOST];

static size_t first_of(size_t key)
{
	return counts[key] > SUCCESSES ? counts[key] - SUCCESSES : 0;
}

static struct run *success_at(size_t key, size_t n)
{
	return &successes[key][n % SUCCESSES];
}

/* --- what servers have written down ---------------------------------------- */

static struct word name_of(char name[60], size_t key, const char *suffix)
{
	snprintf(name, 60, "{%s}:redlock%s", plan.key[key].name, suffix);
	return (struct word){name, strlen(name)};
}

/* After "since=": a time. */
static int64_t read_since(struct word text)
{
	static const char word[] = "since=";
	const char *at = text.data == NULL
				 ? NULL
				 : memmem(text.data, text.length, word, 6);

	/* a description goes on after it */
	return at != NULL ? strtoll(at + 6, NULL, 10) : -1;
}

static int64_t read_holder(const struct node *node, size_t key,
			   const char *token)
{
	char name[60], field[TOKEN_LONGEST + 8];

	snprintf(field, sizeof(field), "holder:%s", token);
	return read_since(store_value(node->store, node_now(node) / MS,
				      name_of(name, key, ""), field));
}

/* When a run that is noted as a success began; -1: it is not. */
static int64_t read_success(const struct node *node, size_t key,
			    const char *token)
{
	char name[60], begins[20];
	struct word text;

	snprintf(begins, sizeof(begins), "%.16s ", token);
	text = store_element(node->store, node_now(node) / MS,
			     name_of(name, key, ":runs"), begins);
	if (text.data == NULL ||
	    memmem(text.data, text.length, " exit 0\n", 8) == NULL)
		return -1;
	return read_since(text);
}

/* --- what is known of a run ------------------------------------------------ */

static bool is_kept(const struct run *run, size_t i)
{
	return run->at[i].losses == nodes[i].losses;
}

static void look(struct run *run, size_t key)
{
	if (world_now - run->began > (plan.key[key].once_in * MS) * 2)
		return; /* by any clock it was long ago */
	for (size_t i = 0; i < plan.servers; i++) {
		int64_t began;

		if (run->at[i].noted != NEVER && is_kept(run, i))
			continue;
		began = read_success(&nodes[i], key, run->token);
		if (began < 0)
			continue;
		run->at[i].noted = world_now;
		if (!run->at[i].granted || !is_kept(run, i))
			run->at[i].began = began;
		run->at[i].losses = nodes[i].losses;
	}
}

static int64_t age_at(const struct run *run, size_t i)
{
	return node_now(&nodes[i]) / MS - run->at[i].began;
}

void once_take(size_t client)
{
	takes[client] = world_now;
	for (size_t key = 0; key < plan.keys; key++)
		for (size_t n = first_of(key); n < counts[key]; n++)
			look(success_at(key, n), key);
}

/* What was over when the server's clock was set back began less than DURATION ago by that clock, or
 * in its future, but it may have been forgotten: with --remember as short as DURATION. (0.5 %: DRIFT) */
static bool was_over(const struct run *run, size_t key, size_t i)
{
	return plan.key[key].remember >= 0 &&
	       nodes[i].set_back - run->began >
		       plan.key[key].once_in * MS * 1005 / 1000;
}

/* On how many servers it was noted by then that it began less than DURATION ago. */
static size_t count_fresh(const struct run *run, size_t key, int64_t by)
{
	size_t count = 0;

	for (size_t i = 0; i < plan.servers; i++)
		count += run->at[i].noted <= by && is_kept(run, i) &&
			 !was_over(run, key, i) &&
			 age_at(run, i) < plan.key[key].once_in;
	return count;
}

static void check_begin(size_t client, size_t key)
{
	bool exclusive = plan.client[client].kind == KIND_EXCLUSIVE;

	if (plan.client[client].plain)
		return;
	for (size_t n = first_of(key); n < counts[key]; n++) {
		struct run *run = success_at(key, n);

		if (exclusive)
			look(run, key);
		if (count_fresh(run, key,
				exclusive ? world_now : takes[client]) >
		    plan.servers / 2)
			world_violation("client %zu runs COMMAND of %s again, "
					"which succeeded less than %lld ms "
					"ago",
					client, plan.key[key].name,
					(long long)plan.key[key].once_in);
	}
}

void once_begin(size_t client, size_t key, const char *token)
{
	struct run *run = &runs[client][key];

	if (plan.key[key].once_in == 0)
		return;
	snprintf(run->token, sizeof(run->token), "%s", token);
	run->began = world_now;
	for (size_t i = 0; i < plan.servers; i++) {
		int64_t began = read_holder(&nodes[i], key, token);

		run->at[i].granted = began >= 0;
		run->at[i].began =
			began >= 0 ? began : node_now(&nodes[i]) / MS;
		run->at[i].losses = nodes[i].losses;
		run->at[i].noted = NEVER;
	}
	check_begin(client, key);
}

void once_succeeded(size_t client, size_t key)
{
	/* what is kept of a plain run is soon forgotten */
	if (plan.key[key].once_in > 0 && !plan.client[client].plain)
		*success_at(key, counts[key]++) = runs[client][key];
}

/* A server that has lost the key gets it back with the age that it has where it was kept. (Of an owner's
 * holds the first tells the age. 1 %: DRIFT, of a server and of another) */
void once_held(size_t client, size_t key, const char *token, int64_t asked)
{
	int64_t most = (world_now - asked) / MS * 101 / 100 + 20;

	for (size_t i = 0; i < plan.servers; i++) {
		int64_t since = read_holder(&nodes[i], key, token),
			held = node_now(&nodes[i]) / MS - since;

		if (since < 0 || nodes[i].set_back >= asked || held <= most ||
		    plan.key[key].kind == KIND_REENTRANT)
			continue;
		world_violation("%s says that client %zu has had %s for %lld "
				"ms, and it has asked for it for %lld ms",
				nodes[i].name, client, plan.key[key].name,
				(long long)held,
				(long long)((world_now - asked) / MS));
	}
}

static unsigned deaths[CLIENTS_MOST];

/* A release of a success, while it goes on. */
struct debt {
	size_t client, key;
	unsigned deaths;
	struct run run;
	bool noted[NODES_MOST];
};

static struct debt *debts[CLIENTS_MOST][KEYS_MOST]; /* of each, the last one */

/* It is not long in the history if others run after it. ballot: the release has returned. */
static void look_at_debt(struct debt *debt, const struct ballot *ballot)
{
	for (size_t i = 0; i < plan.servers; i++)
		debt->noted[i] |=
			read_success(&nodes[i], debt->key, debt->run.token) >=
				0 ||
			(ballot != NULL && ballot->vote[i] == VOTE_YES &&
			 !quorum_has_broken(ballot->quorum, i));
}

/* Servers that a quorum can be made of are asked again every round; new connections and what was
 * lost may take longer. */
static int64_t last_rounds(size_t client)
{
	return 2 * plan.client[client].timeout * MS + SECOND + 8 * plan_way();
}

static void check_debt(const struct debt *debt)
{
	int64_t since = world_now - last_rounds(debt->client);
	size_t able = 0, noted = 0;

	for (size_t i = 0; i < plan.servers; i++) {
		able += debt->run.at[i].granted && is_kept(&debt->run, i) &&
			nodes[i].lost < debt->run.began &&
			plan_is_well(debt->client, i, since);
		noted += debt->noted[i];
	}
	if (able > plan.servers / 2 && noted <= plan.servers / 2)
		world_violation("client %zu has succeeded with %s, which only "
				"%zu servers have noted, and most were there "
				"before its lease was over",
				debt->client, plan.key[debt->key].name, noted);
}

static void do_look_at_debt(void *context, uint64_t value)
{
	struct debt *debt = context;

	(void)value;
	look_at_debt(debt, NULL);
	if (debt->deaths == deaths[debt->client] &&
	    !judge_was_broken(debt->key, debt->run.began))
		check_debt(debt);
	if (debts[debt->client][debt->key] == debt)
		debts[debt->client][debt->key] = NULL;
	free(debt);
}

void once_releases(size_t client, size_t key, int64_t until)
{
	struct debt *debt = xcalloc(1, sizeof(*debt));

	*debt = (struct debt){
		client, key, deaths[client], runs[client][key], {false}};
	debts[client][key] = debt;
	world_at(until, do_look_at_debt, debt, 0);
}

void once_killed(size_t client)
{
	deaths[client]++;
}

void once_released(size_t client, size_t key, const struct ballot *ballot)
{
	if (plan.key[key].once_in == 0)
		return;
	if (debts[client][key] != NULL)
		look_at_debt(debts[client][key], ballot);
	for (size_t n = first_of(key); n < counts[key]; n++) {
		struct run *run = success_at(key, n);

		if (strcmp(run->token, runs[client][key].token) != 0)
			continue;
		for (size_t i = 0; i < plan.servers; i++)
			if (ballot->vote[i] == VOTE_YES &&
			    !quorum_has_broken(ballot->quorum, i) &&
			    run->at[i].granted && is_kept(run, i))
				run->at[i].noted = world_now;
		look(run, key);
	}
}

/* Whether a server may have said so, that long (ms) ago. */
static bool has_fresh(const struct run *run, size_t key, int64_t ago)
{
	int64_t once_in = plan.key[key].once_in;

	for (size_t i = 0; i < plan.servers; i++) {
		int64_t began = read_success(&nodes[i], key, run->token);

		if (age_at(run, i) - ago < once_in ||
		    (began >= 0 &&
		     node_now(&nodes[i]) / MS - began - ago < once_in))
			return true;
	}
	return false;
}

/* When the servers have said so, at the earliest: while it is calm, just now. */
static int64_t refused_at(size_t client)
{
	int64_t just_now =
		world_now - 2 * plan.client[client].timeout * MS - SECOND;

	return plan_storms() || just_now < takes[client] ? takes[client]
							 : just_now;
}

void once_refused(size_t client, size_t key)
{
	/* by the fastest clock that there may be (DRIFT) */
	int64_t ago = (world_now - refused_at(client)) / MS * 1005 / 1000;

	figures.refused++;
	if (plan.key[key].remember >= 0)
		return; /* what the servers knew may have expired by now */
	for (size_t n = first_of(key); n < counts[key]; n++)
		if (has_fresh(success_at(key, n), key, ago + 2))
			return;
	world_violation("client %zu does not run COMMAND of %s, but none has "
			"succeeded for %lld ms",
			client, plan.key[key].name,
			(long long)plan.key[key].once_in);
}
