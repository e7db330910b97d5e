#include "guard.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "signals.h"

#define GUARD_NAME "lease-guard"
#define LOOK_AGAIN 5  /* ms, where nobody keeps COMMAND's pid for us */
#define KILL_AGAIN 50 /* ms, for processes that were just being forked */
#define ENVIRONMENT_LONGEST (4 << 20)

enum message_kind { MESSAGE_COMMAND, MESSAGE_TIMES, MESSAGE_GOODBYE };

/* Shorter than PIPE_BUF: written and read whole. */
struct message {
	int64_t kind;
	int64_t first, second; /* pid and own_group; term and kill */
};

/* What the guard's process knows. */
struct duty {
	int signal;
	bool kill;
	int64_t kill_after;
	const char *token;
	struct guard_times times;
	pid_t command; /* 0 until it is announced */
	bool own_group;
	bool orphaned; /* redlock is dead */
	bool fired, killed;
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
				    deadline_at(kill)};
}

/* --- in the guard's process --------------------------------------------- */

static bool carries_token(pid_t pid, const char *token)
{
	char path[32], chunk[4096 + TOKEN_SIZE];
	size_t kept = 0, total = 0;
	bool found = false;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%ld/environ", (long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (!found && total < ENVIRONMENT_LONGEST &&
	       (got = read(fd, chunk + kept, sizeof(chunk) - kept)) > 0) {
		size_t length = kept + (size_t)got;

		found = memmem(chunk, length, token, strlen(token)) != NULL;
		kept = length < TOKEN_SIZE ? length : TOKEN_SIZE;
		memmove(chunk, chunk + length - kept, kept);
		total += (size_t)got;
	}
	close(fd);
	return found;
}

/* Signals the members of a shared group that belong to COMMAND; how many. */
static int signal_carriers(const struct duty *duty, pid_t group, int number)
{
	DIR *processes = opendir("/proc");
	struct dirent *entry;
	int count = 0;

	if (processes == NULL)
		return 0;
	while ((entry = readdir(processes)) != NULL) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && pid != duty->command && getpgid(pid) == group &&
		    carries_token(pid, duty->token))
			count += kill(pid, number) == 0;
	}
	closedir(processes);
	return count;
}

/* How many processes (or groups) there were to signal. */
static int signal_command(const struct duty *duty, int number)
{
	pid_t group;
	int count;

	if (duty->command == 0)
		return 0;
	if (duty->own_group)
		return kill(-duty->command, number) == 0;
	group = getpgid(duty->command);
	count = kill(duty->command, number) == 0;
	return count + (group > 0 ? signal_carriers(duty, group, number) : 0);
}

static void fire(struct duty *duty)
{
	duty->fired = true;
	signal_command(duty, duty->signal);
	if (duty->signal != SIGKILL)
		signal_command(duty, SIGCONT);
}

/* Acts on what the clock says. */
static void act(struct duty *duty)
{
	if (!duty->fired && deadline_passed(duty->times.term) &&
	    duty->command != 0)
		fire(duty);
	if (duty->fired && duty->kill && deadline_passed(duty->times.kill)) {
		/* until none is left: one may just have been forked */
		signal_command(duty, SIGKILL);
		duty->killed = true;
	}
}

static void take_message(struct duty *duty, const struct message *message)
{
	switch ((enum message_kind)message->kind) {
	case MESSAGE_COMMAND:
		duty->command = (pid_t)message->first;
		duty->own_group = message->second != 0;
		break;
	case MESSAGE_TIMES:
		if (duty->fired)
			break;
		duty->times.term = deadline_at(message->first);
		duty->times.kill = deadline_at(message->second);
		break;
	case MESSAGE_GOODBYE:
		_exit(duty->fired);
	}
}

static void take_orphaned(struct duty *duty)
{
	duty->orphaned = true;
	duty->times.term = deadline_earlier(duty->times.term, deadline_in(0));
	duty->times.kill = deadline_earlier(duty->times.kill,
					    deadline_in(duty->kill_after));
}

static struct deadline next_act(const struct duty *duty)
{
	if (duty->fired && duty->orphaned)
		return deadline_in(LOOK_AGAIN);
	if (duty->killed)
		return deadline_in(KILL_AGAIN);
	if (duty->fired)
		return duty->kill ? duty->times.kill : deadline_never();
	return duty->command != 0 ? duty->times.term : deadline_never();
}

static void stand_guard(struct duty *duty, int fd)
{
	struct pollfd polled = {.fd = fd, .events = POLLIN};
	struct message message;

	for (;;) {
		if (deadline_poll(&polled, duty->orphaned ? 0 : 1,
				  next_act(duty)) > 0) {
			ssize_t got = read(fd, &message, sizeof(message));

			if (got == (ssize_t)sizeof(message))
				take_message(duty, &message);
			else if (got == 0)
				take_orphaned(duty);
		}
		act(duty);
		if (duty->orphaned &&
		    (!duty->kill || signal_command(duty, 0) == 0))
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
		.token = guard->token,
		.times = guard->times,
	};
	struct signals_mask before;
	pid_t pid;

	signals_block_all(&before);
	pid = fork();
	if (pid == 0) {
		setsid();
		signals_ignore_all();
		prctl(PR_SET_NAME, GUARD_NAME);
		dup2(guard->readable, 0);
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

int guard_start(struct guard *guard, int signal, bool kill, int64_t kill_after,
		const char *token, struct guard_times times)
{
	int ends[2];

	*guard = (struct guard){
		.readable = -1,
		.writable = -1,
		.signal = signal,
		.kill = kill,
		.kill_after = kill_after,
		.times = times,
	};
	pthread_mutex_init(&guard->mutex, NULL);
	if (signal == 0)
		return 0;
	snprintf(guard->token, sizeof(guard->token), "%s", token);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	guard->readable = ends[0];
	guard->writable = ends[1];
	return guard_fork(guard);
}

static void tell(const struct guard *guard, enum message_kind kind,
		 int64_t first, int64_t second)
{
	struct message message = {kind, first, second};

	/* full only where the guard has been stopped: it would not act */
	if (guard->signal != 0)
		(void)!write(guard->writable, &message, sizeof(message));
}

void guard_announce(const struct guard *guard, pid_t pid, bool own_group)
{
	tell(guard, MESSAGE_COMMAND, pid, own_group);
}

void guard_tell(struct guard *guard, struct guard_times times)
{
	pthread_mutex_lock(&guard->mutex);
	guard->times = times;
	tell(guard, MESSAGE_TIMES, times.term.at, times.kill.at);
	pthread_mutex_unlock(&guard->mutex);
}

void guard_goodbye(const struct guard *guard)
{
	tell(guard, MESSAGE_GOODBYE, 0, 0);
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

void guard_check(struct guard *guard, pid_t command, bool own_group)
{
	if (guard->signal == 0 || !has_ended(guard, WNOHANG))
		return;
	pthread_mutex_lock(&guard->mutex);
	guard_fork(guard);
	tell(guard, MESSAGE_COMMAND, command, own_group);
	tell(guard, MESSAGE_TIMES, guard->times.term.at, guard->times.kill.at);
	pthread_mutex_unlock(&guard->mutex);
}

bool guard_wait(struct guard *guard)
{
	if (guard->signal != 0) {
		/* should it be stopped, it must not keep us */
		if (guard->pid > 0)
			kill(guard->pid, SIGCONT);
		has_ended(guard, 0);
		close(guard->readable);
		close(guard->writable);
	}
	return guard->fired;
}
