#include "cmd/supervisor.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/log.h"
#include "base/signals.h"
#include "cmd/journal.h"
#include "run/process.h"
#include "run/tree.h"

#define LOOK_AGAIN 20   /* ms, whether COMMAND has taken a signal, or is dead */
#define WRITE_AGAIN 250 /* ms, what nobody was reading */

static int lost_signal(const struct supervisor *supervisor)
{
	const struct settings *settings = supervisor->settings;

	return supervisor->count == 0                ? 0
	       : settings->on_lost == ON_LOST_WARN   ? 0
	       : settings->on_lost == ON_LOST_SIGNAL ? settings->lost_signal
						     : SIGTERM;
}

int supervisor_prepare(struct supervisor *supervisor)
{
	const struct settings *settings = supervisor->settings;

	return guard_start(&supervisor->guard, lost_signal(supervisor),
			   settings->on_lost == ON_LOST_KILL,
			   settings->kill_after);
}

void supervisor_dismiss(struct supervisor *supervisor)
{
	guard_dismiss(&supervisor->guard);
}

static int entrust(struct supervisor *supervisor)
{
	const struct lock *first = supervisor->locks[0];
	size_t count = supervisor->count;
	struct lease_times times[LOCKS_MOST] = {
		{deadline_never(), deadline_never(), deadline_never()}};

	for (size_t i = 0; i < count; i++)
		times[i] = watchdog_plan(supervisor->locks[i],
					 supervisor->settings->kill_after);
	return guard_entrust(&supervisor->guard,
			     count > 0 ? first->names.key.data : "",
			     first->grant.token, times, count > 0 ? count : 1);
}

/* Guard first, then COMMAND; the watchdogs when they are due. */
int supervisor_start(struct supervisor *supervisor, char *const command[],
		     const char *label)
{
	int64_t kill_after = supervisor->settings->kill_after;
	struct guard *guard = &supervisor->guard;
	struct child *child = &supervisor->child;
	int cause;

	log_hurry(true);
	if (signals_open_all() < 0 ||
	    child_set_environment(supervisor->locks, supervisor->count) < 0)
		return errno;
	if (!guard_is_there(guard) && supervisor_prepare(supervisor) < 0)
		return errno;
	if (entrust(supervisor) < 0 || job_start(&supervisor->job) < 0)
		return errno;
	cause = child_start(child, command, &supervisor->job, guard,
			    guard->orders.times.term);
	if (cause != 0)
		return cause;
	max_hold_start(&supervisor->max_hold, child, guard->orders.badge,
		       supervisor->max_hold_at, kill_after);
	log_step("%s: started '%s', pid %ld", supervisor->settings->key, label,
		 (long)child->pid);
	watchdogs_init(&supervisor->watchdogs, supervisor->locks,
		       supervisor->count, guard, kill_after);
	return 0;
}

static void note_lost(struct supervisor *supervisor)
{
	static const char *const next[] = {
		[ON_LOST_KILL] = "COMMAND is stopped",
		[ON_LOST_WARN] = "COMMAND runs on without it",
		[ON_LOST_SIGNAL] = "COMMAND is sent the signal of --on-lost",
	};
	struct error why;

	if (supervisor->lost == NULL)
		supervisor->lost = watchdogs_lost(&supervisor->watchdogs, &why);
	else
		return;
	if (supervisor->lost == NULL)
		return;
	guard_wake(&supervisor->guard);
	if (supervisor->settings->on_lost == ON_LOST_KILL)
		max_hold_cancel(
			&supervisor->max_hold); /* the guard stops COMMAND */
	log_error("%s: lock lost: %s: %s", supervisor->lost->names.key.data,
		  why.text, next[supervisor->settings->on_lost]);
	journal_lost(supervisor->settings, supervisor->lost, why.text);
}

/* While COMMAND runs. If it has ended, the guard knows whether that is a loss. */
static void heed_loss(struct supervisor *supervisor)
{
	struct error why;

	if (!supervisor->max_hold.begun &&
	    watchdogs_lost(&supervisor->watchdogs, &why) != NULL &&
	    !child_has_exited(&supervisor->child))
		note_lost(supervisor);
}

/* When SIGKILL is sent. */
static struct deadline kill_at(struct supervisor *supervisor)
{
	if (supervisor->max_hold.begun)
		return supervisor->max_hold.kill;
	return supervisor->lost != NULL &&
			       supervisor->settings->on_lost == ON_LOST_KILL
		       ? guard_kill_at(&supervisor->guard)
		       : deadline_never();
}

/* When to see whether to name those that are still there. They are named once. */
static struct deadline name_at(struct supervisor *supervisor)
{
	if (supervisor->named)
		return deadline_never();
	return supervisor->dead_by.at != 0 ? supervisor->dead_by
					   : kill_at(supervisor);
}

