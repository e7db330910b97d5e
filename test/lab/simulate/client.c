#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lease.h"
#include "base/threads.h"
#include "breaking.h"
#include "cmd/several.h"
#include "judge.h"
#include "needless.h"
#include "lock/record.h"
#include "once.h"
#include "run/watchdogs.h"
#include "stands.h"
#include "wait/waiter.h"

#define NOTE_TIME 30000 /* ms (run.c) */
#define SPARED \
	(20 *  \
	 MS) /* that a client which need not run stays away, at the least */

/* COMMAND and its guard: other processes than redlock, which nobody stops. */
struct command {
	bool runs, begun; /* begun: the guard has, and takes nothing back */
	bool stopped;     /* by its guard */
	int64_t since;    /* us: when that has begun */
	unsigned life;    /* of the process that has started it */
	struct stand_guard guard;
};

struct client {
	size_t number;
	const struct client_plan *plan;
	struct process process;
	struct chance chance;
	struct chance exits; /* how COMMAND ends, with --once-in */
	struct chance whims; /* whether it asks others to stop */
	struct chance boots; /* whether its host has been restarted */
	struct command command;
	const struct session *session; /* whose locks COMMAND runs with */
	const struct session *trying;  /* of its redlock */
	const char *scripts;           /* the token that a script has */
	struct fiber *supervisor;      /* waits for COMMAND */
	bool spared;                   /* this life: it need not run */
	bool ends;
};

static struct client clients[CLIENTS_MOST];
static struct url urls[NODES_MOST];
static bool ending;

struct process *client_process(size_t client)
{
	return &clients[client].process;
}

const char *client_token(size_t client, size_t key)
{
	const struct session *session = clients[client].trying;

	for (size_t i = 0; session != NULL && i < session->count; i++)
		if (plan_wanted(client, i) == key)
			return session->locks[i]->grant.token;
	return clients[client].plan->key == key ? clients[client].scripts
						: NULL;
}

bool client_is_barred(size_t client, size_t key, size_t server)
{
	const struct session *session = clients[client].trying;

	for (size_t i = 0; session != NULL && i < session->count; i++)
		if (plan_wanted(client, i) == key)
			return session->locks[i]->barred[server];
	return false;
}

/* --- COMMAND and its guard ------------------------------------------------- */

static void tell(const struct client *client, const char *what)
{
	char who[32];

	snprintf(who, sizeof(who), "client %zu", client->number);
	world_tell(who, "%s", what);
}

static void end_command(struct client *client, const char *why)
{
	if (!client->command.runs)
		return;
	client->command.runs = false;
	tell(client, why);
	judge_end(client->number);
	if (client->supervisor != NULL)
		world_wake(client->supervisor);
}

static void do_exit(void *context, uint64_t life)
{
	struct client *client = context;

	if (client->command.life == life)
		end_command(client, "COMMAND ends");
}

static void do_die(void *context, uint64_t life)
{
	struct client *client = context;

	if (client->command.life != life || !client->command.runs)
		return;
	client->command.stopped = true;
	end_command(client, "COMMAND ends, as its guard wants");
}

/* The guard begins: COMMAND ends some time until validity does, by its host's clock. */
static void stop_command(struct client *client, struct deadline end)
{
	const struct clock *clock = &client->process.boot;
	int64_t last = clock_when(clock, end.at * MS) - 2;

	if (client->command.begun)
		return;
	client->command.begun = true;
	client->command.since = world_now;
	world_at(chance_is(&client->chance, 500)
			 ? last
			 : chance_between(&client->chance, world_now, last),
		 do_die, client, client->command.life);
}

static void do_watch(void *context, uint64_t life)
{
	struct client *client = context;
	struct lease_times times = client->command.guard.times;
	const struct clock *clock = &client->process.boot;

	if (client->command.life != life || !client->command.runs ||
	    client->command.begun)
		return;
	if (clock_read(clock) >= times.term.at * MS)
		stop_command(client, times.end);
	else
		world_at(clock_when(clock, times.term.at * MS), do_watch,
			 client, life);
}

static void tell_belief(const struct client *client)
{
	const struct session *session = client->session;

	for (size_t i = 0; session != NULL && i < session->count; i++) {
		const struct grant *grant = &session->locks[i]->grant;

		judge_belief(client->number, plan_wanted(client->number, i),
			     grant->token,
			     clock_when(&client->process.boot,
					grant->valid.at * MS));
	}
}

/* Whenever its times have changed. */
static void watch_command(void *context)
{
	struct client *client = context;

	tell_belief(client);
	do_watch(client, client->command.life);
}

