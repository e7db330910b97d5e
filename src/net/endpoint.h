/*
 * Where a server listens: a host and a port, as users write them and as
 * servers name each other, or the path of a Unix socket.
 */
#ifndef NET_ENDPOINT_H
#define NET_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

#define ENDPOINT_TEXT 272 /* bytes that endpoint_format needs */

struct endpoint {
	char *host; /* IPv6 without its brackets; NULL for a Unix socket */
	uint16_t port;
	char *path; /* of a Unix socket, or NULL */
};

/* Takes "host", "host:port", "[v6]" or "[v6]:port" over to endpoint (a v6 may
 * have a zone: fe80::1%eth0, or fe80::1%25eth0 as RFC 6874 has it). If none is
 * named the port stays; text is changed. NULL, or what is wrong. */
const char *endpoint_parse(struct endpoint *endpoint, char *text);

/* Whether it is letters, digits and these signs. NULL, or what is wrong. */
const char *endpoint_check_host(const char *text, const char *signs);

/* Makes endpoint, which is released first, a host and port that a server has
 * named. -1 if they are unfit for that: then it is zeroed. */
int endpoint_set(struct endpoint *endpoint, const char *host, const char *port);

/* The same of "host:port", an IPv6 host without brackets. A server that has not
 * been told its own address leaves the host out: then it is this one. */
int endpoint_read(struct endpoint *endpoint, const char *text,
		  const char *host);

/* A host and port as one text, which endpoint_parse takes. */
const char *endpoint_format(char text[ENDPOINT_TEXT],
			    const struct endpoint *endpoint);

/* Whether they are the same host and port by their text. */
bool endpoint_is_same(const struct endpoint *one, const struct endpoint *other);

/* Whether its host is an IP address, and no name. */
bool endpoint_is_address(const struct endpoint *endpoint);

/* A copy of its own; without memory the process ends. */
struct endpoint endpoint_copy(const struct endpoint *endpoint);
void endpoint_release(struct endpoint *endpoint);

#endif
