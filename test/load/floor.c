/*
 * floor: the least that a hand-over can cost, to compare redlock with.
 *
 *	floor SOCKET KEY TOKEN COMMAND [ARGUMENT ...]
 *
 * It waits with BLPOP on the list KEY, executes COMMAND, and pushes its token
 * onto the list when that has ended.  No lease, no fence, no guard, and whoever
 * dies takes the lock along.
 */
#define _GNU_SOURCE 1

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Until so many lines have come. */
static void await(int fd, int lines)
{
	char data[256];

	while (lines > 0) {
		ssize_t got = read(fd, data, sizeof(data));

		if (got <= 0 || data[0] == '-')
			errx(69, "no answer");
		for (ssize_t i = 0; i < got; i++)
			lines -= data[i] == '\n';
	}
}

int main(int argc, char *argv[])
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pid_t child;

	if (argc < 5)
		errx(64, "usage: floor SOCKET KEY TOKEN COMMAND ...");
	strncpy(address.sun_path, argv[1], sizeof(address.sun_path) - 1);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)))
		err(69, "%s", argv[1]);
	setenv("REDLOCK_TOKEN", argv[3], 1);
	dprintf(fd, "*3\r\n$5\r\nBLPOP\r\n$%zu\r\n%s\r\n$1\r\n0\r\n",
		strlen(argv[2]), argv[2]);
	await(fd, 5);
	child = vfork();
	if (child == 0) {
		execv(argv[4], argv + 4);
		_exit(127);
	}
	waitpid(child, NULL, 0);
	dprintf(fd, "*3\r\n$5\r\nLPUSH\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n",
		strlen(argv[2]), argv[2], strlen(argv[3]), argv[3]);
	await(fd, 1);
	return 0;
}
