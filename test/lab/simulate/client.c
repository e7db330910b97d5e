#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lease.h"
#include "judge.h"
#include "lock/record.h"
#include "once.h"
#include "run/watchdog.h"
#include "stands.h"
#include "wait/waiter.h"

#define DRAIN_TIME 100 /* ms (drain.c) */

/* COMMAND and its guard: other processes than redlock, which nobody stops. */
struct command {
	bool runs, begun; /* begun: the guard has, and takes nothing back */
	bool stopped;     /* by its guard */
	unsigned life;    /* of the process that has started it */
	struct stand_guard guard;
};

struct client {
	size_t number;
	const struct client_plan *plan;
	struct process process;
	struct chance chance;
	struct chance exits; /* how COMMAND ends, with --once-in */
	struct command command;
	struct fiber *supervisor; /* waits for COMMAND */
	bool ends;
};

static struct client clients[CLIENTS_MOST];
static struct url urls[NODES_MOST];
static bool ending;

struct process *client_process(size_t client)
{
	return &clients[client].process;
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

/* Whenever its times have changed. */
static void watch_command(void *context)
{
	struct client *client = context;

	do_watch(client, client->command.life);
}

/* False if it is too late: then the guard has ended it before it began. */
static bool start_command(struct client *client, const struct lock *lock,
			  int64_t lasts)
{
	struct command *command = &client->command;
	const struct clock *clock = &client->process.boot;
	unsigned life = command->life + 1;

	*command = (struct command){
		.life = life,
		.guard.times = watchdog_plan(lock, client->plan->kill_after),
		.guard.told = watch_command,
		.guard.context = client,
	};
	if (clock_read(clock) >= command->guard.times.term.at * MS)
		return false;
	command->runs = true;
	tell(client, "COMMAND begins");
	judge_begin(client->number, lock->grant.fence,
		    lock->wish.kind == KIND_REENTRANT
			    ? (int64_t)client->number % 2 + 1
			    : lock->grant.slot);
	once_begin(client->number, client->plan->key, lock->grant.token);
	plan_held(client->number);
	world_at(world_now + lasts, do_exit, client, life);
	watch_command(client);
	return true;
}

/* --- redlock --------------------------------------------------------------- */

/* As take.c does. */
static void describe(struct lock *lock, const struct client *client)
{
	const struct key_plan *key = &plan.key[client->plan->key];
	int64_t remember = key->remember;

	if (remember < 0 && key->once_in > lock->wish.afterlife)
		remember = key->once_in;
	record_describe(&lock->wish.description, (pid_t)client->process.life,
			"COMMAND", client->plan->ttl, true, BREAK_STOPS);
	if (client->plan->kind != KIND_NONE)
		lock->wish.once_in = key->once_in;
	lock_describe_history(lock, remember);
}

static void open_lock(struct client *client, struct quorum *quorum,
		      struct lock *lock)
{
	static const char *const owners[] = {"owner-a", "owner-b"};
	const struct client_plan *its = client->plan;
	const struct key_plan *key = &plan.key[its->key];
	struct url copies[NODES_MOST];

	for (size_t i = 0; i < plan.servers; i++)
		copies[i] = url_copy(&urls[i]);
	quorum_init(quorum, copies, plan.servers, its->timeout,
		    its->quarantine > 0);
	lock_init(lock, quorum, key->name, its->ttl, its->quarantine);
	lock->wish.kind = its->kind;
	if (its->kind == KIND_PERMITS)
		lock->wish.permits = key->permits;
	if (its->kind == KIND_REENTRANT)
		lock->wish.owner = owners[client->number % 2];
	lock->wish.validity_needed =
		lease_room(its->ttl, its->kill_after, its->timeout);
	describe(lock, client);
}

static enum lock_result take(struct client *client, struct lock *lock)
{
	const struct patience patience = {
		.wait = !client->plan->nonblock,
		.poll = client->plan->poll,
		.limit = client->plan->limit,
		.interrupt = -1,
	};
	struct waiter waiter;
	struct busy busy;
	struct error error = {0};
	enum lock_result result;

