/*
 * inject: makes one call of a process fail.
 *
 *	LD_PRELOAD=inject.so INJECT=PROCESS:FUNCTION:N:ERRNO INJECT_REPORT=FILE
 *
 * PROCESS is 0 for the process itself, with all of its threads, and 1, 2, ...
 * for the first, second, ... that it forks, until they exec. Calls are counted
 * from 1 in each of them; with 0 each call is meant, with -N the Nth and each after it. ERRNO is a number; "short"
 * gives or takes one byte only, "end" is the end of what there is to read, "idle" a
 * poll in which nothing has happened; "late" does not fail, but takes 300 ms.
 *
 * FILE gets a struct report: how many calls of what there were in which process
 * and how often the one to fail was among them. What these processes execute
 * knows nothing of all this.
 *
 * Calls within libraries count where they go through the dynamic linker, as
 * those for memory do; but not within getaddrinfo, where glibc dereferences what
 * it has got no memory for.
 */
#define _GNU_SOURCE 1

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES 8
/* clang-format off */
#define EACH_FUNCTION(X) \
	X(malloc) X(calloc) X(realloc) X(mmap64) X(fork) X(clone) X(execvp) \
	X(waitpid) \
	X(waitid) X(setsid) X(setpgid) X(chdir) X(pthread_create) X(pipe2) \
	X(dup2) X(open64) X(opendir) X(closedir) X(fcntl64) X(eventfd) \
	X(signalfd) X(timerfd_create) X(timerfd_settime) X(poll) X(read) \
	X(write) X(socket) X(connect) X(getsockopt) X(setsockopt) X(send) \
	X(recv) X(getaddrinfo) X(gethostname) X(getpgid) X(tcgetpgrp) \
	X(socketpair) X(tcsetpgrp)
/* clang-format on */

#define NUMBER(name) number_##name,
enum function { EACH_FUNCTION(NUMBER) FUNCTIONS };
#undef NUMBER

static const char *const names[] = {
#define NAME(name) #name,
	EACH_FUNCTION(NAME)
#undef NAME
};

struct report {
	_Atomic int32_t functions, forks, fired,
		fd; /* fd: of the call, or -1 */
	_Atomic int32_t calls[PROCESSES][FUNCTIONS];
};

enum { SHORT = -1, END = -2, IDLE = -3, LATE = -4 }; /* beside errno's */

static struct report *report;
static int process; /* which one this is */
static _Thread_local bool in_getaddrinfo;
static int want_process = -1, want_function = -1, want_call, want_error;

static void configure(const char *plan)
{
	char function[32], error[32];

	if (sscanf(plan, "%d:%31[^:]:%d:%31s", &want_process, function,
		   &want_call, error) != 4)
		abort();
	for (int i = 0; i < FUNCTIONS; i++)
		if (strcmp(names[i], function) == 0)
			want_function = i;
	if (want_function < 0)
		abort();
	want_error = strcmp(error, "short") == 0  ? SHORT
		     : strcmp(error, "end") == 0  ? END
		     : strcmp(error, "idle") == 0 ? IDLE
		     : strcmp(error, "late") == 0 ? LATE
						  : atoi(error);
}

__attribute__((constructor)) static void inject_open(void)
{
	const char *path = getenv("INJECT_REPORT"), *plan = getenv("INJECT");
	void *mapped;
	int fd;

	if (path == NULL)
		return;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || ftruncate(fd, sizeof(*report)) < 0)
		abort();
	mapped = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED,
		      fd, 0);
	if (mapped == MAP_FAILED)
		abort();
	close(fd);
	if (plan != NULL)
		configure(plan);
	unsetenv("INJECT");
	unsetenv("INJECT_REPORT");
	unsetenv("LD_PRELOAD");
	((struct report *)mapped)->functions = FUNCTIONS;
	report = mapped; /* from here on calls count */
}

/* Counts a call. 0, or how it is to fail. */
static int due(enum function function, int fd)
{
	int nth;

	if (report == NULL || process >= PROCESSES || in_getaddrinfo)
		return 0;
	nth = atomic_fetch_add(&report->calls[process][function], 1) + 1;
	if (process != want_process || (int)function != want_function ||
	    (want_call > 0 && nth != want_call) || nth < -want_call)
		return 0;
	report->fd = fd;
	report->fired++;
	if (want_error == LATE) {
		nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
		return 0;
	}
	return want_error;
}

static void *next(enum function function)
{
	static void *_Atomic known[FUNCTIONS];
	void *found = known[function];

	if (found == NULL)
		found = known[function] = dlsym(RTLD_NEXT, names[function]);
	return found;
}

#define NEXT(name) ((__typeof__(&(name)))next(number_##name))

