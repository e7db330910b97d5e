/*
 * Stands for a program of the build directory, and runs it under valgrind:
 *
 *	BUILD/valgrind/NAME [ARGUMENT ...]	runs BUILD/NAME
 *
 * with a log of its own in BUILD/valgrind/log. A shell script would not leave
 * signals and descriptors as they are; nor does the one that is Debian's
 * valgrind. What glibc would free at exit is left alone: it forgets the
 * environment, too.
 */
#include "watched.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DIRECTORY "/valgrind"
#define FAILED 98 /* beside valgrind's 99, and none of redlock's */

/* A process id comes again, a moment does not. */
static int open_log(const char *home)
{
	struct timespec now;
	char *path;
	int fd;

	clock_gettime(CLOCK_BOOTTIME, &now);
	if (asprintf(&path, "%s/log/%ld.%09ld-%ld", home, (long)now.tv_sec,
		     now.tv_nsec, (long)getpid()) < 0)
		return -1;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
	if (fd < 0 || dup2(fd, LOG_DESCRIPTOR) < 0)
		return -1;
	return close(fd);
}

int main(int argc, char **argv)
{
	char *options[] = {
		"valgrind",
		"--quiet",
		"--vgdb=no",
		"--smc-check=none",
		"--error-exitcode=99",
		"--leak-check=full",
		"--show-leak-kinds=definite",
		"--errors-for-leak-kinds=definite",
		"--run-libc-freeres=no",
		NULL, /* what is known */
		NULL, /* the log */
		NULL, /* the program */
	};
	size_t count = sizeof(options) / sizeof(options[0]);
	char **all = calloc(count + (size_t)argc, sizeof(*all));
	char *home = realpath("/proc/self/exe", NULL), *name = NULL, *shim;

	for (char *at = home; at && (at = strstr(at, DIRECTORY "/")); at++)
		name = at + strlen(DIRECTORY);
	if (all == NULL || name == NULL ||
	    asprintf(&options[count - 3], "--suppressions=%.*s/known",
		     (int)(name - home), home) < 0 ||
	    asprintf(&options[count - 2], "--log-fd=%d", LOG_DESCRIPTOR) < 0 ||
	    asprintf(&options[count - 1], "%.*s%s",
		     (int)(name - home - (long)strlen(DIRECTORY)), home,
		     name) < 0)
		return FAILED;
	memcpy(all, options, sizeof(options));
	memcpy(all + count, argv + 1, (size_t)argc * sizeof(*all));
	*name = '\0';
	if (asprintf(&shim, "%s/test/shim.so", home) < 0 ||
	    setenv("LD_PRELOAD", shim, 1) < 0 || open_log(home) < 0)
		return FAILED;
	/* whatever PATH a test has */
	execv("/usr/bin/valgrind.bin", all);
	execv("/usr/bin/valgrind", all);
	execvp("valgrind", all);
	return FAILED;
}