	if (patience.wait && !patience.poll)
		judge_wait(client->number);
	once_take(client->number);
	waiter_init(&waiter, &patience);
	result = waiter_acquire(&waiter, lock, &busy, &error);
	judge_served(client->number);
	if (result == LOCK_BUSY && busy.has_run) {
		tell(client, "need not run");
		once_refused(client->number, client->plan->key);
	} else if (result == LOCK_ERROR)
		tell(client, error.text);
	else if (result != LOCK_OK)
		tell(client, "gives up");
	return result;
}

static void supervise(struct client *client, struct watchdog *watchdog)
{
	const struct clock *clock = &client->process.boot;
	struct deadline due;

	client->supervisor = world_fiber();
	while (client->command.runs) {
		watchdog_act(watchdog);
		due = watchdog_due(watchdog);
		if (client->command.runs)
			world_wait(due.at == INT64_MAX
					   ? INT64_MAX
					   : clock_when(clock, due.at * MS));
	}
	client->supervisor = NULL;
}

/* How COMMAND has ended, for the history, as run.c says it. */
static const char *end_of(struct client *client, bool lost)
{
	if (lost)
		return "lost";
	if (client->command.stopped)
		return "signal 15";
	if (plan.key[client->plan->key].once_in > 0 &&
	    chance_is(&client->exits, 300))
		return "exit 1";
	return "exit 0";
}

static void give_back(struct client *client, struct lock *lock, const char *how,
		      int64_t left)
{
	size_t key = client->plan->key;
	bool succeeded = strcmp(how, "exit 0") == 0;
	struct error error;

	lock_note_end(lock, 0, how);
	if (succeeded)
		once_succeeded(client->number, key);
	lock_release(lock, left > 0 ? left : 0,
		     deadline_in(client->plan->timeout), &error);
	if (succeeded)
		once_released(client->number, key, &lock->ballot);
	tell(client, "has given KEY back");
}

static void hold(struct client *client, struct lock *lock)
{
	const struct client_plan *its = client->plan;
	const char *how = "not started";
	struct watchdog watchdog;
	struct error error;
	bool lost;
	int64_t began = clock_ms(), left = 0,
		lasts = chance_between(&client->chance, 0,
				       client->plan->hold * MS);

	/* so that it is the guard that ends it, if no renewal gets through */
	if (plan_is_late(client->number))
		lasts = 2 * its->ttl * MS;
	else if (plan_storms() &&
		 chance_is(&client->chance,
			   plan.forgetting == FORGETS_TOLD ? 500 : 200))
		lasts = chance_between(&client->chance, 0, 2 * its->ttl * MS);

	if (start_command(client, lock, lasts)) {
		watchdog_init(&watchdog, lock, &client->command.guard.guard, 0,
			      its->kill_after);
		supervise(client, &watchdog);
		watchdog_stop(&watchdog);
		lost = watchdog_lost(&watchdog, &error);
		if (!lost)
			left = its->min_hold - (clock_ms() - began);
		how = end_of(client, lost);
	}
	give_back(client, lock, how, left);
}

static void do_live(void *context, uint64_t value);

static void *live(void *argument)
{
	struct client *client = argument;
	struct quorum quorum;
	struct lock lock;

	open_lock(client, &quorum, &lock);
	if (take(client, &lock) == LOCK_OK && client->plan->kind != KIND_NONE)
		hold(client, &lock);
	/* as drain.c does, which forks for it */
	quorum_drain(&quorum, 0);
	if (quorum_may_lose(&quorum))
		quorum_drain(&quorum, DRAIN_TIME);
	lock_release_memory(&lock);
	quorum_release(&quorum);
	client->process.alive = false;
	if (network_open(&client->process) > 0)
		world_violation("client %zu leaves descriptors open",
				client->number);
	world_at(world_now + chance_between(&client->chance, 0,
					    plan_think(client->number)),
		 do_live, client, 0);
	return NULL;
}

/* --- its life -------------------------------------------------------------- */

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
	judge_served(client->number);
	client->supervisor = NULL;
	if (client->command.runs)
		stop_command(client, deadline_earlier(soon, times.end));
	world_at(world_now + chance_between(&client->chance, 0,
					    plan_think(client->number)),
		 do_live, client, 0);
}

void client_kill(size_t client)
{
	world_kill(&clients[client].process);
}

void clients_begin(void)
{
	struct error error;
	char text[60];

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
