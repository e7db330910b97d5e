/*
 * What is preloaded under valgrind, so that redlock does not see what is
 * otherwise there:
 *
 * A clone() that shares memory is taken for a fork. Here the caller waits until
 * exec, and then finds in its argument what the child has left there.
 *
 * The log is open as a descriptor that COMMAND would inherit. Here it is closed
 * by exec: not before, as a fork opens its own copy of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "watched.h"

#define ARGUMENT 64 /* bytes of it that a child may have written */

__attribute__((constructor)) static void hide(void)
{
	/* it begins as a program of this machine's */
	if (strcmp(program_invocation_short_name, "valgrind") == 0)
		return;
	fcntl(LOG_DESCRIPTOR, F_SETFD, FD_CLOEXEC);
	unsetenv("LD_PRELOAD");
}

int clone(int (*function)(void *), void *stack, int flags, void *argument, ...)
{
	char *left = mmap(NULL, ARGUMENT, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int ends[2], result;
	char byte;
	pid_t pid;

	(void)stack;
	if ((flags & CLONE_VM) == 0 || left == MAP_FAILED ||
	    pipe2(ends, O_CLOEXEC) < 0)
		abort();
	pid = fork();
	if (pid == 0) {
		result = function(argument);
		memcpy(left, argument, ARGUMENT);
		_exit(result);
	}
	close(ends[1]);
	while (pid > 0 && read(ends[0], &byte, 1) < 0 && errno == EINTR)
		continue;
	close(ends[0]);
	if (memcmp(left, (char[ARGUMENT]){0}, ARGUMENT) != 0)
		memcpy(argument, left, ARGUMENT);
	munmap(left, ARGUMENT);
	return pid;
}
