#include "run/child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/ancestry.h"
#include "base/signals.h"

#define START_STACK 65536 /* bytes, and room for the arguments */
#define USUAL_STACK (START_STACK + 8192)
#define LOOK_AGAIN 20 /* ms, whether it has been stopped, or has ended */

struct change {
	const char *name, *value; /* value NULL: unset it */
};

static bool is_changed(const char *entry, const struct change *changes,
		       size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(changes[i].name);

		if (strncmp(entry, changes[i].name, length) == 0 &&
		    entry[length] == '=')
			return true;
	}
	return false;
}

/* Another thread may be in getaddrinfo(3), which reads the environment, and setenv(3) may
 * free what it reads: so a new one is made, and the old one is left alone. */
static int change_environment(const struct change *changes, size_t count)
{
	static char *nothing[] = {NULL};
	static char **volatile kept; /* as base/title.c may move it */
	char **old = environ != NULL ? environ : nothing, **fresh;
	size_t size = 0, used = 0;

	while (old[size] != NULL)
		size++;
	fresh = calloc(size + count + 1, sizeof(*fresh));
	if (fresh == NULL)
		return -1;
	for (size_t i = 0; i < size; i++)
		if (!is_changed(old[i], changes, count))
			fresh[used++] = old[i];
	kept = fresh;
	environ = kept;
	for (size_t i = 0; i < count; i++)
		if (changes[i].value != NULL &&
		    asprintf(&fresh[used++], "%s=%s", changes[i].name,
			     changes[i].value) < 0)
			return -1;
	return 0;
}

int child_set_environment(struct lock *const *locks, size_t count)
{
	struct buffer held = {0}, fence = {0}, fences = {0}, slot = {0};
	int result;

	ancestry_extend(&held, locks, count);
	if (count > 0)
		buffer_print(&fence, "%" PRId64, locks[0]->grant.fence);
	if (count > 0 && locks[0]->grant.slot > 0)
		buffer_print(&slot, "%" PRId64, locks[0]->grant.slot);
	/* one lock has none, and what was inherited is about others */
	if (count > 1)
		ancestry_print_fences(&fences, locks, count);
	result = change_environment(
		(const struct change[]){
			{"REDLOCK_KEY", locks[0]->names.key.data},
			{"REDLOCK_HELD", held.data},
			{"REDLOCK_VALID_UNTIL", NULL},
			{"REDLOCK_FENCES", fences.data},
			{"REDLOCK_TOKEN",
			 count > 0 ? locks[0]->grant.token : NULL},
			{"REDLOCK_FENCE", fence.data},
			{"REDLOCK_SLOT", slot.data},
			{"REDLOCK_UNLOCKED", count > 0 ? NULL : "1"},
		},
		8);
	buffer_release(&held);
	buffer_release(&fence);
	buffer_release(&fences);
	buffer_release(&slot);
	return result;
}

/* What the process that becomes COMMAND is to know, and how it went. */
struct start {
	const struct child *child;
	char *const *command;
	struct job *job;
	const struct guard *guard;
	struct deadline latest;
	uint64_t missed; /* signals that the group got before it was there */
	int cause;       /* errno */
};

/* In that process, which has our memory until exec. Only SIGKILL can end it before
 * signals_reset: by the guard, as the lease is over, so that is the cause until it
 * is another. A signal that ends it after that has ended COMMAND. */
static int become(void *argument)
{
	struct start *start = argument;

	if (start->child->group != 0)
		setpgid(0, start->child->group);
	else
		start->missed = job_look(start->job) & ~signals_pending();
	/* while the guard's SIGTERM is still blocked, or it would end us
	 * before we can say that COMMAND was not started */
	if (guard_announce(start->guard, getpid(), start->child->group) < 0) {
		start->cause = errno;
		return 127;
	}
	if (deadline_passed(start->latest))
		return 127;
	start->cause = 0;
	signals_reset();
	execvp(start->command[0], start->command);
	start->cause = errno;
	return 127;
}

/* execvp tries names on it, and copies the arguments if /bin/sh is to read a
 * file. */