/* A function that fails with -1, or otherwise, and errno. */
#define WRAP(result, name, failure, parameters, arguments, fd) \
	result name parameters;                                \
	result name parameters                                 \
	{                                                      \
		int error = due(number_##name, fd);            \
		if (error == 0)                                \
			return NEXT(name) arguments;           \
		errno = error;                                 \
		return failure;                                \
	}

WRAP(void *, malloc, NULL, (size_t size), (size), -1)
WRAP(void *, calloc, NULL, (size_t count, size_t size), (count, size), -1)
WRAP(void *, realloc, NULL, (void *old, size_t size), (old, size), -1)
WRAP(void *, mmap64, MAP_FAILED,
     (void *at, size_t size, int rights, int flags, int fd, off64_t offset),
     (at, size, rights, flags, fd, offset), fd)
WRAP(int, execvp, -1, (const char *file, char *const argv[]), (file, argv), -1)
WRAP(pid_t, waitpid, -1, (pid_t pid, int *status, int options),
     (pid, status, options), -1)
WRAP(int, waitid, -1, (idtype_t type, id_t id, siginfo_t *info, int options),
     (type, id, info, options), -1)
WRAP(pid_t, setsid, -1, (void), (), -1)
WRAP(int, setpgid, -1, (pid_t pid, pid_t group), (pid, group), -1)
WRAP(pid_t, getpgid, -1, (pid_t pid), (pid), -1)
WRAP(pid_t, tcgetpgrp, -1, (int fd), (fd), fd)
WRAP(int, chdir, -1, (const char *path), (path), -1)
WRAP(int, pipe2, -1, (int ends[2], int flags), (ends, flags), -1)
WRAP(int, socketpair, -1, (int domain, int type, int protocol, int ends[2]),
     (domain, type, protocol, ends), -1)
WRAP(int, tcsetpgrp, fd, (int fd, pid_t group), (fd, group), -1)
WRAP(int, dup2, -1, (int from, int to), (from, to), from)
WRAP(DIR *, opendir, NULL, (const char *path), (path), -1)
WRAP(int, closedir, -1, (DIR * directory), (directory), -1)
WRAP(int, eventfd, -1, (unsigned count, int flags), (count, flags), -1)
WRAP(int, signalfd, -1, (int fd, const sigset_t *mask, int flags),
     (fd, mask, flags), fd)
WRAP(int, timerfd_create, -1, (clockid_t id, int flags), (id, flags), -1)
WRAP(int, timerfd_settime, -1,
     (int fd, int flags, const struct itimerspec *at, struct itimerspec *old),
     (fd, flags, at, old), fd)
WRAP(int, socket, -1, (int family, int type, int protocol),
     (family, type, protocol), -1)
WRAP(int, connect, -1,
     (int fd, const struct sockaddr *address, socklen_t length),
     (fd, address, length), fd)
WRAP(int, getsockopt, -1,
     (int fd, int level, int name, void *value, socklen_t *size),
     (fd, level, name, value, size), fd)
WRAP(int, setsockopt, -1,
     (int fd, int level, int name, const void *value, socklen_t size),
     (fd, level, name, value, size), fd)
WRAP(int, gethostname, -1, (char *name, size_t size), (name, size), -1)

pid_t fork(void)
{
	int error = due(number_fork, -1), nth;
	pid_t pid;

	if (error != 0) {
		errno = error;
		return -1;
	}
	nth = report != NULL ? atomic_fetch_add(&report->forks, 1) + 1 : 0;
	pid = NEXT(fork)();
	if (pid == 0)
		process = nth;
	return pid;
}

/* One that shares our memory until exec: its calls are ours. */
int clone(int (*start)(void *), void *stack, int flags, void *argument, ...)
{
	int error = due(number_clone, -1);

	if (error == 0)
		return NEXT(clone)(start, stack, flags, argument);
	errno = error;
	return -1;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
		   void *(*start)(void *), void *argument)
{
	int error = due(number_pthread_create, -1);

	return error != 0 ? error
			  : NEXT(pthread_create)(thread, attributes, start,
						 argument);
}

int getaddrinfo(const char *host, const char *port,
		const struct addrinfo *hints, struct addrinfo **found)
{
	int result = EAI_MEMORY;

	if (due(number_getaddrinfo, -1) == 0) {
		in_getaddrinfo = true;
		result = NEXT(getaddrinfo)(host, port, hints, found);
		in_getaddrinfo = false;
	}
	return result;
}

int open64(const char *path, int flags, ...)
{
	int error = due(number_open64, -1);
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
	va_end(arguments);
	if (error == 0)
		return NEXT(open64)(path, flags, mode);
	errno = error;
	return -1;
}

int fcntl64(int fd, int command, ...)
{
	int error = due(number_fcntl64, fd);
	va_list arguments;
	long argument;

	va_start(arguments, command);
	argument = va_arg(arguments, long);
	va_end(arguments);
	if (error == 0)
		return NEXT(fcntl64)(fd, command, argument);
	errno = error;
	return -1;
}

int poll(struct pollfd *polled, nfds_t count, int timeout)
{
	int error = due(number_poll, -1);

	if (error == 0)
		return NEXT(poll)(polled, count, timeout);
	for (nfds_t i = 0; error == IDLE && i < count; i++)
		polled[i].revents = 0;
	errno = error;
	return error == IDLE ? 0 : -1;
}

#define TRANSFER(name, parameters, arguments, short_arguments) \
	ssize_t name parameters                                \
	{                                                      \
		int error = due(number_##name, fd);            \
		if (error == 0)                                \
			return NEXT(name) arguments;           \
		if (error == SHORT)                            \
			return NEXT(name) short_arguments;     \
		errno = error;                                 \
		return error == END ? 0 : -1;                  \
	}

TRANSFER(read, (int fd, void *data, size_t size), (fd, data, size),
	 (fd, data, size > 0))
TRANSFER(write, (int fd, const void *data, size_t size), (fd, data, size),
	 (fd, data, size > 0))
TRANSFER(recv, (int fd, void *data, size_t size, int flags),
	 (fd, data, size, flags), (fd, data, size > 0, flags))
TRANSFER(send, (int fd, const void *data, size_t size, int flags),
	 (fd, data, size, flags), (fd, data, size > 0, flags))
