/*
 * witness: the command that runs under a lock while something fails.
 *
 *	witness MS FILE SOCKET...
 *
 * It takes FILE with flock(LOCK_EX | LOCK_NB), and for MS milliseconds asks
 * the redis-servers behind these Unix sockets, every 20 ms, what KEY is. Lines
 * are added to FILE:
 *
 *	start		the first thing it did
 *	two		somebody else had FILE
 *	without		KEY was not its token on more than half of the servers
 *	end		it has not been stopped
 */
#define _GNU_SOURCE 1

#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <err.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int connect_to(const char *path)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&name, sizeof(name)) < 0)
		err(71, "%s", path);
	return fd;
}

/* A token is shorter than what one read brings. */
static bool holds(int fd, const char *key, const char *token)
{
	char text[512], wanted[512];
	ssize_t got;

	dprintf(fd, "GET %s\r\n", key);
	got = read(fd, text, sizeof(text) - 1);
	if (got <= 0)
		err(71, "a server");
	text[got] = '\0';
	snprintf(wanted, sizeof(wanted), "$%zu\r\n%s\r\n", strlen(token),
		 token);
	return strcmp(text, wanted) == 0;
}

int main(int argc, char **argv)
{
	const char *key = getenv("REDLOCK_KEY"),
		   *token = getenv("REDLOCK_TOKEN");
	struct timespec pause = {.tv_nsec = 20000000};
	int servers[8], count = argc - 3, file;

	if (argc < 4 || count > 8 || key == NULL || token == NULL)
		errx(64, "usage: witness MS FILE SOCKET...");
	file = open(argv[2], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (file < 0)
		err(71, "%s", argv[2]);
	dprintf(file, "start\n");
	if (flock(file, LOCK_EX | LOCK_NB) < 0)
		dprintf(file, "two\n");
	for (int i = 0; i < count; i++)
		servers[i] = connect_to(argv[3 + i]);
	for (long left = strtol(argv[1], NULL, 10); left >= 0; left -= 20) {
		int held = 0;

		for (int i = 0; i < count; i++)
			held += holds(servers[i], key, token);
		if (held <= count / 2)
			dprintf(file, "without\n");
		nanosleep(&pause, NULL);
	}
	dprintf(file, "end\n");
	return 0;
}
