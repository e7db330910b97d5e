/*
 * delay: a proxy that makes a network of a Unix socket.
 *
 *	delay [-s SEED] LEAST MOST LISTEN TARGET
 *
 * Every piece that arrives at the Unix socket LISTEN, and every answer of
 * TARGET, goes on after LEAST to MOST microseconds, drawn for each piece; pieces
 * of one direction of one connection keep their order, and nothing else waits
 * for them.  A connection ends as late as its last piece.
 */
#define _GNU_SOURCE 1

#include <sys/socket.h>
#include <sys/un.h>

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PIPES_MAX 4096
#define PIECE 16384

struct piece {
	struct piece *next;
	int64_t due;
	size_t length, sent; /* length 0: the end */
	char data[];
};

/* One direction; that of the other one is pipes[i ^ 1]. */
static struct pipe {
	int from, to; /* -1: unused */
	bool ended, shut;
	struct piece *first, **last;
	int64_t due; /* of the last piece */
} pipes[PIPES_MAX];

static int64_t least, most;

static int64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static struct sockaddr_un address_of(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(address.sun_path))
		errx(64, "%s: too long", path);
	memcpy(address.sun_path, path, strlen(path) + 1);
	return address;
}

/* Whoever sees the socket can connect. */
static int listen_at(const char *path)
{
	char early[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct sockaddr_un address;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (snprintf(early, sizeof(early), "%s~", path) >= (int)sizeof(early))
		errx(64, "%s: too long", path);
	address = address_of(early);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(fd, 1024) || rename(early, path))
		err(71, "%s", path);
	return fd;
}

static void pipe_open(int i, int from, int to)
{
	pipes[i] = (struct pipe){.from = from, .to = to};
	pipes[i].last = &pipes[i].first;
}

static void accept_one(int listener, const char *target)
{
	struct sockaddr_un address = address_of(target);
	int client =
		accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int server, i = 0;

	if (client < 0)
		return;
	server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	while (i < PIPES_MAX && pipes[i].from >= 0)
		i += 2;
	if (server < 0 || i == PIPES_MAX ||
	    connect(server, (struct sockaddr *)&address, sizeof(address))) {
		close(client);
		close(server);
		return;
	}
	pipe_open(i, client, server);
	pipe_open(i + 1, server, client);
}

static void take_in(struct pipe *pipe)
{
	struct piece *piece = malloc(sizeof(*piece) + PIECE);
	int64_t due = now() + least;
	ssize_t got;

	if (piece == NULL)
		err(71, "malloc");
	got = recv(pipe->from, piece->data, PIECE, MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
		free(piece);
		return;
	}
	pipe->ended = got <= 0;
	if (most > least)
		due += random() % (most - least + 1);
	if (due < pipe->due)
		due = pipe->due;
	piece->next = NULL;
	piece->due = pipe->due = due;
	piece->length = got > 0 ? (size_t)got : 0;
	piece->sent = 0;
	*pipe->last = piece;
	pipe->last = &piece->next;
}

static void drop_first(struct pipe *pipe)
{
	struct piece *piece = pipe->first;

	pipe->first = piece->next;
	if (pipe->first == NULL)
		pipe->last = &pipe->first;
	free(piece);
}

/* Sends on what is due; a peer that is gone gets nothing more. */
static void let_out(struct pipe *pipe)
{
	while (pipe->first != NULL && pipe->first->due <= now()) {
		struct piece *piece = pipe->first;
		ssize_t sent;

		if (piece->length == 0) {
			shutdown(pipe->to, SHUT_WR);
			pipe->shut = true;
		} else if (!pipe->shut) {
			sent = send(pipe->to, piece->data + piece->sent,
				    piece->length - piece->sent,
				    MSG_NOSIGNAL | MSG_DONTWAIT);
			if (sent < 0 && errno == EAGAIN)
				return;
			if (sent > 0)
				piece->sent += (size_t)sent;
			if (sent > 0 && piece->sent < piece->length)
				continue;
		}
		drop_first(pipe);
	}
}

static void finish(int i)
{
	if (!pipes[i].shut || !pipes[i + 1].shut)
		return;
	close(pipes[i].from);
	close(pipes[i].to);
	pipes[i].from = pipes[i + 1].from = -1;
}

static void serve(int listener, const char *target)
{
	static struct pollfd polled[PIPES_MAX + 1];

	for (;;) {
		int64_t wake = INT64_MAX, at = now();
		struct timespec pause;
		int count = 1;

		polled[0] = (struct pollfd){.fd = listener, .events = POLLIN};
		for (int i = 0; i < PIPES_MAX; i++) {
			struct pipe *pipe = &pipes[i];

			polled[i + 1] = (struct pollfd){.fd = -1};
			if (pipe->from < 0)
				continue;
			count = i + 2;
			if (!pipe->ended) {
				polled[i + 1].fd = pipe->from;
				polled[i + 1].events = POLLIN;
			}
			if (pipe->first != NULL && pipe->first->due < wake)
				wake = pipe->first->due;
		}
		wake = wake > at ? wake - at : 0;
		pause.tv_sec = (time_t)(wake / 1000000);
		pause.tv_nsec = (long)(wake % 1000000 * 1000);
		ppoll(polled, (nfds_t)count, wake > 3600000000 ? NULL : &pause,
		      NULL);
		for (int i = 0; i + 1 < count; i++) {
			if (polled[i + 1].revents != 0)
				take_in(&pipes[i]);
			if (pipes[i].from >= 0)
				let_out(&pipes[i]);
			if (i % 2 == 1 && pipes[i].from >= 0)
				finish(i - 1);
		}
		if (polled[0].revents != 0)
			accept_one(listener, target);
	}
}

int main(int argc, char *argv[])
{
	int listener;

	if (argc > 2 && strcmp(argv[1], "-s") == 0) {
		srandom((unsigned)strtoul(argv[2], NULL, 10));
		argc -= 2;
		argv += 2;
	}
	if (argc != 5)
		errx(64, "usage: delay [-s SEED] LEAST MOST LISTEN TARGET");
	least = atoll(argv[1]);
	most = atoll(argv[2]);
	for (int i = 0; i < PIPES_MAX; i++)
		pipes[i].from = -1;
	signal(SIGPIPE, SIG_IGN);
	listener = listen_at(argv[3]);
	serve(listener, argv[4]);
}
