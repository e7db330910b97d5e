#include "net/stream.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/tls_load.h"

#define ADDRESS_TIME 250 /* ms for an address while others are left */
#define LOOK_UP_TIME 250 /* ms for a name while old addresses are left */
#define BACKLOG_PAUSE 5  /* ms */

/* ms until a connection is given up if its bytes are not acknowledged, with
 * what it still had to deliver: retransmission alone goes on for 15 min */
#define UNACKNOWLEDGED 5000

void stream_init(struct stream *stream)
{
	memset(stream, 0, sizeof(*stream));
	stream->fd = -1;
}

static void end_tls(struct stream *stream, bool goodbye)
{
	if (stream->tls != NULL)
		tls_module()->close(stream->tls, goodbye);
	stream->tls = NULL;
}

void stream_close(struct stream *stream)
{
	if (stream->lookup != NULL)
		resolve_abandon(stream->lookup);
	end_tls(stream, true);
	if (stream->fd >= 0)
		close(stream->fd);
	stream->lookup = NULL;
	stream->fd = -1;
	stream->state = STREAM_DOWN;
}

static void unix_address(struct address *address, const char *path)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};

	strncpy(name.sun_path, path, sizeof(name.sun_path) - 1);
	memset(address, 0, sizeof(*address));
	memcpy(&address->socket, &name, sizeof(name));
	address->length = sizeof(name);
}

/* A socket, with errno 0 if it is connected, and EINPROGRESS if it will be; -1 with
 * errno, EAGAIN if a Unix socket's backlog is full. */
static int connect_socket(const struct address *address)
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
	cause = connect(fd, (const struct sockaddr *)&address->socket,
			address->length) < 0
			? errno
			: 0;
	if (cause != 0 && cause != EINPROGRESS) {
		close(fd);
		fd = -1;
	}
	errno = cause;
	return fd;
}

void stream_leave(struct stream *stream)
{
	end_tls(stream, false);
	stream_close(stream);
}

void stream_reset(struct stream *stream)
{
	struct linger none = {.l_onoff = 1};

	end_tls(stream, false);
	if (stream->fd >= 0)
		setsockopt(stream->fd, SOL_SOCKET, SO_LINGER, &none,
			   sizeof(none));
}

/* A peer that has vanished, or whose connection a firewall has forgotten, is noticed within half
 * a minute; and the probes keep an idle connection from being forgotten. */
static void keep_alive(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{SOL_SOCKET, SO_KEEPALIVE, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, 10},
		{IPPROTO_TCP, TCP_KEEPINTVL, 5},
		{IPPROTO_TCP, TCP_KEEPCNT, 4},
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (setsockopt(fd, options[i].level, options[i].name,
			       &options[i].value, sizeof(options[i].value)) < 0)
			return; /* a Unix socket, which needs none */
}

static const char *fail(struct stream *stream, const char *why)
{
	stream_close(stream);
	return why;
}

static const char *fail_by(struct stream *stream, int error)
{
	stream->error = error;
	return fail(stream, strerror(error));
}

static void go_up(struct stream *stream)
{
	stream->state = STREAM_UP;
	stream->in_vain = false;
}

static const char *shake_hands(struct stream *stream)
{
	int done = tls_module()->handshake(stream->tls);

	if (done < 0)
		return fail(stream, stream->failure.text);
	if (done > 0)
		go_up(stream);
	return NULL;
}

static const char *start_tls(struct stream *stream)
{
	stream->tls = tls_module()->open(stream->fd, stream->tls_host,
					 &stream->failure);
	if (stream->tls == NULL)
		return fail(stream, stream->failure.text);
	stream->state = STREAM_HANDSHAKE;
	return shake_hands(stream);
}

static const char *connected(struct stream *stream)
{
	keep_alive(stream->fd);
	if (stream->tls_host != NULL)
		return start_tls(stream);
	go_up(stream);
	return NULL;
}

/* An address of a kind that this machine does not have, as IPv6 in most
 * containers: it says nothing of the server. */
static bool is_unusable(int cause)
{
	return cause == EADDRNOTAVAIL || cause == EAFNOSUPPORT ||
	       cause == ENETUNREACH;
}

/* Tries the addresses from stream->address on. cause: why the one before them
 * failed; 0 if there is none. */
static const char *connect_next(struct stream *stream, int cause)
{
	for (; stream->address < stream->addresses.count; stream->address++) {
		stream->fd = connect_socket(
			&stream->addresses.list[stream->address]);
		if (stream->fd >= 0 && errno == 0)
			return connected(stream);
		if (stream->fd >= 0) {
			stream->state = STREAM_CONNECTING;
			stream->retry = deadline_in(ADDRESS_TIME);
			return NULL;
		}
		if (cause == 0 || !is_unusable(errno))
			cause = errno;
		if (cause == EAGAIN) {
			stream->state = STREAM_PAUSING;
			stream->retry = deadline_in(BACKLOG_PAUSE);
			return NULL;
		}
	}
	return fail_by(stream, cause != 0 ? cause : ENOENT);
}

/* No address that is known has led to a connection: the name may have moved. False if it
 * is not to be looked up now. */
static bool look_up_again(struct stream *stream, const struct endpoint *at)
{
	if (endpoint_is_address(at))
		return false;
	stream->lookup = resolve_again(at->host, at->port, &stream->addresses);
	if (stream->lookup == NULL)
		return false;
	stream->state = STREAM_RESOLVING;
	stream->retry = deadline_in(LOOK_UP_TIME);
	return true;
}