static size_t stack_size(char *const command[])
{
	size_t count = 0;

	while (command[count] != NULL)
		count++;
	return START_STACK + count * sizeof(command[0]);
}

/* ThreadSanitizer would note the call among the main thread's. */
__attribute__((no_sanitize_thread)) static int end(void *argument)
{
	(void)argument;
	return 0;
}

/* Of COMMAND's process, and of the leader of its group, which may run at the same time.
 * One is after the other, so that one page has what both use. */
static struct {
	char usual[USUAL_STACK];
	char leader[256];
} stacks __attribute__((aligned(16)));

/* A process that leads a group of its own, and ends. It shares all that it can
 * with us, so that it costs little; nobody waits until it has run, as the group
 * is there at once. Its number, or -1 with errno. */
static pid_t make_group(void)
{
	pid_t pid =
		clone(end, stacks.leader + sizeof(stacks.leader),
		      CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND, NULL);

	return pid > 0 && setpgid(pid, pid) == 0 ? pid : -1;
}

/* The same, of nothing but a copy. */
static pid_t make_group_apart(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return pid > 0 && setpgid(pid, pid) == 0 ? pid : -1;
}

static void reap_leader(struct child *child, int options)
{
	if (child->leader > 0 &&
	    waitpid(child->leader, NULL, __WALL | options) != 0)
		child->leader = 0;
}

/* As vfork(2) does, but COMMAND's process may be stopped before exec, by ^Z: then
 * we stop, too, if we share a terminal. Exec, or its end, closes the other end of the pipe; it runs on our
 * memory until then, whatever poll says. */
static void wait_for_exec(const struct child *child, struct start *start,
			  int readable)
{
	struct pollfd polled = {.fd = readable};

	while (poll(&polled, 1, LOOK_AGAIN) <= 0) {
		int number = child_stopped(child);

		if (number == 0 || !job_has_terminal(start->job))
			continue;
		child_note_stop(child);
		job_stop(start->job, number, child->pid, start->latest);
	}
}

/* top: of its stack. Or NULL: then it runs on a copy of our memory, start excepted. */
static pid_t make_process(struct start *start, char *top)
{
	pid_t pid;

	if (top != NULL)
		return clone(become, top, CLONE_VM | SIGCHLD, start);
	pid = fork();
	if (pid == 0)
		_exit(become(start));
	return pid;
}

/* What is in our memory meanwhile is not touched. */
static void start_and_poll(struct child *child, struct start *start, char *top)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return;
	child->pid = make_process(start, top);
	close(ends[1]);
	if (child->pid > 0)
		wait_for_exec(child, start, ends[0]);
	close(ends[0]);
}

static void release_leader(struct child *child)
{
	/* COMMAND may have stopped its group before the leader has run */
	kill(child->leader, SIGKILL);
	reap_leader(child, WNOHANG);
}

static void start_in_group(struct child *child, struct start *start, char *top)
{
	child->group = child->leader = make_group();
	if (child->group < 0)
		return;
	child->pid =
		clone(become, top, CLONE_VM | CLONE_VFORK | SIGCHLD, start);
	release_leader(child);
}

/* If no process may have our memory: it has only these two of ours. */
static void start_apart(struct child *child, struct start *start)
{
	struct {
		struct start start;
		struct job job;
	} *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool grouped = !job_has_terminal(start->job);

	if (shared == MAP_FAILED)
		return;
	shared->start = *start;
	shared->job = *start->job;
	shared->start.job = &shared->job;
	if (grouped)
		child->group = child->leader = make_group_apart();
	if (child->group >= 0)
		start_and_poll(child, &shared->start, NULL);
	if (child->group > 0)
		release_leader(child);
	start->cause = shared->start.cause;
	start->missed = shared->start.missed;
	*start->job = shared->job;
	munmap(shared, sizeof(*shared));
}

