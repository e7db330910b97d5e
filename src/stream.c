#include "stream.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

/* ms until a connection whose bytes nobody acknowledges is given up, with what
 * it still had to deliver: retransmission alone goes on for a quarter hour */
#define UNACKNOWLEDGED 5000

void stream_unix_address(struct address *address, const char *path)
{
	struct sockaddr_un unix_address = {.sun_family = AF_UNIX};

	strncpy(unix_address.sun_path, path, sizeof(unix_address.sun_path) - 1);
	memset(address, 0, sizeof(*address));
	memcpy(&address->socket, &unix_address, sizeof(unix_address));
	address->length = sizeof(unix_address);
}

int stream_open(const struct address *address)
{
	int family = address->socket.ss_family;
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1, unacknowledged = UNACKNOWLEDGED, cause;

	if (fd < 0)
		return -1;
	if (family != AF_UNIX) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged,
			   sizeof(unacknowledged));
	}
	if (connect(fd, (const struct sockaddr *)&address->socket,
		    address->length) == 0 || errno == EINPROGRESS)
		return fd;
	cause = errno;
	close(fd);
	errno = cause;
	return -1;
}

int stream_connected(int fd)
{
	int cause = 0;
	socklen_t size = sizeof(cause);

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &cause, &size) < 0)
		return errno;
	return cause;
}

ssize_t stream_receive(int fd, void *data, size_t size)
{
	ssize_t got;

	do
		got = recv(fd, data, size, 0);
	while (got < 0 && errno == EINTR);
	return got;
}

ssize_t stream_send(int fd, const void *data, size_t size)
{
	ssize_t sent;

	do
		sent = send(fd, data, size, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent;
}