static void tell_judges(const struct client *client, const struct lock *lock,
			size_t key)
{
	bool evicted = breaking_begin(client->number, key, lock->grant.token);

	judge_begin(client->number, key, lock->grant.fence,
		    lock->wish.kind == KIND_REENTRANT
			    ? (int64_t)client->number % 2 + 1
			    : lock->grant.slot,
		    evicted);
	once_begin(client->number, key, lock->grant.token);
}

/* A script has no guard, but knows how long the lock is valid, and stops by then. */
static void know_validity(struct client *client, struct deadline valid)
{
	client->command.guard.times = (struct lease_times){valid, valid, valid};
}

/* False if it is too late: then the guard has ended it before it began. */
static bool start_command(struct client *client, const struct session *session,
			  int64_t lasts)
{
	struct command *command = &client->command;
	const struct clock *clock = &client->process.boot;
	unsigned life = command->life + 1;

	*command = (struct command){
		.life = life,
		.guard.told = watch_command,
		.guard.context = client,
	};
	stand_entrust(&command->guard, session->locks, session->count,
		      client->plan->kill_after);
	if (client->plan->script)
		know_validity(client, session->lock.grant.valid);
	if (clock_read(clock) >= command->guard.times.term.at * MS)
		return false;
	command->runs = true;
	tell(client, "COMMAND begins");
	for (size_t i = 0; i < session->count; i++)
		tell_judges(client, session->locks[i],
			    plan_wanted(client->number, i));
	client->session = session;
	plan_held(client->number);
	world_at(world_now + lasts, do_exit, client, life);
	watch_command(client);
	return true;
}

/* --- redlock --------------------------------------------------------------- */

static void fill_settings(struct settings *settings,
			  const struct client *client)
{
	static const char *const owners[] = {"owner-a", "owner-b"};
	const struct client_plan *its = client->plan;
	const struct key_plan *key = &plan.key[its->key];

	settings_init(settings);
	for (size_t i = 0; i < plan.servers; i++)
		settings->servers[i] = url_copy(&urls[i]);
	settings->server_count = plan.servers;
	settings->server_timeout = its->timeout;
	settings->ttl = its->ttl;
	settings->quarantine = its->quarantine;
	settings->kill_after = its->kill_after;
	settings->once_in = its->plain ? 0 : key->once_in;
	settings->remember = its->plain ? 100 : key->remember;
	settings->shared = its->kind == KIND_SHARED;
	settings->reentrant = its->kind == KIND_REENTRANT;
	if (settings->reentrant)
		settings->owner = owners[client->number % 2];
	if (its->kind == KIND_PERMITS)
		settings->permits = key->permits;
	settings->key = key->name;
	for (; settings->also_count < its->also_count; settings->also_count++)
		settings->also[settings->also_count] =
			plan.key[its->also[settings->also_count]].name;
}

/* As take.c does. */
static void describe(struct lock *lock, const struct client *client,
		     const struct settings *settings)
{
	int64_t remember = settings->remember;

	if (client->plan->script)
		lock->wish.untracked = true;
	else
		lock->wish.validity_needed = lease_validity_needed(
			settings->ttl, settings->kill_after,
			settings->server_timeout);
	if (remember == UNSET && settings->once_in > lock->wish.afterlife)
		remember = settings->once_in;
	record_describe(&lock->wish.description, (pid_t)client->process.life,
			"COMMAND", settings->ttl, !client->plan->script,
			client->plan->script ? BREAK_EXTENDED : BREAK_STOPS);
	if (lock->wish.kind != KIND_NONE)
		lock->wish.once_in = settings->once_in;
	lock_describe_history(lock, remember);
}

static void open_session(struct client *client, struct session *session,
			 struct settings *settings)
{
	fill_settings(settings, client);
	if (cmd_open(session, settings) != 0)
		abort();
	if (client->plan->kind == KIND_NONE)
		session->lock.wish.kind = KIND_NONE;
	for (size_t i = 0; i < session->count; i++)
		describe(session->locks[i], client, settings);
}

/* Which of its keys this lock is for. */
static size_t key_of(const struct client *client, const struct session *session,
		     const struct lock *lock)
{
	size_t i = 0;

	while (session->locks[i] != lock)
		i++;
	return plan_wanted(client->number, i);
}

static enum lock_result take(struct client *client, struct session *session)
{
	const struct patience patience = {
		.wait = !client->plan->nonblock,
		.poll = client->plan->poll,
		.limit = client->plan->limit,
		.interrupt = -1,
	};
	struct waiter waiter;
	struct lock *about = &session->lock;
	struct busy busy;
	struct error error = {0};
	enum lock_result result;

