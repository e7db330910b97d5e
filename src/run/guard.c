#include "run/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/signals.h"
#include "base/title.h"
#include "run/tree.h"

#define GUARD_NAME "lease-guard"
#define LOOK_AGAIN 20 /* ms, whether it has ended */

enum message_kind { MESSAGE_COMMAND, MESSAGE_TIMES, MESSAGE_GOODBYE };

/* Shorter than PIPE_BUF: written and read whole. */
struct message {
	int64_t kind;
	/* pid, group, session, when that was so; or term, kill, end */
	int64_t value[4];
	char mark[HELD_MARK]; /* of MESSAGE_COMMAND */
};

/* What the guard's process knows. */
struct duty {
	int signal;
	bool kill;
	int64_t kill_after;
	struct guard_times times;
	struct tree tree;
	char mark[HELD_MARK];
	bool orphaned;  /* redlock is dead */
	bool dismissed; /* COMMAND has exited */
	bool fired;
};

int64_t guard_margin(int64_t ttl)
{
	return ttl / 50 > 100 ? ttl / 50 : 100;
}

struct guard_times guard_plan(struct deadline valid, int64_t margin,
			      int64_t kill_after)
{
	int64_t kill = valid.at - margin;

	return (struct guard_times){deadline_at(kill - kill_after),
				    deadline_at(kill), valid};
}

/* --- in the guard's process --------------------------------------------- */

/* Acts on what the clock says. */
static void act(struct duty *duty)
{
	bool due = duty->kill && deadline_passed(duty->times.kill);

	if (duty->tree.command == 0 ||
	    (!duty->fired && !deadline_passed(duty->times.term)))
		return;
	if (!duty->fired && !due) {
		/* all are found before the first is hit */
		if (duty->kill)
			tree_look(&duty->tree, duty->times.kill);
		tree_signal(&duty->tree, duty->signal);
	}
	duty->fired = true;
	if (duty->kill)
		tree_watch(&duty->tree, duty->times.kill);
}

/* Whether nothing is left to do: nobody to stop, or no time to do it in. */
static bool is_over(const struct duty *duty)
{
	if (!duty->dismissed && !duty->orphaned)
		return false;
	return !duty->fired || !duty->kill || tree_is_over(&duty->tree) ||
	       deadline_passed(duty->times.end);
}

static void take_command(struct duty *duty, const struct message *message)
{
	strlcpy(duty->mark, message->mark, sizeof(duty->mark));
	tree_release(&duty->tree);
	duty->tree = tree_of((pid_t)message->value[0], (pid_t)message->value[1],
			     (pid_t)message->value[2], message->value[3],
			     duty->mark);
	duty->tree.in_time = true;
}

static void take_message(struct duty *duty, const struct message *message)
{
	switch ((enum message_kind)message->kind) {
	case MESSAGE_COMMAND:
		take_command(duty, message);
		break;
	case MESSAGE_TIMES:
		if (duty->fired)
			break;
		duty->times.term = deadline_at(message->value[0]);
		duty->times.kill = deadline_at(message->value[1]);
		duty->times.end = deadline_at(message->value[2]);
		break;
	case MESSAGE_GOODBYE:
		duty->dismissed = true;
		break;
	}
}

static void take_orphaned(struct duty *duty)
{
	duty->orphaned = true;
	if (duty->dismissed)
		return;
	duty->times.term = deadline_earlier(duty->times.term, deadline_in(0));
	duty->times.kill = deadline_earlier(duty->times.kill,
					    deadline_in(duty->kill_after));
}

static struct deadline next_act(const struct duty *duty)
{
	if (duty->fired && duty->kill &&
	    (!tree_is_over(&duty->tree) || !deadline_passed(duty->times.end)))
		return tree_next(&duty->tree, duty->times.kill);
	if (duty->fired)
		return deadline_never();
	return duty->tree.command != 0 ? duty->times.term : deadline_never();
}

/* All that there is: what was said last may be that there is nothing to do. */
static void listen_to_redlock(struct duty *duty, int fd)
{
	struct message message;
	ssize_t got;

	while ((got = read(fd, &message, sizeof(message))) ==
	       (ssize_t)sizeof(message))
		take_message(duty, &message);
	if (got == 0)
		take_orphaned(duty);
}

static void stand_guard(struct duty *duty, int fd)
{
	struct pollfd polled = {.fd = fd, .events = POLLIN};

	for (;;) {
		deadline_poll(&polled, duty->orphaned ? 0 : 1, next_act(duty));
		if (!duty->orphaned)
			listen_to_redlock(duty, fd);
		if (!duty->dismissed || duty->fired)
			act(duty);
		if (is_over(duty))
			_exit(duty->fired);
	}
}

/* --- in redlock --------------------------------------------------------- */

