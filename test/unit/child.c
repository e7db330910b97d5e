/* COMMAND's start, with a leader of its group that does not end by itself, and if no
 * process may share another's memory. */
#include "run/child.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/signals.h"
#include "check.h"

typedef int run_fn(void *);
typedef int clone_fn(run_fn *run, void *stack, int flags, void *argument, ...);

static bool refuses, maps_nothing;

static int stop(void *argument)
{
	(void)argument;
	kill(getpid(), SIGSTOP);
	return 0;
}

/* In place of the C library's: a SIGSTOP comes before the leader has run; or as under
 * qemu-user. */
int clone(run_fn *run, void *stack, int flags, void *argument, ...)
{
	static char room[16384] __attribute__((aligned(16)));
	clone_fn *real;

	if (refuses && (flags & CLONE_VM) != 0) {
		errno = EINVAL;
		return -1;
	}
	*(void **)&real = dlsym(RTLD_NEXT, "clone");
	return (flags & CLONE_SIGHAND) != 0
		       ? real(stop, room + sizeof(room), flags, argument)
		       : real(run, stack, flags, argument);
}

void *mmap64(void *at, size_t size, int protection, int flags, int fd,
	     off64_t offset)
{
	typedef void *mmap_fn(void *, size_t, int, int, int, off64_t);
	mmap_fn *real;

	if (maps_nothing) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	*(void **)&real = dlsym(RTLD_NEXT, "mmap64");
	return real(at, size, protection, flags, fd, offset);
}

static void check_command(char *const command[], struct deadline latest,
			  int cause, int exit)
{
	const char *name = command[0];
	struct guard guard = {0};
	struct job job = {0};
	struct child child;

	alarm(20); /* instead of hanging */
	CHECK(child_start(&child, command, &job, &guard, latest) == cause, "%s",
	      name);
	if (cause != ENOMEM)
		CHECK(child.group != getpgrp() && child.group != child.pid,
		      "%s", name);
	if (cause == 0)
		child_reap(&child);
	alarm(0);
	CHECK(child.leader <= 0 && child.exit == exit, "%s", name);
}

static void check_start(const char *name, struct deadline latest, int cause,
			int exit)
{
	check_command((char *const[]){(char *)name, NULL}, latest, cause, exit);
}

/* So many that the stack for them is mapped. */
static void check_many_arguments(void)
{
	static char *command[3000];

	for (size_t i = 0; i < sizeof(command) / sizeof(command[0]) - 1; i++)
		command[i] = (char *)"false";
	check_command(command, deadline_never(), 0, 1);
	maps_nothing = true;
	check_command(command, deadline_never(), ENOMEM, -1);
	maps_nothing = false;
}

static void check_starts(void)
{
	check_start("true", deadline_never(), 0, 0);
	check_start("false", deadline_never(), 0, 1);
	check_start("/nonesuch", deadline_never(), ENOENT, -1);
	check_start("true", deadline_at(0), ETIME, -1);
}

int main(void)
{
	signals_init();
	check_starts();
	check_many_arguments();
	refuses = true;
	check_starts();
	check_many_arguments();
	maps_nothing = true;
	check_start("true", deadline_never(), ENOMEM, -1);
	return check_result();
}