/* Whether they ought to be dead. Their time to die begins when we see that SIGKILL is
 * due: if we and the guard were frozen (a cgroup, a suspended machine), SIGKILL may be
 * long overdue, and yet not sent. */
static bool is_time_to_name(struct supervisor *supervisor)
{
	if (!deadline_passed(name_at(supervisor)))
		return false;
	if (supervisor->dead_by.at == 0)
		supervisor->dead_by = deadline_in(TREE_DYING);
	return deadline_passed(supervisor->dead_by);
}

/* Those that ought to be dead are there for a little while, mostly. */
static bool are_dying(const struct supervisor *supervisor)
{
	return supervisor->dead_by.at != 0 && !supervisor->named;
}

/* When something is to be done, even if no signal comes. */
static struct deadline next_due(struct supervisor *supervisor)
{
	struct deadline soon = supervisor->told || are_dying(supervisor)
				       ? deadline_in(LOOK_AGAIN)
			       : log_catch_up() ? deadline_never()
						: deadline_in(WRITE_AGAIN);
	struct deadline stop =
		deadline_earlier(guard_next(&supervisor->guard),
				 max_hold_next(&supervisor->max_hold));

	return deadline_earlier(
		deadline_earlier(
			name_at(supervisor),
			deadline_earlier(soon, child_next(&supervisor->child))),
		deadline_earlier(stop, watchdogs_due(&supervisor->watchdogs)));
}

/* By SIGKILL in the end. Before that come stops, which are not the user's. */
static bool is_being_killed(struct supervisor *supervisor)
{
	return supervisor->max_hold.begun || guard_kills(&supervisor->guard);
}

/* COMMAND has got it with the whole job, but takes it only if somebody continues it (job.h).
 * Not if ^Z, which has come as well, has stopped it: then it stays so until `fg`. */
static void continue_stopped(struct supervisor *supervisor)
{
	if (process_state(supervisor->child.pid) == 'T' &&
	    (signals_pending() & signals_bit(SIGTSTP)) == 0 &&
	    !is_being_killed(supervisor))
		child_signal(&supervisor->child, SIGCONT);
}

/* Hands on a signal that has come, unless COMMAND has got it as well. One at a time, so
 * that a stream of signals keeps nothing else waiting. True if the whole job was told
 * to stop. */
static bool take_signal(struct supervisor *supervisor)
{
	pid_t sender;
	bool shared;
	int number;

	do
		number = signals_next_from(&sender);
	while (number == SIGCHLD);
	if (number == 0)
		return false;
	supervisor->ends |= signals_is_end(number);
	shared = job_has_got(&supervisor->job, number, sender,
			     next_due(supervisor)) &&
		 child_shares_group(&supervisor->child);
	if (!shared)
		child_signal(&supervisor->child, number);
	else if (signals_is_end(number))
		continue_stopped(supervisor);
	/* a stop that came as well is read later, and nobody would continue COMMAND */
	if (signals_is_end(number) && !job_has_terminal(&supervisor->job))
		signals_take(signals_bit(SIGTSTP));
	return shared && number == SIGTSTP;
}

/* The shell waits for us to stop, too, and will bring both back. But a stop of nothing but
 * COMMAND is, mostly, not the user's (job.h). */
static void follow_stop(struct supervisor *supervisor, bool told)
{
	pid_t command = supervisor->child.pid;
	bool again = supervisor->told;
	int number;

	supervisor->told = false;
	if (!job_has_terminal(&supervisor->job) || is_being_killed(supervisor))
		return;
	number = child_stopped(&supervisor->child);
	if (number == 0 && (told || again) &&
	    process_has_pending(command, SIGTSTP)) {
		if (again && process_state(command) == 'D')
			number = SIGTSTP;
		else
			supervisor->told = true;
	}
	if (number == 0 ||
	    (number == SIGSTOP && !told && !process_sends(command, SIGSTOP)))
		return;
	child_note_stop(&supervisor->child);
	job_stop(&supervisor->job, told ? SIGTSTP : number, command,
		 guard_begins(&supervisor->guard));
}

static void heed_max_hold(struct supervisor *supervisor)
{
	char text[DURATION_TEXT];

	if (max_hold_act(&supervisor->max_hold))
		log_error(
			"%s: stopped after --max-hold %s",
			supervisor->settings->key,
			duration_format(text, supervisor->settings->max_hold));
}

static void name_left(struct supervisor *supervisor)
{
	struct tree tree =
		tree_of(supervisor->child.pid, supervisor->child.group,
			getsid(0), clock_ms(), supervisor->guard.orders.badge);
	struct buffer text = {0};

	supervisor->named = true;
	if (tree_left(&tree, &text))
		log_error("%s: could not be stopped%s: %s",
			  supervisor->settings->key,
			  supervisor->max_hold.begun
				  ? ""
				  : ", and runs on without the lock",
			  text.data);
	tree_release(&tree);
	buffer_release(&text);
}

