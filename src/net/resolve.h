/*
 * Names to addresses with a bound: getaddrinfo(3) can take 20 s if a
 * resolver is dead, so a name is looked up by a thread of its own that can be
 * abandoned. Numeric addresses need neither thread nor look-up.
 *
 *	struct resolve *lookup = resolve_start(host, port);
 *	... poll resolve_fd(lookup) for POLLIN ...
 *	why = resolve_finish(lookup, &addresses);
 *
 * The thread blocks all signals. A look-up that is abandoned goes on, and frees itself.
 *
 * What was found last is kept for the whole process. resolve_again is for a name whose
 * addresses lead nowhere. However many connections ask it, the name is looked up by one
 * thread at a time, and at most once a second.
 */
#ifndef NET_RESOLVE_H
#define NET_RESOLVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDRESSES_MAX 16 /* of a name; more are passed over */

struct address {
	struct sockaddr_storage socket;
	socklen_t length;
};

struct addresses {
	struct address list[ADDRESSES_MAX];
	size_t count;
};

struct resolve;

/* Numeric hosts only: 0 with *addresses filled, or -1 if host is a name. */
int resolve_numeric(const char *host, uint16_t port,
		    struct addresses *addresses);

/* NULL with errno if no thread could be started. */
struct resolve *resolve_start(const char *host, uint16_t port);

/* Makes *addresses those that were found last, and looks the name up again. NULL if it is
 * not to be looked up now. */
struct resolve *resolve_again(const char *host, uint16_t port,
			      struct addresses *addresses);

int resolve_fd(const struct resolve *resolve);

bool resolve_is_done(struct resolve *resolve);

/* Once it is done. NULL, or why there is no address
 * (static text): then *addresses are as before. Frees resolve. */
const char *resolve_finish(struct resolve *resolve,
			   struct addresses *addresses);

void resolve_abandon(struct resolve *resolve);

#endif
