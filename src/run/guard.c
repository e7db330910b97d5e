#include "run/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/signals.h"
#include "base/title.h"
#include "run/tree.h"

#define GUARD_NAME "lease-guard"
#define LOOK_AGAIN 20  /* ms, whether it has ended */
#define FORK_AGAIN 250 /* ms */
#define APART 1000     /* ms between two that replace another, at least */
#define LOST_AT 0      /* when SIGTERM is due if the lock is lost */

/* How a guard has ended; 0: it has neither stopped anybody nor seen more. */
#define GUARD_STOPPED 1
#define GUARD_IN_TIME 2

/* --- in the guard's process, or while there is none in redlock ----------- */

/* Whether COMMAND has ended by itself, and nothing of it is left, before the lease did. */
static bool has_ended_in_time(const struct guard_duty *duty)
{
	return !duty->found && duty->times.term.at != LOST_AT &&
	       (!duty->kill || tree_is_over(&duty->tree)) &&
	       !deadline_passed(duty->times.end);
}

/* Acts on what the clock says. */
static void act(struct guard_duty *duty)
{
	bool due = duty->kill && deadline_passed(duty->times.kill);
	bool first = !duty->fired && !due;

	if (duty->tree.command == 0 ||
	    (!duty->fired && !deadline_passed(duty->times.term)))
		return;
	/* all are found before the first is hit */
	if (first && duty->kill)
		tree_look(&duty->tree, duty->times.kill);
	duty->found = duty->found || tree_lives(&duty->tree);
	if (first)
		tree_signal(&duty->tree, duty->signal);
	duty->fired = true;
	if (duty->kill)
		tree_watch(&duty->tree, duty->times.kill);
	duty->found = duty->found || tree_lives(&duty->tree);
	duty->in_time = duty->in_time || has_ended_in_time(duty);
}

/* Whether nothing is left to do: nobody to stop, or no time to do it in. */
static bool is_over(const struct guard_duty *duty)
{
	if (!duty->dismissed && !duty->orphaned)
		return false;
	return !duty->fired || !duty->kill || tree_is_over(&duty->tree) ||
	       deadline_passed(duty->times.end);
}

static void take_orders(struct guard_duty *duty)
{
	const struct guard_orders *orders = &duty->orders;

	/* what was announced but has not become COMMAND stays the tree to stop */
	if (orders->command != 0 && orders->command != duty->tree.command) {
		if (duty->tree.command != 0)
			tree_release(&duty->tree);
		duty->tree =
			tree_of(orders->command, orders->group, orders->session,
				orders->since, orders->badge);
		duty->tree.in_time = true;
	}
	if (!duty->fired)
		duty->times = orders->times;
	duty->dismissed |= orders->dismissed;
}

static void take_orphaned(struct guard_duty *duty)
{
	duty->orphaned = true;
	if (duty->dismissed)
		return;
	duty->times.term = deadline_earlier(duty->times.term, deadline_in(0));
	duty->times.kill = deadline_earlier(duty->times.kill,
					    deadline_in(duty->kill_after));
}

static struct deadline next_act(const struct guard_duty *duty)
{
	if (duty->fired && duty->kill &&
	    (!tree_is_over(&duty->tree) || !deadline_passed(duty->times.end)))
		return tree_next(&duty->tree, duty->times.kill);
	if (duty->fired)
		return deadline_never();
	return duty->tree.command != 0 ? duty->times.term : deadline_never();
}

/* Reads all messages: the last one may say that there is nothing to do. */
static void listen_to_redlock(struct guard_duty *duty, int fd)
{
	struct guard_orders orders;
	ssize_t got;

	while ((got = read(fd, &orders, sizeof(orders))) ==
	       (ssize_t)sizeof(orders)) {
		duty->orders = orders;
		take_orders(duty);
	}
	if (got == 0)
		take_orphaned(duty);
}

__attribute__((noreturn)) static void stand_guard(struct guard_duty *duty,
						  int fd)
{
	struct pollfd polled = {.fd = fd, .events = POLLIN};

	for (;;) {
		deadline_poll(&polled, duty->orphaned ? 0 : 1, next_act(duty));
		if (!duty->orphaned)
			listen_to_redlock(duty, fd);
		if (!duty->dismissed || duty->fired)
			act(duty);
		if (is_over(duty))
			_exit(duty->found     ? GUARD_STOPPED
			      : duty->in_time ? GUARD_IN_TIME
					      : 0);
	}
}

/* --- in redlock --------------------------------------------------------- */