static void look_after_guard(struct supervisor *supervisor)
{
	const char *why = guard_check(&supervisor->guard);

	if (why != NULL)
		log_error("%s: the process that stops COMMAND if redlock is "
			  "killed has died, and cannot be made again yet: %s",
			  supervisor->settings->key, why);
}

/* All children but COMMAND, which may have ended. */
static void look_after_others(struct supervisor *supervisor)
{
	pid_t ours[3];

	look_after_guard(supervisor);
	job_check(&supervisor->job);
	ours[0] = supervisor->child.pid;
	ours[1] = supervisor->guard.pid;
	ours[2] = supervisor->job.pid;
	child_reap_orphans(ours, 3);
}

void supervisor_wait(struct supervisor *supervisor)
{
	for (;;) {
		struct pollfd polled[1 + LOCKS_MOST];

		polled[0] = (struct pollfd){
			.fd = supervisor->signals,
			.events = POLLIN,
		};
		for (size_t i = 1; i <= supervisor->count; i++)
			polled[i] = (struct pollfd){.fd = -1, .events = POLLIN};
		watchdogs_act(&supervisor->watchdogs);
		heed_loss(supervisor);
		if (supervisor->lost == NULL && !supervisor->max_hold.begun)
			watchdogs_poll(&supervisor->watchdogs, polled + 1);
		deadline_poll(polled, 1 + supervisor->count,
			      next_due(supervisor));
		heed_loss(supervisor);
		follow_stop(supervisor, take_signal(supervisor));
		heed_max_hold(supervisor);
		if (child_has_exited(&supervisor->child) &&
		    max_hold_is_over(&supervisor->max_hold))
			return;
		if (is_time_to_name(supervisor))
			name_left(supervisor);
		if (are_dying(supervisor))
			guard_urge(&supervisor->guard);
		look_after_others(supervisor);
	}
}

/* What COMMAND has left may not end before the lease does. */
static void name_meanwhile(struct supervisor *supervisor)
{
	if (!guard_kills(&supervisor->guard) || supervisor->max_hold.begun)
		return;
	if (supervisor->dead_by.at == 0)
		supervisor->dead_by = deadline_at(
			deadline_later(guard_kill_at(&supervisor->guard),
				       deadline_in(0))
				.at +
			TREE_DYING);
	if (guard_ends(&supervisor->guard, supervisor->dead_by))
		return;
	note_lost(supervisor);
	if (is_time_to_name(supervisor))
		name_left(supervisor);
}

/* Whether the guard has stopped COMMAND, or what it has left: waits until it is
 * done with that. */
static void part_with_guard(struct supervisor *supervisor)
{
	struct error why;
	bool stopped;

	name_meanwhile(supervisor);
	stopped = guard_wait(&supervisor->guard);
	/* a loss that was noticed when COMMAND had ended by itself has not
	 * stopped it: the release will say so */
	if (!supervisor->max_hold.begun &&
	    (stopped || supervisor->settings->on_lost == ON_LOST_WARN))
		note_lost(supervisor);
	if (stopped && supervisor->lost == NULL &&
	    !supervisor->max_hold.begun && supervisor->child.pid > 0) {
		supervisor->lost =
			watchdogs_explain(&supervisor->watchdogs, &why);
		log_error("%s: lock lost: %s: COMMAND was stopped",
			  supervisor->lost->names.key.data, why.text);
		journal_lost(supervisor->settings, supervisor->lost, why.text);
	}
	if (stopped && is_time_to_name(supervisor))
		name_left(supervisor);
}

bool supervisor_stop(struct supervisor *supervisor)
{
	bool spared = guard_goodbye(&supervisor->guard);

	if (supervisor->child.pid > 0)
		watchdogs_stop(&supervisor->watchdogs);
	return spared;
}

/* Whether COMMAND has not ended by itself. */
static bool was_killed(const struct supervisor *supervisor)
{
	return supervisor->child.signal != 0 || supervisor->max_hold.begun ||
	       (supervisor->lost != NULL && lost_signal(supervisor) != 0);
}

void supervisor_end(struct supervisor *supervisor)
{
	part_with_guard(supervisor);
	max_hold_release(&supervisor->max_hold);
	if (supervisor->child.pid > 0)
		child_reap(&supervisor->child);
	job_end(&supervisor->job, was_killed(supervisor));
	log_hurry(false);
}

bool supervisor_is_late(const struct supervisor *supervisor)
{
	const struct guard *guard = &supervisor->guard;

	return guard->in_time && supervisor->lost == NULL &&
	       deadline_passed(guard->orders.times.end);
}