	if (patience.wait && !patience.poll)
		judge_wait(client->number);
	once_take(client->number);
	if (client->plan->kind != KIND_NONE)
		judge_try(client->number);
	waiter_init(&waiter, &patience);
	result =
		session->count == 1
			? waiter_acquire(&waiter, about, &busy, &error)
			: several_take(session, &waiter, &about, &busy, &error);
	judge_served(client->number);
	if (result == LOCK_BUSY && busy.has_run) {
		tell(client, "need not run");
		client->spared = true;
		once_refused(client->number, key_of(client, session, about));
		judge_spared(client->number);
	} else if (result == LOCK_ERROR) {
		tell(client, error.text);
		if (client->plan->kind != KIND_NONE)
			judge_fails(client->number, error.text);
		if (client->plan->kind != KIND_NONE && patience.wait)
			judge_tires(client->number,
				    deadline_passed(waiter.limit),
				    error.transient, error.text);
	} else if (result != LOCK_OK) {
		struct buffer who = {0};

		tell(client, "gives up");
		if (result == LOCK_BUSY)
			record_print_who(&who, &busy);
		judge_is_told(client->number, who.length > 0 ? who.data : "");
		buffer_release(&who);
		if (client->plan->kind != KIND_NONE)
			judge_gives_up(client->number);
	}
	return result;
}

static void supervise(struct client *client, struct watchdogs *watchdogs)
{
	const struct clock *clock = &client->process.boot;
	struct deadline due;

	client->supervisor = world_fiber();
	while (client->command.runs) {
		watchdogs_act(watchdogs);
		due = watchdogs_due(watchdogs);
		if (client->command.runs)
			world_wait(due.at == INT64_MAX
					   ? INT64_MAX
					   : clock_when(clock, due.at * MS));
	}
	client->supervisor = NULL;
}

/* How COMMAND has ended, for the history of a key, as run.c says it. */
static const char *end_of(struct client *client)
{
	if (client->command.stopped)
		return "signal 15";
	if (plan.key[client->plan->key].once_in > 0 &&
	    chance_is(&client->exits, 300))
		return "exit 1";
	return "exit 0";
}

/* For give_back(). */
struct giving {
	struct client *client;
	struct session *session;
	int64_t left;   /* ms, of --min-hold */
	bool succeeded; /* COMMAND has */
};

/* As run.c has it. */
static struct deadline release_end(const struct session *each)
{
	struct deadline round = deadline_in(each->quorum.timeout);

	if (!each->lock.is_to_be_told)
		return round;
	return deadline_later(round, deadline_earlier(each->lock.grant.valid,
						      deadline_in(NOTE_TIME)));
}

static void release_one(void *context, size_t i)
{
	struct giving *giving = context;
	struct client *client = giving->client;
	struct session *each = session_at(giving->session, i);
	struct deadline until;
	struct error error;
	int64_t began = world_now;

	each->lock.is_to_be_told =
		each->settings->once_in > 0 && giving->succeeded;
	until = release_end(each);
	if (each->lock.is_to_be_told)
		once_releases(client->number, plan_wanted(client->number, i),
			      clock_when(&client->process.boot, until.at * MS));
	if (lock_release(&each->lock, giving->left > 0 ? giving->left : 0,
			 until, &error) == LOCK_ERROR)
		judge_keeps(client->number, plan_wanted(client->number, i),
			    began, error.text);
}

static void give_back(struct giving *giving, const char *how,
		      const struct lock *lost)
{
	struct session *session = giving->session;
	struct client *client = giving->client;
	bool succeeded = strcmp(how, "exit 0") == 0 && lost == NULL;

	giving->succeeded = succeeded;
	for (size_t i = 0; i < session->count; i++) {
		/* one of several is all */
		lock_note_end(session->locks[i], 0,
			      lost != NULL ? "lost" : how);
		if (succeeded)
			once_succeeded(client->number,
				       plan_wanted(client->number, i));
	}
	if (succeeded && session->settings->once_in > 0)
		plan_succeeds(client->number);
	threads_each(session->count, release_one, giving);
	for (size_t i = 0; succeeded && i < session->count; i++)
		once_released(client->number, plan_wanted(client->number, i),
			      &session->locks[i]->ballot);
	tell(client, "has given KEY back");
}