static struct guard_duty make_duty(const struct guard *guard)
{
	return (struct guard_duty){
		.signal = guard->signal,
		.kill = guard->kill,
		.kill_after = guard->kill_after,
	};
}

static int guard_fork(struct guard *guard)
{
	struct guard_duty duty = make_duty(guard);
	struct signals_mask before;
	pid_t pid;

	signals_block_all(&before);
	pid = fork();
	if (pid == 0) {
		/* all signals stay blocked: only SIGKILL ends it */
		title_replace(GUARD_NAME);
		setsid();
		if (dup2(guard->readable, 0) < 0)
			_exit(EXIT_SYSTEM); /* 0 may be a terminal */
		descriptors_close_from(1);
		deadline_after_fork();
		(void)!chdir("/");
		stand_guard(&duty, 0);
	}
	signals_unblock(&before);
	if (pid < 0)
		return -1;
	guard->pid = pid;
	return 0;
}

/* The guard has been stopped for so long that the pipe is full. Only the newest orders
 * count; from old ones it would take that the lease is over. */
static bool make_room(const struct guard *guard)
{
	struct guard_orders stale;

	return read(guard->readable, &stale, sizeof(stale)) > 0 ||
	       errno == EINTR || errno == EAGAIN;
}

/* 0, or -1 with errno. */
static int send_orders(const struct guard *guard,
		       const struct guard_orders *orders)
{
	ssize_t written;

	if (guard->signal == 0)
		return 0;
	do
		written = write(guard->writable, orders, sizeof(*orders));
	while (written < 0 &&
	       (errno == EINTR || (errno == EAGAIN && make_room(guard))));
	return written < 0 ? -1 : 0;
}

/* The same, with this COMMAND. */
static struct guard_orders orders_for(const struct guard *guard, pid_t pid,
				      pid_t group)
{
	struct guard_orders orders = guard->orders;

	orders.command = pid;
	orders.group = group;
	orders.session = getsid(0);
	orders.since = clock_ms();
	return orders;
}

int guard_announce(const struct guard *guard, pid_t pid, pid_t group)
{
	const struct guard_orders orders = orders_for(guard, pid, group);

	return send_orders(guard, &orders);
}

void guard_note(struct guard *guard, pid_t pid, pid_t group)
{
	guard->orders = orders_for(guard, pid, group);
}

static bool has_ended(struct guard *guard, int options)
{
	int status;
	pid_t pid;

	if (guard->pid == 0)
		return true;
	do
		pid = waitpid(guard->pid, &status, options);
	while (pid < 0 && errno == EINTR);
	if (pid == 0)
		return false;
	guard->pid = 0;
	if (pid > 0 && WIFEXITED(status)) {
		guard->stopped |= WEXITSTATUS(status) == GUARD_STOPPED;
		guard->in_time |= WEXITSTATUS(status) == GUARD_IN_TIME;
	}
	return true;
}

int guard_start(struct guard *guard, int signal, bool kill, int64_t kill_after)
{
	int ends[2], why;

	*guard = (struct guard){
		.signal = signal, .kill = kill, .kill_after = kill_after};
	guard->duty = make_duty(guard);
	pthread_mutex_init(&guard->mutex, NULL);
	if (signal == 0)
		return 0;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		goto failed;
	guard->readable = ends[0];
	guard->writable = ends[1];
	if (guard_fork(guard) == 0)
		return 0;
	why = errno;
	close(ends[0]);
	close(ends[1]);
	errno = why;
failed:
	guard->signal = 0;
	return -1;
}

bool guard_is_there(const struct guard *guard)
{
	return guard->pid > 0;
}

static struct lease_times earliest(const struct guard *guard)
{
	struct lease_times times = guard->times[0];

	for (size_t i = 1; i < guard->locks; i++)
		times = lease_times_earlier(times, guard->times[i]);
	return times;
}

int guard_entrust(struct guard *guard, const char *key, const char *token,
		  const struct lease_times *times, size_t locks)
{
	ancestry_badge(guard->orders.badge, key, token);
	memcpy(guard->times, times, locks * sizeof(*times));
	guard->locks = locks;
	guard->orders.times = earliest(guard);
	if (guard->signal == 0 || !has_ended(guard, WNOHANG))
		return 0;
	return guard_fork(guard);
}

void guard_tell(struct guard *guard, size_t lock, struct lease_times times)
{
	pthread_mutex_lock(&guard->mutex);
	guard->times[lock] = times;
	guard->orders.times = earliest(guard);
	send_orders(guard, &guard->orders);
	pthread_mutex_unlock(&guard->mutex);
}