const char *stream_open(struct stream *stream, const struct endpoint *at,
			bool tls)
{
	bool in_vain = stream->in_vain;

	stream_close(stream);
	stream->in_vain = true;
	stream->failure = (struct tls_failure){0};
	stream->error = 0;
	stream->tls_host = tls ? at->host : NULL;
	stream->address = 0;
	if (at->path != NULL) {
		unix_address(&stream->addresses.list[0], at->path);
		stream->addresses.count = 1;
	} else if (stream->addresses.count == 0 &&
		   resolve_numeric(at->host, at->port, &stream->addresses) <
			   0) {
		stream->lookup = resolve_start(at->host, at->port);
		if (stream->lookup == NULL)
			return fail_by(stream, errno);
		stream->state = STREAM_RESOLVING;
		return NULL;
	} else if (in_vain && look_up_again(stream, at)) {
		return NULL;
	}
	return connect_next(stream, 0);
}

static bool is_last_address(const struct stream *stream)
{
	return stream->address + 1 >= stream->addresses.count;
}

/* Connected, failed, or (revents is 0) it has had its time. */
static const char *tried(struct stream *stream, short revents)
{
	int cause = ETIMEDOUT;
	socklen_t size = sizeof(cause);

	if (revents != 0 &&
	    getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &cause, &size) < 0)
		cause = errno;
	if (cause == 0)
		return connected(stream);
	if (is_last_address(stream))
		return fail_by(stream, cause);
	stream_close(stream);
	stream->address++;
	return connect_next(stream, cause);
}

/* It is looked up, or has had its time: then, and if the look-up has failed, the addresses
 * that were known are as good as ever. */
static const char *resolved(struct stream *stream)
{
	const char *why = NULL;

	if (resolve_is_done(stream->lookup))
		why = resolve_finish(stream->lookup, &stream->addresses);
	else
		resolve_abandon(stream->lookup);
	stream->lookup = NULL;
	return stream->addresses.count == 0 ? fail(stream, why)
					    : connect_next(stream, 0);
}

const char *stream_step(struct stream *stream, short revents)
{
	bool due = deadline_passed(stream_wake(stream));

	/* revents may be of a descriptor that the stream had before */
	if (stream->state == STREAM_RESOLVING &&
	    (due || resolve_is_done(stream->lookup)))
		return resolved(stream);
	if (stream->state == STREAM_CONNECTING && (revents != 0 || due))
		return tried(stream, revents);
	if (stream->state == STREAM_HANDSHAKE && revents != 0)
		return shake_hands(stream);
	if (stream->state == STREAM_PAUSING && due)
		return connect_next(stream, 0);
	return NULL;
}

int stream_fd(const struct stream *stream)
{
	return stream->state == STREAM_RESOLVING ? resolve_fd(stream->lookup)
						 : stream->fd;
}

short stream_events(const struct stream *stream, bool output)
{
	if (stream->tls != NULL)
		return tls_module()->events(stream->tls, output);
	if (stream->state == STREAM_UP)
		return output ? POLLIN | POLLOUT : POLLIN;
	return stream->state == STREAM_CONNECTING ? POLLOUT : POLLIN;
}

struct deadline stream_wake(const struct stream *stream)
{
	bool waits = stream->state == STREAM_PAUSING ||
		     (stream->state == STREAM_RESOLVING &&
		      stream->addresses.count > 0) ||
		     (stream->state == STREAM_CONNECTING &&
		      !is_last_address(stream));

	return waits ? stream->retry : deadline_never();
}

ssize_t stream_receive(struct stream *stream, void *data, size_t size)
{
	ssize_t got;

	if (stream->tls != NULL)
		return tls_module()->read(stream->tls, data, size);
	do
		got = recv(stream->fd, data, size, 0);
	while (got < 0 && errno == EINTR);
	return got;
}

ssize_t stream_send(struct stream *stream, const void *data, size_t size)
{
	ssize_t sent;

	if (stream->tls != NULL)
		return tls_module()->write(stream->tls, data, size);
	do
		sent = send(stream->fd, data, size, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent;
}

const char *stream_why(struct stream *stream)
{
	if (stream->failure.text[0] != '\0')
		return stream->failure.text;
	stream->error = errno;
	return strerror(errno);
}

size_t stream_backlog(const struct stream *stream, int64_t ms)
{
	struct tcp_info info;
	socklen_t size = sizeof(info);
	int bytes;

	if (getsockopt(stream->fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0 ||
	    info.tcpi_last_ack_recv > ms ||
	    ioctl(stream->fd, SIOCOUTQ, &bytes) < 0)
		return 0;
	return bytes > 0 ? (size_t)bytes : 0;
}

int stream_address(const struct stream *stream, char *text, size_t size)
{
	const struct address *address =
		&stream->addresses.list[stream->address];

	return getnameinfo((const struct sockaddr *)&address->socket,
			   address->length, text, (socklen_t)size, NULL, 0,
			   NI_NUMERICHOST) == 0
		       ? 0
		       : -1;
}

bool stream_is_listening(const char *path)
{
	struct address address;
	int fd;

	unix_address(&address, path);
	fd = connect_socket(&address);
	if (fd >= 0)
		close(fd);
	return fd >= 0 || errno == EAGAIN;
}