static void hold(struct client *client, struct session *session)
{
	const struct client_plan *its = client->plan;
	struct giving giving = {client, session, 0, false};
	const char *how = "not started";
	const struct lock *lost = NULL;
	struct watchdogs watchdogs = {0};
	struct error error;
	int64_t began = clock_ms(),
		lasts = chance_between(&client->chance, 0,
				       client->plan->hold * MS);

	/* so that it is the guard that ends it, if no renewal gets through */
	if (plan_is_late(client->number))
		lasts = 2 * its->ttl * MS;
	else if (plan_storms() &&
		 chance_is(&client->chance,
			   plan.forgetting == FORGETS_TOLD ? 500 : 200))
		lasts = chance_between(&client->chance, 0, 2 * its->ttl * MS);

	if (start_command(client, session, lasts)) {
		watchdogs_init(&watchdogs, session->locks, session->count,
			       &client->command.guard.guard, its->kill_after);
		supervise(client, &watchdogs);
		watchdogs_stop(&watchdogs);
		lost = watchdogs_lost(&watchdogs, &error);
		if (lost != NULL ? !lost->broken : client->command.stopped)
			judge_loses(client->number,
				    client->command.begun
					    ? client->command.since
					    : world_now,
				    lost != NULL ? error.text : "not renewed");
		if (lost == NULL)
			giving.left = its->min_hold - (clock_ms() - began);
		how = end_of(client);
		watchdogs_release(&watchdogs);
	}
	client->session = NULL;
	give_back(&giving, how, lost);
}

/* --- scripts --------------------------------------------------------------- */

static void open_again(struct client *client, struct session *session,
		       struct settings *settings, const char *token)
{
	fill_settings(settings, client);
	settings->token = token;
	settings->shared = settings->reentrant = false;
	settings->permits = UNSET;
	settings->owner = NULL;
	if (cmd_open(session, settings) != 0)
		abort();
}

static void close_again(struct session *session, struct settings *settings)
{
	cmd_close(session);
	settings_release(settings);
}

/* Its validity may have ended, and COMMAND with it. If the lock is said to be prolonged, the
 * script goes on all the same. */
static void go_on(struct client *client, const struct grant *grant,
		  struct deadline valid)
{
	struct command *command = &client->command;

	know_validity(client, valid);
	command->begun = false;
	if (!command->runs &&
	    clock_read(&client->process.boot) < valid.at * MS) {
		command->runs = true;
		tell(client, "COMMAND goes on");
		judge_resume(client->number, client->plan->key, grant->fence,
			     client->plan->kind == KIND_REENTRANT
				     ? (int64_t)client->number % 2 + 1
				     : grant->slot);
	}
	judge_belief(client->number, client->plan->key, grant->token,
		     clock_when(&client->process.boot, valid.at * MS));
	watch_command(client);
}

/* False: the lock is lost. */
static bool prolong(struct client *client, const struct grant *grant)
{
	struct settings settings;
	struct session again;
	struct error error;
	enum lock_result result;

	open_again(client, &again, &settings, grant->token);
	again.lock.wish.as_taken = true;
	result = lock_extend(&again.lock,
			     wait_until(deadline_in(settings.server_timeout)),
			     &error);
	tell(client, result == LOCK_OK ? "has prolonged it" : error.text);
	if (result == LOCK_OK)
		go_on(client, grant, again.lock.grant.valid);
	close_again(&again, &settings);
	return result != LOCK_NOT_HELD;
}

static void give_token_back(struct client *client, const char *token)
{
	struct settings settings;
	struct session again;
	struct error error;
	int64_t began = world_now;

	open_again(client, &again, &settings, token);
	lock_note_end(&again.lock, -1, "released");
	if (lock_release(&again.lock, 0, deadline_in(settings.server_timeout),
			 &error) == LOCK_ERROR)
		judge_keeps(client->number, client->plan->key, began,
			    error.text);
	close_again(&again, &settings);
	tell(client, "has given KEY back");
}

static void wait_until_moment(int64_t moment)
{
	while (world_now < moment)
		world_wait(moment);
}

/* The redlock that has acquired it ends. The script prolongs it now and then, mostly in
 * time. */
static void use(struct client *client, struct session *session)
{
	const struct client_plan *its = client->plan;
	const struct grant grant = session->lock.grant;
	int64_t ends =
		world_now + chance_between(&client->chance, 0,
					   plan_storms() ? 3 * its->ttl * MS
							 : its->hold * MS);
	bool held = true;

	if (!start_command(client, session, INT64_MAX / 2 - world_now))
		ends = world_now;
	client->session = NULL;
	client->scripts = grant.token;
	cmd_close(session);
	session->count = 0;
	while (held && world_now < ends) {
		int64_t wakes =
			world_now + chance_between(&client->chance, 0,
						   its->ttl * MS * 11 / 10);

		wait_until_moment(wakes < ends ? wakes : ends);
		if (world_now < ends)
			held = prolong(client, &grant);
	}
	end_command(client, "COMMAND ends");
	give_token_back(client, grant.token);
	client->scripts = NULL;
	judge_left(client->number, its->key, grant.token, 0);
}