struct deadline guard_begins(struct guard *guard)
{
	struct deadline term;

	pthread_mutex_lock(&guard->mutex);
	term = guard->orders.times.term;
	pthread_mutex_unlock(&guard->mutex);
	return guard->kill && guard->signal != 0 ? term : deadline_never();
}

bool guard_kills(struct guard *guard)
{
	return deadline_passed(guard_begins(guard));
}

struct deadline guard_kill_at(struct guard *guard)
{
	struct deadline kill;

	pthread_mutex_lock(&guard->mutex);
	kill = guard->orders.times.kill;
	pthread_mutex_unlock(&guard->mutex);
	return kill;
}

bool guard_goodbye(struct guard *guard)
{
	bool in_time;

	pthread_mutex_lock(&guard->mutex);
	guard->orders.dismissed = true;
	guard->dismissed = send_orders(guard, &guard->orders) == 0;
	in_time = guard->dismissed && guard->signal != 0 && !guard->stopped &&
		  !deadline_passed(guard->orders.times.term);
	pthread_mutex_unlock(&guard->mutex);
	return in_time;
}

/* Does what the guard would do now. */
static void stand_in(struct guard *guard)
{
	struct guard_duty *duty = &guard->duty;

	pthread_mutex_lock(&guard->mutex);
	duty->orders = guard->orders;
	pthread_mutex_unlock(&guard->mutex);
	take_orders(duty);
	if (!duty->dismissed || duty->fired)
		act(duty);
	guard->stopped |= duty->found;
	guard->in_time |= duty->in_time;
}

/* NULL, or why not yet. */
static const char *replace(struct guard *guard)
{
	const char *why = NULL;

	if (!deadline_passed(guard->again))
		return "it ends at once";
	pthread_mutex_lock(&guard->mutex);
	if (guard_fork(guard) < 0)
		why = strerror(errno);
	else
		guard->again = deadline_in(APART);
	send_orders(guard, &guard->orders);
	pthread_mutex_unlock(&guard->mutex);
	return why;
}

const char *guard_check(struct guard *guard)
{
	bool lived = guard->pid != 0 && deadline_passed(guard->again);
	const char *why = NULL;

	if (guard->signal == 0 || !has_ended(guard, WNOHANG))
		return NULL;
	if (lived)
		guard->said = false;
	if (!guard->duty.fired)
		why = replace(guard);
	if (guard->pid == 0)
		stand_in(guard);
	if (why == NULL || guard->said)
		return NULL;
	guard->said = true;
	return why;
}

struct deadline guard_next(const struct guard *guard)
{
	if (guard->signal == 0 || guard->pid != 0)
		return deadline_never();
	return deadline_earlier(deadline_in(FORK_AGAIN),
				next_act(&guard->duty));
}

void guard_wake(const struct guard *guard)
{
	if (guard->pid > 0)
		kill(guard->pid, SIGCONT);
}

void guard_urge(struct guard *guard)
{
	if (guard->pid == 0 || guard->signal == 0 || !guard->kill ||
	    !deadline_passed(guard_kill_at(guard)))
		return;
	guard_wake(guard);
	if (guard->urged)
		stand_in(guard);
	guard->urged = true;
}

/* After the goodbye. */
static bool is_done(struct guard *guard, int options)
{
	if (!has_ended(guard, options))
		return false;
	if (!guard->duty.fired)
		return true;
	stand_in(guard);
	return is_over(&guard->duty);
}

bool guard_ends(struct guard *guard, struct deadline until)
{
	guard_wake(guard);
	while (!is_done(guard, WNOHANG)) {
		if (deadline_passed(until))
			return false;
		guard_urge(guard);
		deadline_poll(NULL, 0, deadline_in(LOOK_AGAIN));
		if (!guard->dismissed)
			guard_goodbye(guard);
	}
	return true;
}

bool guard_wait(struct guard *guard)
{
	if (guard->signal != 0) {
		guard_wake(guard);
		if (!guard->dismissed)
			guard_ends(guard, deadline_never());
		while (!is_done(guard, 0))
			deadline_poll(NULL, 0, deadline_in(LOOK_AGAIN));
		if (guard->duty.tree.command != 0)
			tree_release(&guard->duty.tree);
		close(guard->readable);
		close(guard->writable);
	}
	guard->in_time &= !guard->stopped;
	return guard->stopped;
}

void guard_dismiss(struct guard *guard)
{
	guard_goodbye(guard);
	guard_wait(guard);
}
