/*
 * floor: the least that holding a lock can cost, to compare redlock with.
 *
 *	floor lock ADDRESS KEY TOKEN COMMAND [ARGUMENT ...]
 *	floor wait ADDRESS LIST TOKEN COMMAND [ARGUMENT ...]
 *	floor now
 *
 * `lock` is for a lock that nobody has: SET NX PX, COMMAND, and a script that
 * deletes KEY if it is still TOKEN's.  `wait` is for one that others have: BLPOP
 * of LIST, which has an element while nobody holds the lock, COMMAND, and LPUSH
 * of TOKEN.  No renewal, no fence, no guard; whoever dies in `wait` takes the
 * lock along.  ADDRESS is the path of a socket, or HOST:PORT in numbers.
 * COMMAND has REDLOCK_TOKEN in its environment, as with redlock.
 *
 * `now` prints the nanoseconds of CLOCK_MONOTONIC, as the first thing it does.
 *
 * It is linked statically, and has nothing to look up, read or set up.
 */
#define _GNU_SOURCE 1

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RELEASE                                       \
	"if redis.call('get',KEYS[1])==ARGV[1] then " \
	"return redis.call('del',KEYS[1]) else return 0 end"

static int connect_unix(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)))
		err(69, "%s", path);
	return fd;
}

static int connect_tcp(char *host)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	char *port = strchr(host, ':');
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (port == NULL)
		errx(64, "%s: no port", host);
	*port++ = '\0';
	address.sin_port = htons((uint16_t)atoi(port));
	if (inet_pton(AF_INET, host, &address.sin_addr) != 1 || fd < 0 ||
	    connect(fd, (struct sockaddr *)&address, sizeof(address)))
		err(69, "%s", host);
	return fd;
}

/* One write, and an answer of so many lines; its first byte. */
static char ask(int fd, int lines, const char *words[], size_t count)
{
	char data[1024];
	int length = snprintf(data, sizeof(data), "*%zu\r\n", count);
	char kind = '\0';

	for (size_t i = 0; i < count; i++) {
		length +=
			snprintf(data + length, sizeof(data) - (size_t)length,
				 "$%zu\r\n%s\r\n", strlen(words[i]), words[i]);
		if (length >= (int)sizeof(data))
			errx(64, "too long");
	}
	if (write(fd, data, (size_t)length) != length)
		err(69, "write");
	while (lines > 0) {
		ssize_t got = read(fd, data, sizeof(data));

		if (got <= 0 || (kind == '\0' && data[0] == '-'))
			errx(69, "no answer");
		if (kind == '\0')
			kind = data[0];
		for (ssize_t i = 0; i < got; i++)
			lines -= data[i] == '\n';
	}
	return kind;
}

#define ASK(fd, lines, ...)                           \
	ask(fd, lines, (const char *[]){__VA_ARGS__}, \
	    sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *))

static int run(char *argv[])
{
	pid_t child = vfork();
	int status;

	if (child == 0) {
		execvp(argv[0], argv);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0)
		err(71, "%s", argv[0]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void print_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	printf("%lld\n", (long long)ts.tv_sec * 1000000000 + ts.tv_nsec);
}

int main(int argc, char *argv[])
{
	int waits, fd, status;

	if (argc == 2 && strcmp(argv[1], "now") == 0) {
		print_now();
		return 0;
	}
	if (argc < 6)
		errx(64,
		     "usage: floor lock|wait ADDRESS KEY TOKEN COMMAND ...");
	waits = strcmp(argv[1], "wait") == 0;
	fd = *argv[2] == '/' ? connect_unix(argv[2]) : connect_tcp(argv[2]);
	setenv("REDLOCK_TOKEN", argv[4], 1);
	if (waits)
		ASK(fd, 5, "BLPOP", argv[3], "0");
	else if (ASK(fd, 1, "SET", argv[3], argv[4], "NX", "PX", "30000") !=
		 '+')
		errx(75, "%s is held", argv[3]);
	status = run(argv + 5);
	if (waits)
		ASK(fd, 1, "LPUSH", argv[3], argv[4]);
	else
		ASK(fd, 1, "EVAL", RELEASE, "1", argv[3], argv[4]);
	return status;
}
