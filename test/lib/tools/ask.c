/*
 * ask: redis-cli(1) for tests, at a fifth of what its start costs:
 *
 *	ask SOCKET WORD ...
 *
 * sends one command and prints the answer as redis-cli does where no terminal
 * is: the elements of arrays a line each, an empty line for nothing, and one
 * behind an error. REDISCLI_AUTH is a password. 124 where the answer takes longer
 * than 10 s, 1 where there is no server.
 */
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <err.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *server;

static void give_up(void)
{
	if (errno == EAGAIN)
		exit(124);
	errx(1, "the connection ended");
}

static void copy(size_t length)
{
	char part[4096];

	while (length > 0) {
		size_t size = length < sizeof(part) ? length : sizeof(part);

		if (fread(part, 1, size, server) != size)
			give_up();
		fwrite(part, 1, size, stdout);
		length -= size;
	}
}

/* One reply; between elements is a newline. */
static void show(void)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t length;
	long count;

	errno = 0;
	length = getline(&line, &room, server);
	if (length < 3)
		give_up();
	line[length - 2] = '\0';
	count = strtol(line + 1, NULL, 10);
	if (*line == '$' && count >= 0) {
		copy((size_t)count);
		if (fgetc(server) != '\r' || fgetc(server) != '\n')
			give_up();
	} else if (*line == '*') {
		for (long i = 0; i < count; i++) {
			if (i > 0)
				putchar('\n');
			show();
		}
	} else if (*line != '$') {
		fputs(line + 1, stdout);
		if (*line == '-')
			putchar('\n');
	}
	free(line);
}

static void ask(int count, char **words)
{
	fprintf(server, "*%d\r\n", count);
	for (int i = 0; i < count; i++)
		fprintf(server, "$%zu\r\n%s\r\n", strlen(words[i]), words[i]);
	fflush(server);
}

static void log_in(char *password)
{
	char line[512];

	ask(2, (char *[]){"AUTH", password});
	if (fgets(line, sizeof(line), server) == NULL)
		give_up();
}

int main(int argc, char **argv)
{
	char *password = getenv("REDISCLI_AUTH");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = 10};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (argc < 3 || strlen(argv[1]) >= sizeof(address.sun_path))
		errx(64, "usage: ask SOCKET WORD ...");
	strcpy(address.sun_path, argv[1]);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		err(1, "%s", argv[1]);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	server = fdopen(fd, "r+");
	if (password != NULL)
		log_in(password);
	ask(argc - 2, argv + 2);
	show();
	putchar('\n');
	return 0;
}
