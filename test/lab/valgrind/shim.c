/*
 * What is preloaded under valgrind, so that redlock does not see what is
 * otherwise there:
 *
 * A clone() that shares memory is taken for a fork. Here the caller waits until
 * exec or the child's end, and then finds in its argument what the child has left
 * there.
 *
 * Of system calls by number redlock makes those of pidfds, which this valgrind may
 * not know: it says so in its log. Here they are those that a kernel lacks.
 *
 * The log is open as a descriptor that COMMAND would inherit. Here it is closed
 * by exec: not before, as a fork opens its own copy of it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "watched.h"

#define ARGUMENT 64 /* bytes of it that a child may have written */

/* In a child that stands for one which shares its parent's memory. */
static char *left;
static const void *written;

__attribute__((constructor)) static void hide(void)
{
	/* it begins as a program of this machine's */
	if (strcmp(program_invocation_short_name, "valgrind") == 0)
		return;
	fcntl(LOG_DESCRIPTOR, F_SETFD, FD_CLOEXEC);
	unsetenv("LD_PRELOAD");
}

static void leave(void)
{
	if (left != NULL && written != NULL)
		memcpy(left, written, ARGUMENT);
}

int execvp(const char *file, char *const argv[])
{
	int (*real)(const char *, char *const[]);

	*(void **)&real = dlsym(RTLD_NEXT, "execvp");
	leave();
	return real(file, argv);
}

long syscall(long number, ...)
{
	(void)number;
	errno = ENOSYS;
	return -1;
}

int clone(int (*function)(void *), void *stack, int flags, void *argument, ...)
{
	char *shared = mmap(NULL, ARGUMENT, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int ends[2], result;
	char byte;
	pid_t pid;

	(void)stack;
	if ((flags & CLONE_VM) == 0 || shared == MAP_FAILED ||
	    pipe2(ends, O_CLOEXEC) < 0)
		abort();
	pid = fork();
	if (pid == 0) {
		left = shared;
		written = argument;
		result = function(argument);
		leave();
		_exit(result);
	}
	close(ends[1]);
	while (pid > 0 && read(ends[0], &byte, 1) < 0 && errno == EINTR)
		continue;
	close(ends[0]);
	if (argument != NULL &&
	    memcmp(shared, (char[ARGUMENT]){0}, ARGUMENT) != 0)
		memcpy(argument, shared, ARGUMENT);
	munmap(shared, ARGUMENT);
	return pid;
}
