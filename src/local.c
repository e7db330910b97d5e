#include "local.h"

#include <errno.h>
#include <fcntl.h>
#include <libutil.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap.h"
#include "signals.h"
#include "stream.h"

#define LOOK_AGAIN 5 /* ms between two looks for a server that starts */

struct place {
	char directory[URL_PATH_SIZE];
	char socket[URL_PATH_SIZE + 16];
	char lock[URL_PATH_SIZE + 16];
};

static bool is_own_directory(const char *path)
{
	struct stat found;

	return lstat(path, &found) == 0 && S_ISDIR(found.st_mode) &&
	       found.st_uid == geteuid();
}

static int find_place(struct place *place, struct error *error)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	unsigned uid = (unsigned)geteuid();
	char login[32];
	size_t size = runtime != NULL ? strlen(runtime) : 0;
	int length;

	snprintf(login, sizeof(login), "/run/user/%u", uid);
	while (size > 1 && runtime[size - 1] == '/')
		size--;
	if (size > 1 && runtime[0] == '/' &&
	    (size != strlen(login) || memcmp(runtime, login, size) != 0) &&
	    is_own_directory(runtime))
		length = snprintf(place->directory, sizeof(place->directory),
				  "%s/redlock", runtime);
	else
		length = snprintf(place->directory, sizeof(place->directory),
				  "/tmp/redlock-%u", uid);
	if (length + (int)sizeof("/redis.sock") > URL_PATH_SIZE) {
		error_set(error, EXIT_CONFIG,
			  "local:: XDG_RUNTIME_DIR is too "
			  "long for a socket's path: %.60s...",
			  runtime);
		return -1;
	}
	snprintf(place->socket, sizeof(place->socket), "%s/redis.sock",
		 place->directory);
	snprintf(place->lock, sizeof(place->lock), "%s/lock", place->directory);
	return 0;
}

/* Makes the directory, or sees that it is ours alone. */
static int trust_directory(const struct place *place, struct error *error)
{
	struct stat found;
	const char *wrong;

	if (mkdir(place->directory, 0700) < 0 && errno != EEXIST) {
		error_system(error, "local:: cannot make %s", place->directory);
		return -1;
	}
	if (lstat(place->directory, &found) < 0) {
		error_system(error, "local:: %s", place->directory);
		return -1;
	}
	if (!S_ISDIR(found.st_mode))
		wrong = "is no directory";
	else if (found.st_uid != geteuid())
		wrong = "belongs to somebody else";
	else if ((found.st_mode & 0077) != 0)
		wrong = "can be entered by others (want mode 0700)";
	else
		return 0;
	error_set(error, EXIT_CONFIG,
		  "local:: %s %s: it is not used; remove "
		  "it, or name another server",
		  place->directory, wrong);
	return -1;
}

/* In the server's process. What the user passed on to us is not for it: it has
 * the pipe for a failure, which exec closes, and one that it keeps. */
static void exec_server(const struct place *place, int failure, int life)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int cause;

	signals_set_default();
	setsid();
	failure = fcntl(failure, F_DUPFD_CLOEXEC, 10);
	if (chdir(place->directory) == 0 && failure >= 0 && null >= 0 &&
	    dup2(life, 4) >= 0 && dup3(failure, 3, O_CLOEXEC) >= 0 &&
	    dup2(null, 0) >= 0 && dup2(null, 1) >= 0 && dup2(null, 2) >= 0) {
		closefrom(5);
		execlp("redis-server", "redis-server", "--port", "0",
		       "--unixsocket", place->socket, "--unixsocketperm", "700",
		       "--save", "", "--appendonly", "no", "--daemonize", "no",
		       "--dir", place->directory, "--logfile", "redis.log",
		       (char *)NULL);
		failure = 3;
	}
	cause = errno;
	(void)!write(failure, &cause, sizeof(cause));
	_exit(EXIT_NOT_FOUND);
}

/*
 * The server is a grandchild, so that nobody has to wait for it. 0, or the
 * errno that kept it from starting. *life: a descriptor that hangs up when the
 * server ends.
 */
static int spawn_server(const struct place *place, int *life)
{
	struct signals_mask before;
	int failure[2], alive[2], cause = 0;
	pid_t child;

	if (pipe2(failure, O_CLOEXEC) < 0)
		return errno;
	if (pipe2(alive, O_CLOEXEC) < 0) {
		cause = errno;
		close(failure[0]);
		close(failure[1]);
		return cause;
	}
	signals_block_all(&before);
	child = fork();
	if (child == 0) {
		if (fork() == 0)
			exec_server(place, failure[1], alive[1]);
		_exit(0);
	}
	if (child < 0)
		cause = errno;
	signals_unblock(&before);
	close(failure[1]);
	close(alive[1]);
	if (child > 0) {
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
		if (read(failure[0], &cause, sizeof(cause)) !=
		    (ssize_t)sizeof(cause))
			cause = 0;
	}
	close(failure[0]);
	*life = alive[0];
	return cause;
}

static int wait_for_server(const struct place *place, int life,
			   struct deadline until, struct error *error)
{
	struct pollfd polled = {.fd = life, .events = POLLIN};
	const char *what = NULL;

	while (what == NULL && !stream_is_listening(place->socket)) {
		if (deadline_poll(&polled, 1, deadline_in(LOOK_AGAIN)) > 0)
			what = "has ended at once";
		else if (deadline_passed(until))
			what = "does not come up";
	}
	if (what == NULL)
		return 0;
	error_set(error, EXIT_UNREACHED,
		  "local:: the redis-server %s: see "
		  "%s/redis.log",
		  what, place->directory);
	return -1;
}

static int start_server(const struct place *place, struct deadline until,
			struct error *error)
{
	int life = -1, result = -1;
	int cause = spawn_server(place, &life);

	if (cause == ENOENT) {
		error_set(error, EXIT_CONFIG,
			  "local:: there is no "
			  "redis-server program: install the package "
			  "redis-server (Debian, Ubuntu) or redis");
	} else if (cause != 0) {
		errno = cause;
		error_system(error, "local:: cannot run redis-server");
	} else {
		result = wait_for_server(place, life, until, error);
	}
	close(life);
	return result;
}

/* One of all that come here at once starts the server; the others wait for
 * its lock and then find somebody listening. */
static int start_once(const struct place *place, struct deadline until,
		      struct error *error)
{
	int lock, result = 0;

	while ((lock = flopen(place->lock,
			      O_CREAT | O_RDWR | O_NONBLOCK | O_CLOEXEC |
				      O_NOFOLLOW,
			      0600)) < 0) {
		if (errno != EWOULDBLOCK || deadline_passed(until)) {
			error_system(error, "local:: %s", place->lock);
			return -1;
		}
		poll(NULL, 0, LOOK_AGAIN);
	}
	if (!stream_is_listening(place->socket))
		result = start_server(place, until, error);
	close(lock);
	return result;
}

int local_resolve(struct url *url, struct deadline until, struct error *error)
{
	struct place place;

	if (find_place(&place, error) < 0 || trust_directory(&place, error) < 0)
		return -1;
	if (!stream_is_listening(place.socket) &&
	    start_once(&place, until, error) < 0)
		return -1;
	url->kind = URL_UNIX;
	url->path = heap_copy(place.socket);
	return 0;
}
