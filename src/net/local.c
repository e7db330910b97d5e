#include "net/local.h"

#include <errno.h>
#include <fcntl.h>
#include <libutil.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/descriptors.h"
#include "net/limits.h"
#include "net/listener.h"
#include "net/runtime.h"
#include "base/signals.h"
#include "net/stream.h"

#define LOOK_AGAIN 5        /* ms between two looks for a server that starts */
#define STARTS_WITHIN 10000 /* ms */
#define ENDS_WITHIN 1000    /* ms: a server that removes its socket first */

struct paths {
	char directory[URL_PATH_SIZE];
	char socket[URL_PATH_SIZE + 16];
	char lock[URL_PATH_SIZE + 16];
};

static int find_paths(struct paths *paths, struct error *error)
{
	if (runtime_directory(paths->directory, error) < 0) {
		error_prepend(error, "local:: ");
		return -1;
	}
	snprintf(paths->socket, sizeof(paths->socket), "%s/redis.sock",
		 paths->directory);
	snprintf(paths->lock, sizeof(paths->lock), "%s/lock", paths->directory);
	return 0;
}

/* Its user's alone, and so it was of one that was here before. */
static void make_log(void)
{
	int log = open("redis.log", O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
		       0600);

	if (log >= 0)
		(void)!fchmod(log, 0600);
	umask(0077);
}

/* The first of them that is there; both take the same options. */
static void exec_program(const struct paths *paths)
{
	static const char *const programs[] = {"redis-server", "valkey-server"};

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		execlp(programs[i], programs[i], "--port", "0", "--unixsocket",
		       paths->socket, "--unixsocketperm", "700", "--save", "",
		       "--appendonly", "no", "--daemonize", "no", "--dir",
		       paths->directory, "--logfile", "redis.log",
		       (char *)NULL);
		if (errno != ENOENT)
			break;
	}
}

/* In the server's process. What the user passed on to us is not for it: it has
 * the pipe for a failure, which exec closes, and one that it keeps. */
static void exec_server(const struct paths *paths, int failure, int life)
{
	int null, moved, cause;

	signals_set_default();
	limits_leave();
	setsid();
	null = descriptors_nowhere(O_RDWR);
	moved = fcntl(failure, F_DUPFD_CLOEXEC, 5);
	if (moved >= 0)
		failure = moved; /* or else that is reported by the old one */
	if (moved >= 0 && null >= 0 && chdir(paths->directory) == 0 &&
	    dup2(life, 4) >= 0 && dup3(failure, 3, O_CLOEXEC) >= 0 &&
	    dup2(null, 0) >= 0 && dup2(null, 1) >= 0 && dup2(null, 2) >= 0) {
		descriptors_close_from(5);
		make_log();
		exec_program(paths);
		failure = 3;
	}
	cause = errno;
	(void)!write(failure, &cause, sizeof(cause));
	_exit(EXIT_NOT_FOUND);
}

/* A grandchild, so that no process has to wait for it: 0 there, with all signals blocked;
 * otherwise 1, or -1 with errno. */
static int fork_twice(void)
{
	struct signals_mask before;
	pid_t child;
	int cause;

	signals_block_all(&before);
	child = fork();
	if (child == 0) {
		if (fork() == 0)
			return 0;
		_exit(0);
	}
	cause = errno;
	signals_unblock(&before);
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	errno = cause;
	return child > 0 ? 1 : -1;
}

/* 0, or the errno that kept the server from starting. *life: a descriptor that hangs up
 * when it ends. */
static int spawn_server(const struct paths *paths, int *life)
{
	int failure[2], alive[2], cause = 0, forked;

	if (pipe2(failure, O_CLOEXEC) < 0)
		return errno;
	if (pipe2(alive, O_CLOEXEC) < 0) {
		cause = errno;
		close(failure[0]);
		close(failure[1]);
		return cause;
	}
	forked = fork_twice();
	if (forked == 0)
		exec_server(paths, failure[1], alive[1]);
	if (forked < 0)
		cause = errno;
	close(failure[1]);
	close(alive[1]);
	if (forked > 0 &&
	    read(failure[0], &cause, sizeof(cause)) != (ssize_t)sizeof(cause))
		cause = 0;
	close(failure[0]);
	*life = alive[0];
	return cause;
}

static int wait_for_server(const struct paths *paths, int life,
			   struct deadline until, struct error *error)
{
	struct pollfd polled = {.fd = life, .events = POLLIN};
	const char *what = NULL;

