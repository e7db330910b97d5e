#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "held.h"
#include "signals.h"

int child_set_environment(const struct lock *lock)
{
	const char *outer = getenv("REDLOCK_HELD");
	struct buffer held = {0}, fence = {0};
	int result;

	if (outer != NULL)
		buffer_print(&held, "%s", outer);
	held_append(&held, lock->key.data, lock->token);
	buffer_print(&fence, "%" PRId64, lock->fence);
	result = setenv("REDLOCK_KEY", lock->key.data, 1) < 0 ||
				 setenv("REDLOCK_TOKEN", lock->token, 1) < 0 ||
				 setenv("REDLOCK_FENCE", fence.data, 1) < 0 ||
				 setenv("REDLOCK_HELD", held.data, 1) < 0
			 ? -1
			 : 0;
	buffer_release(&held);
	buffer_release(&fence);
	return result;
}

static bool in_foreground(void)
{
	int terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
	bool result;

	if (terminal < 0)
		return false;
	result = tcgetpgrp(terminal) == getpgrp();
	close(terminal);
	return result;
}

/* In the child: becomes COMMAND, or says why not. */
static void become(const struct child *child, char *const command[],
		   const struct guard *guard, struct deadline latest,
		   int failure)
{
	int cause = ETIME;

	if (child->own_group)
		setpgid(0, 0);
	guard_announce(guard, getpid(), child->own_group);
	/* while the guard's SIGTERM is still blocked, or it would end us
	 * before we can say that COMMAND was not started */
	if (!deadline_passed(latest)) {
		signals_reset();
		execvp(command[0], command);
		cause = errno;
	}
	(void)!write(failure, &cause, sizeof(cause));
	_exit(127);
}

/* The errno that came over the pipe, 0 at its end: exec has closed it. */
static int read_failure(int fd)
{
	int cause;
	ssize_t got;

	do
		got = read(fd, &cause, sizeof(cause));
	while (got < 0 && errno == EINTR);
	return got == (ssize_t)sizeof(cause) ? cause : 0;
}

int child_start(struct child *child, char *const command[],
		const struct guard *guard, struct deadline latest)
{
	struct signals_mask before;
	int ends[2], cause = 0;

	*child = (struct child){.exit = -1, .own_group = !in_foreground()};
	if (pipe2(ends, O_CLOEXEC) < 0)
		return errno;
	signals_block_all(&before);
	child->pid = fork();
	if (child->pid == 0)
		become(child, command, guard, latest, ends[1]);
	if (child->pid < 0)
		cause = errno;
	else if (child->own_group)
		setpgid(child->pid, child->pid);
	signals_unblock(&before);
	close(ends[1]);
	if (child->pid > 0) {
		cause = read_failure(ends[0]);
		if (cause != 0)
			waitpid(child->pid, NULL, 0);
	}
	close(ends[0]);
	if (cause != 0)
		child->pid = 0;
	return cause;
}

void child_signal(const struct child *child, int number, bool by_terminal)
{
	pid_t target = child->own_group ? -child->pid : child->pid;

	if (child->pid == 0 || (by_terminal && !child->own_group))
		return;
	kill(target, number);
	/* a stopped process takes no other signal */
	if (number == SIGTERM || number == SIGHUP)
		kill(target, SIGCONT);
}

bool child_has_exited(const struct child *child)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)child->pid, &info,
		      WEXITED | WNOHANG | WNOWAIT) < 0 ||
	       info.si_pid != 0;
}

void child_reap(struct child *child)
{
	int status = 0;
	pid_t pid;

	do
		pid = waitpid(child->pid, &status, 0);
	while (pid < 0 && errno == EINTR);
	child->pid = 0;
	if (pid > 0 && WIFEXITED(status))
		child->exit = WEXITSTATUS(status);
	else if (pid > 0 && WIFSIGNALED(status))
		child->signal = WTERMSIG(status);
}