/* On a stack of its own, which nobody has to map if the arguments are few. */
static void start_process(struct child *child, struct start *start)
{
	size_t size = stack_size(start->command);
	char *stack = stacks.usual, *top;

	if (size <= sizeof(stacks.usual))
		size = sizeof(stacks.usual);
	else
		stack = mmap(NULL, size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED) {
		start->cause = errno;
		return;
	}
	top = stack + size / 16 * 16;
	if (job_has_terminal(start->job))
		start_and_poll(child, start, top);
	else
		start_in_group(child, start, top);
	if (child->pid < 0 && errno == EINVAL)
		start_apart(child, start);
	if (child->pid < 0)
		start->cause = errno;
	if (stack != stacks.usual)
		munmap(stack, size);
}

int child_start(struct child *child, char *const command[], struct job *job,
		struct guard *guard, struct deadline latest)
{
	struct start start = {child, command, job, guard, latest, 0, ETIME};
	struct signals_mask before;

	*child = (struct child){.pid = -1, .exit = -1};
	signals_block_all(&before);
	start_process(child, &start);
	signals_unblock(&before);
	if (start.cause != 0) {
		if (child->pid > 0)
			waitpid(child->pid, NULL, 0);
		reap_leader(child, 0);
		child->pid = 0;
	} else {
		guard_note(guard, child->pid, child->group);
	}
	for (int number = 1; number < NSIG; number++)
		if ((start.missed & signals_bit(number)) != 0)
			child_signal(child, number);
	return start.cause;
}

/* For kill(2): the group that it was given or leads now, or itself. A group that has its
 * leader in another pid namespace has no number here, but 0; that would be ours. */
static pid_t target_of(const struct child *child)
{
	pid_t group = getpgid(child->pid);

	return group > 0 && (group == child->group || group == child->pid)
		       ? -group
		       : child->pid;
}

void child_signal(const struct child *child, int number)
{
	pid_t target;

	if (child->pid == 0)
		return;
	target = target_of(child);
	kill(target, number);
	/* a stopped process takes no other signal */
	if (signals_is_end(number))
		kill(target, SIGCONT);
}

bool child_shares_group(const struct child *child)
{
	return child->group == 0 && getpgid(child->pid) == getpgrp();
}

static int stop_of(const struct child *child, int options)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)child->pid, &info,
		      WSTOPPED | WNOHANG | options) == 0 &&
			       info.si_pid != 0
		       ? info.si_status
		       : 0;
}

int child_stopped(const struct child *child)
{
	return stop_of(child, WNOWAIT);
}

void child_note_stop(const struct child *child)
{
	stop_of(child, 0);
}

struct deadline child_next(const struct child *child)
{
	return child->leader > 0 ? deadline_in(LOOK_AGAIN) : deadline_never();
}

bool child_has_exited(struct child *child)
{
	siginfo_t info = {0};
	int result;

	reap_leader(child, WNOHANG);
	do
		result = waitid(P_PID, (id_t)child->pid, &info,
				WEXITED | WNOHANG | WNOWAIT);
	while (result < 0 && errno == EINTR);
	if (result == 0 && info.si_pid != 0 && info.si_code == CLD_EXITED)
		child->exit = info.si_status;
	else if (result == 0 && info.si_pid != 0)
		child->signal = info.si_status;
	return result < 0 || info.si_pid != 0;
}

void child_reap_orphans(const pid_t *ours, size_t count)
{
	siginfo_t info = {0};

	while (getpid() == 1 &&
	       waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid != 0) {
		for (size_t i = 0; i < count; i++)
			if (info.si_pid == ours[i])
				return;
		waitpid(info.si_pid, NULL, WNOHANG);
		info.si_pid = 0;
	}
}

void child_reap(struct child *child)
{
	int status = 0;
	pid_t pid;

	reap_leader(child, 0);
	do
		pid = waitpid(child->pid, &status, 0);
	while (pid < 0 && errno == EINTR);
	child->pid = 0;
	if (pid > 0 && WIFEXITED(status))
		child->exit = WEXITSTATUS(status);
	else if (pid > 0 && WIFSIGNALED(status))
		child->signal = WTERMSIG(status);
}