	while (what == NULL && !stream_is_listening(paths->socket)) {
		if (deadline_poll(&polled, 1, deadline_in(LOOK_AGAIN)) > 0)
			what = "has ended at once";
		else if (deadline_passed(until))
			what = "does not start";
	}
	if (what == NULL)
		return 0;
	error_set(error, EXIT_UNREACHED,
		  "local:: the server %s: see "
		  "%s/redis.log",
		  what, paths->directory);
	return -1;
}

static int start_server(const struct paths *paths, struct deadline until,
			struct error *error)
{
	int life = -1, result = -1, cause;

	if (limits_allow_server(error) < 0)
		return -1;
	cause = spawn_server(paths, &life);
	if (cause == ENOENT) {
		error_set(error, EXIT_CONFIG,
			  "local:: there is no redis-server or valkey-server "
			  "program: install the package redis-server or "
			  "valkey-server (Debian, Ubuntu), redis or valkey");
	} else if (cause != 0) {
		errno = cause;
		error_system(
			error,
			"local:: cannot run redis-server or valkey-server");
	} else {
		result = wait_for_server(paths, life, until, error);
		if (result == 0)
			limits_warn(error);
	}
	close(life);
	return result;
}

/* If a server runs to which nobody can connect any more, those who did before may hold
 * locks there: no second one may be started. But it may be about to end, so this waits a
 * little. 0, or -1 with *error. */
static int wait_for_earlier(const struct paths *paths, struct error *error)
{
	struct deadline until = deadline_in(ENDS_WITHIN);
	pid_t earlier;

	while ((earlier = listener_of(paths->socket)) != 0 &&
	       !stream_is_listening(paths->socket)) {
		if (deadline_passed(until)) {
			error_set(error, EXIT_UNREACHED,
				  "local:: its server, pid %ld, runs, but "
				  "%s is gone, or in another mount namespace "
				  "(PrivateTmp): when no lock is held there, "
				  "kill %ld",
				  (long)earlier, paths->socket, (long)earlier);
			return -1;
		}
		poll(NULL, 0, LOOK_AGAIN);
	}
	return 0;
}

/* -1 with errno. */
static int open_lock(const char *path)
{
	int lock = flopen(
		path, O_CREAT | O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW,
		0600);

	/* made under a umask that left its owner no rights: try again */
	if (lock < 0 && errno == EACCES && chmod(path, 0600) == 0)
		errno = EWOULDBLOCK;
	if (lock >= 0)
		(void)!fchmod(lock, 0600);
	return lock;
}

/* With the lock. */
static int start_unless_listening(const struct paths *paths,
				  struct deadline until, struct error *error)
{
	int result = 0;

	if (!stream_is_listening(paths->socket))
		result = wait_for_earlier(paths, error);
	if (result == 0 && !stream_is_listening(paths->socket))
		result = start_server(paths, until, error);
	return result;
}

/* One of the processes that come here at once starts the server; the others
 * wait for its lock and then find the server listening. */
static int start_once(const struct paths *paths, struct deadline until,
		      struct error *error)
{
	int lock, result;

	while ((lock = open_lock(paths->lock)) < 0) {
		if (errno != EWOULDBLOCK || deadline_passed(until)) {
			error_system(error, "local:: %s", paths->lock);
			return -1;
		}
		poll(NULL, 0, LOOK_AGAIN);
	}
	result = start_unless_listening(paths, until, error);
	close(lock);
	return result;
}

int local_resolve(struct url *url, struct error *error)
{
	struct paths paths;

	error->text[0] = '\0';
	if (find_paths(&paths, error) < 0)
		return -1;
	url->at.path = xstrdup(paths.socket);
	return stream_is_listening(paths.socket)
		       ? 0
		       : start_once(&paths, deadline_in(STARTS_WITHIN), error);
}

/* Of any number that come here at once, all but one leave it to that one. */
__attribute__((noreturn)) static void start_aside(void)
{
	int null = descriptors_nowhere(O_RDWR);
	struct paths paths;
	struct error ignored;

	signals_set_default();
	setsid();
	deadline_after_fork();
	for (int fd = 0; fd <= 2; fd++)
		dup2(null, fd);
	descriptors_close_from(3);
	if (find_paths(&paths, &ignored) == 0 && open_lock(paths.lock) >= 0)
		start_unless_listening(&paths, deadline_in(STARTS_WITHIN),
				       &ignored);
	_exit(0);
}

void local_start_again(void)
{
	if (fork_twice() == 0)
		start_aside();
}