static int guard_fork(struct guard *guard)
{
	struct duty duty = {
		.signal = guard->signal,
		.kill = guard->kill,
		.kill_after = guard->kill_after,
	};
	struct signals_mask before;
	pid_t pid;

	signals_block_all(&before);
	pid = fork();
	if (pid == 0) {
		title_replace(GUARD_NAME);
		setsid();
		signals_ignore_all();
		if (dup2(guard->readable, 0) < 0)
			_exit(EXIT_SYSTEM); /* 0 may be a terminal */
		closefrom(1);
		deadline_after_fork();
		if (chdir("/") == 0)
			stand_guard(&duty, 0);
		_exit(EXIT_SYSTEM);
	}
	signals_unblock(&before);
	if (pid < 0)
		return -1;
	guard->pid = pid;
	return 0;
}

/* 0, or -1 with errno: EAGAIN where the guard has been stopped for so long that
 * the pipe is full. */
static int tell(const struct guard *guard, enum message_kind kind,
		const int64_t value[4])
{
	struct message message = {
		kind, {value[0], value[1], value[2], value[3]}, ""};
	ssize_t written;

	if (guard->signal == 0)
		return 0;
	if (kind == MESSAGE_COMMAND)
		strlcpy(message.mark, guard->mark, sizeof(message.mark));
	do
		written = write(guard->writable, &message, sizeof(message));
	while (written < 0 && errno == EINTR);
	return written < 0 ? -1 : 0;
}

int guard_announce(const struct guard *guard, pid_t pid, pid_t group)
{
	return tell(guard, MESSAGE_COMMAND,
		    (int64_t[4]){pid, group, getsid(0), clock_ms()});
}

static int tell_times(const struct guard *guard)
{
	return tell(guard, MESSAGE_TIMES,
		    (int64_t[4]){guard->times.term.at, guard->times.kill.at,
				 guard->times.end.at});
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
	if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 1)
		guard->fired = true;
	return true;
}

int guard_start(struct guard *guard, int signal, bool kill, int64_t kill_after)
{
	int ends[2], why;

	*guard = (struct guard){
		.signal = signal, .kill = kill, .kill_after = kill_after};
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

int guard_entrust(struct guard *guard, const char *key, const char *token,
		  struct guard_times times)
{
	held_mark(guard->mark, key, token);
	guard->times = times;
	if (guard->signal == 0)
		return 0;
	if (has_ended(guard, WNOHANG) && guard_fork(guard) < 0)
		return -1;
	return tell_times(guard);
}

void guard_tell(struct guard *guard, struct guard_times times)
{
	pthread_mutex_lock(&guard->mutex);
	guard->times = times;
	tell_times(guard);
	pthread_mutex_unlock(&guard->mutex);
}

struct deadline guard_begins(struct guard *guard)
{
	struct deadline term;

	pthread_mutex_lock(&guard->mutex);
	term = guard->times.term;
	pthread_mutex_unlock(&guard->mutex);
	return guard->kill && guard->signal != 0 ? term : deadline_never();
}

bool guard_kills(struct guard *guard)
{
	return deadline_passed(guard_begins(guard));
}

struct deadline guard_done(struct guard *guard)
{
	struct deadline kill;

	pthread_mutex_lock(&guard->mutex);
	kill = guard->times.kill;
	pthread_mutex_unlock(&guard->mutex);
	return deadline_at(kill.at + TREE_DYING);
}

bool guard_goodbye(struct guard *guard)
{
	struct message message;
	bool in_time;

	guard->dismissed = tell(guard, MESSAGE_GOODBYE, (int64_t[4]){0}) == 0;
	/* what a full pipe holds is of no use to it any more */
	while (!guard->dismissed && errno == EAGAIN &&
	       read(guard->readable, &message, sizeof(message)) > 0)
		guard->dismissed =
			tell(guard, MESSAGE_GOODBYE, (int64_t[4]){0}) == 0;
	pthread_mutex_lock(&guard->mutex);
	in_time = guard->dismissed && guard->signal != 0 && !guard->fired &&
		  !deadline_passed(guard->times.term);
	pthread_mutex_unlock(&guard->mutex);
	return in_time;
}

void guard_check(struct guard *guard, pid_t command, pid_t group)
{
	if (guard->signal == 0 || !has_ended(guard, WNOHANG))
		return;
	pthread_mutex_lock(&guard->mutex);
	guard_fork(guard);
	tell_times(guard);
	guard_announce(guard, command, group);
	pthread_mutex_unlock(&guard->mutex);
}

bool guard_wait(struct guard *guard)
{
	if (guard->signal != 0) {
		/* should it be stopped, it must not keep us */
		if (guard->pid > 0)
			kill(guard->pid, SIGCONT);
		while (!guard->dismissed && !has_ended(guard, WNOHANG)) {
			poll(NULL, 0, LOOK_AGAIN);
			guard_goodbye(guard);
		}
		has_ended(guard, 0);
		close(guard->readable);
		close(guard->writable);
	}
	return guard->fired;
}

void guard_dismiss(struct guard *guard)
{
	guard_goodbye(guard);
	guard_wait(guard);
}