static void do_live(void *context, uint64_t value);

static void *live(void *argument)
{
	struct client *client = argument;
	struct settings settings;
	struct session session;

	open_session(client, &session, &settings);
	client->trying = &session;
	if (plan_forces(client->number) && chance_is(&client->whims, 800))
		breaking_force(client->number, &session);
	else if (plan.breaks && chance_is(&client->whims, 150) &&
		 plan.key[client->plan->key].kind != KIND_REENTRANT)
		breaking_ask(client->number, &session);
	else if (take(client, &session) == LOCK_OK &&
		 client->plan->kind != KIND_NONE)
		(client->plan->script ? use : hold)(client, &session);
	for (size_t i = 0; i < session.count; i++)
		judge_left(client->number, plan_wanted(client->number, i),
			   session.locks[i]->grant.token,
			   client->plan->min_hold);
	client->trying = NULL;
	cmd_close(&session);
	settings_release(&settings);
	client->process.alive = false;
	if (network_open(&client->process) > 0)
		world_violation("client %zu leaves descriptors open",
				client->number);
	world_at(plan_return(client->number, &client->chance) +
			 (client->spared ? SPARED : 0),
		 do_live, client, 0);
	return NULL;
}

/* --- its life -------------------------------------------------------------- */

/* What others tell of it may have begun before its clock did. */
static void restart_host(struct client *client)
{
	struct clock *clock = &client->process.boot;

	clock->offset += chance_between(&client->boots, SECOND, 4 * SECOND) -
			 clock_read(clock);
	tell(client, "its host has been restarted");
}

static void do_live(void *context, uint64_t value)
{
	struct client *client = context;

	(void)value;
	if (ending || client->process.alive)
		return;
	if (client->command.runs) { /* its host still has the last one */
		world_at(world_now + 100 * MS, do_live, client, 0);
		return;
	}
	if (plan.boots && chance_is(&client->boots, 300))
		restart_host(client);
	client->spared = false;
	client->process.life++;
	world_start(&client->process, live, client);
}

/* The guard reads the end of redlock's pipe. */
static void die(struct process *process)
{
	struct client *client = process->context;
	const struct clock *clock = &process->boot;
	struct lease_times times = client->command.guard.times;
	struct deadline soon =
		deadline_at(clock_read(clock) / MS + client->plan->kill_after);

	network_close_all(process);
	for (size_t k = 0; k < plan.keys; k++)
		judge_dies(client->number, k, client_token(client->number, k));
	judge_served(client->number);
	judge_killed(client->number);
	once_killed(client->number);
	client->supervisor = NULL;
	client->session = client->trying = NULL;
	client->scripts = NULL;
	if (client->command.runs)
		stop_command(client, deadline_earlier(soon, times.end));
	world_at(plan_return(client->number, &client->chance), do_live, client,
		 0);
}

void client_kill(size_t client)
{
	world_kill(&clients[client].process);
}

void clients_begin(void)
{
	struct error error;
	char text[60];

	breaking_watch();
	judge_watch();
	needless_watch();
	for (size_t i = 0; i < plan.servers; i++) {
		snprintf(text, sizeof(text), "redis://s%zu:%zu", i, i + 1);
		if (url_parse(&urls[i], text, &error) < 0)
			abort();
	}
	for (size_t i = 0; i < plan.clients; i++) {
		struct client *client = &clients[i];

		client->number = i;
		client->plan = &plan.client[i];
		client->chance = chance_of(plan.seed, 3000 + i);
		client->exits = chance_of(plan.seed, 5000 + i);
		client->whims = chance_of(plan.seed, 6000 + i);
		client->boots = chance_of(plan.seed, 7000 + i);
		client->process.number = client->process.host = i;
		client->process.chance = chance_of(plan.seed, 4000 + i);
		client->process.died = die;
		client->process.context = client;
		if (!client->plan->dropped)
			world_at(chance_between(&client->chance, 0,
						client->plan->think * MS),
				 do_live, client, 0);
	}
}

void clients_end(void)
{
	ending = true;
}

int clients_busy(void)
{
	for (size_t i = 0; i < plan.clients; i++)
		if (clients[i].process.alive || clients[i].command.runs)
			return (int)i;
	return -1;
}
