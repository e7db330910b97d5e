/*
 * Sockets: non-blocking and close-on-exec from birth, never a SIGPIPE.
 */
#ifndef STREAM_H
#define STREAM_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

struct address {
	struct sockaddr_storage socket;
	socklen_t length;
};

#define ADDRESSES_MAX 8

struct addresses {
	struct address list[ADDRESSES_MAX];
	size_t count;
};

/* The address of a Unix socket; path is shorter than sun_path. */
void stream_unix_address(struct address *address, const char *path);

/*
 * Starts to connect. The descriptor, or -1 with errno; EAGAIN where a Unix
 * socket's backlog is full (try again a little later). It is connected, or has
 * failed, once it is writable: see stream_connected.
 */
int stream_open(const struct address *address);

/* 0, or the errno that ended the connecting. */
int stream_connected(int fd);

/* As recv(2) and send(2); -1 with EAGAIN where it would block. */
ssize_t stream_receive(int fd, void *data, size_t size);
ssize_t stream_send(int fd, const void *data, size_t size);

#endif
