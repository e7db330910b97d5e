/*
 * The room of the network: what leaves this process, and what starts the
 * private server. It knows bytes and addresses, not Redis. server/ comes in
 * by this header and local.h; settings/ by url.h, a value; cmd/ by local.h and tls_load.h.
 * Sockets, OpenSSL and dlopen(3) are called in this room only.
 *
 * A stream of bytes to a server: from its endpoint through name, addresses,
 * connecting and (rediss://) the TLS handshake until it is up. Nothing
 * blocks; sockets are close-on-exec from birth and never raise SIGPIPE. For
 * rediss:// tls_load comes before all else.
 *
 *	stream_open(&stream, &endpoint, tls)	a Unix socket may be up now
 *	... poll stream_fd for stream_events, until stream_wake ...
 *	stream_step(&stream, revents)     until state is STREAM_UP
 *	stream_send, stream_receive
 *
 * If a host has several addresses, each gets 250 ms while others are left (RFC
 * 8305's Connection Attempt Delay), so that a dead one does not use up the
 * time. The addresses found are kept for later connections, which need no resolver as
 * long as one of them leads to a connection. If none did at the last try, the name may have
 * moved: it is looked up again, at most once a second (resolve.h). The old addresses are
 * tried if that takes 250 ms or finds nothing, so a resolver that fails costs no lock.
 *
 * Why a name that moves breaks no lock: to a process that goes on, the new server is the
 * old one, restarted with other data. A new connection counts for nothing before the server
 * has said who it is and how long it has been up (conn.h), so a young one is in quarantine
 * (trust.h), and a second name of a server in the list is found (alias.h). A renewal that
 * finds KEY gone has no vote (extend.c). TLS proves the name, at whatever address. No
 * process can know whether the old server lives on, with leases that the new one does not
 * know: redlock-servers(7) tells those who move a name to end it first. If they do not, the
 * processes that start later go to the new server anyway.
 */
#ifndef NET_STREAM_H
#define NET_STREAM_H

#include <stddef.h>
#include <sys/types.h>

#include "base/deadline.h"
#include "net/endpoint.h"
#include "net/resolve.h"
#include "net/tls.h"

enum stream_state {
	STREAM_DOWN,
	STREAM_RESOLVING,
	STREAM_CONNECTING,
	STREAM_PAUSING, /* a Unix socket's backlog is full: again soon */
	STREAM_HANDSHAKE,
	STREAM_UP,
};

struct stream {
	enum stream_state state;
	int fd; /* the socket, -1 if there is none */
	uint16_t port;
	struct resolve *lookup;
	struct addresses addresses;
	size_t address; /* the one that is being tried */
	struct deadline retry;
	bool in_vain;         /* the last try has not led to a connection yet */
	const char *tls_host; /* that TLS is to prove; NULL: no TLS */
	struct tls *tls;
	struct tls_failure failure; /* of the last connection */
	int error;                  /* errno, if it failed by that; else 0 */
};

void stream_init(struct stream *stream);
void stream_close(struct stream *stream);

/* Drops what was not sent yet, by us or by the kernel: stream_close follows. */
void stream_reset(struct stream *stream);

/* Closes it here, and says nothing to the server: another process has it,
 * too. */
void stream_leave(struct stream *stream);

/* NULL, or why it failed, which lives until it is opened again; then it is
 * DOWN. The endpoint must outlive the connection. */
const char *stream_open(struct stream *stream, const struct endpoint *at,
			bool tls);
const char *stream_step(struct stream *stream, short revents);

int stream_fd(const struct stream *stream);

/* output: there is something to send once it is UP. */
short stream_events(const struct stream *stream, bool output);
struct deadline stream_wake(const struct stream *stream);

/* As recv(2), with size at least TLS_RECORD, and send(2); -1 with EAGAIN if it
 * would block. Both are to be tried when poll(2) says anything. */
ssize_t stream_receive(struct stream *stream, void *data, size_t size);
ssize_t stream_send(struct stream *stream, const void *data, size_t size);

/* Why one of them has just failed. */
const char *stream_why(struct stream *stream);

/* The bytes that the peer has not received yet, if it has acknowledged others
 * during the last ms; otherwise 0, and 0 for a Unix socket. */
size_t stream_backlog(const struct stream *stream, int64_t ms);

/* The address it is connected to, as text; 0 or -1. */
int stream_address(const struct stream *stream, char *text, size_t size);

/* Whether a server listens on a Unix socket, be it with a full backlog. */
bool stream_is_listening(const char *path);

#endif
