/*
 * Finds a server whose address only others know: the master that Sentinels
 * watch, or the node of a cluster that has KEY's hash slot. The URL names those
 * others, its seeds.
 *
 *	discovery_aim(discovery, key);
 *	discovery_start(discovery);
 *	... discovery_prepare, poll(2), discovery_pump, until it stops seeking
 *
 * All seeds are asked at once, and the address is what a majority of them
 * says. A dead minority costs no time, and a minority that is cut off together
 * with an old master misleads no client. (Redis' guidelines for clients take
 * the first Sentinel that answers; that is not enough for a lock.) A seed of a
 * cluster that has the hash slot itself goes by its host as the URL names it,
 * and by its address.
 *
 * Over TLS (rediss) a name counts before an address, as certificates are for
 * names: nodes are asked for the names that they announce, too (CLUSTER NODES),
 * and an address stands for the name that belongs to it. Every connection, to
 * seeds and servers, is TLS and proves the name that it was opened for (tls.h);
 * the login follows only then. So Sentinels or nodes that lie, be they all of
 * them, can lead to no server without a certificate for its name by an
 * authority that we trust, and never to a connection without TLS. No seed is
 * told a login that is for others: Sentinels with a login of their own get that
 * only, and nobody else gets it (url_seed).
 *
 * The last address, of this process or of an earlier one (last_place.h), is
 * known before they answer, so the server is asked there at the same time. Why
 * that is safe: it is only a guess. What that server says is not read before
 * the seeds have confirmed the address, and they were asked after the guess
 * was made. If they name another address the request is sent there anew, and
 * what the wrong server granted ends with its lease. So what counts is as new
 * as an answer that was waited for. If the seeds fail, what the guess may have granted
 * is given back there.
 *
 * A connection that stays is checked again: with each request, but at most
 * once a second, the seeds are asked as well. The request does not wait for
 * them, but a majority that names another address ends the connection. So a
 * holder can follow a stale master for one lease at most: at the next renewal
 * the new master either confirms the lock, or the lock is lost.
 *
 * A name that the Sentinels do not know, and a server that is not in cluster mode, is a
 * wrong URL, which no waiting will change. But if the same seeds have named a server
 * before, in this process, it is waited through: a master is pointed elsewhere by SENTINEL
 * REMOVE and then MONITOR, and a node may come back with its cluster.
 *
 * What may be a grant (the answer to a sticky request, server.h), an answer that
 * took more than a second, and a message, is read only if the seeds
 * have confirmed the address in the last second, or do so now: a master that hung
 * may go on after it was replaced, and grant what it was asked before (server.c). If they
 * do not, it stays unread until they are asked again, a second later.
 *
 * A master that was replaced may go on for a while, and then lose what was
 * written to it; a replica may lack the last writes. Fences are for that (see
 * redlock-protocol(7)).
 *
 * https://redis.io/docs/latest/develop/reference/sentinel-clients/ and
 * https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/
 */
#ifndef SERVER_DISCOVERY_H
#define SERVER_DISCOVERY_H

#include "server/conn.h"
#include "server/last_place.h"

#define SEED_NAMES 3

struct seed {
	struct url url;
	struct conn conn;
	bool waiting;
	/* of the address that it says */
	struct endpoint names[SEED_NAMES];
	char *nodes; /* owned; its CLUSTER NODES, or NULL */
};

struct discovery {
	const struct url *url; /* the server's */
	struct seed *seeds;    /* owned, as many as the URL's */
	bool seeking;          /* no answer counts before the seeds' */
	bool checking; /* the address in use; their silence says nothing */
	bool pinned;   /* discovery_pin: it is not asked for */
	struct deadline next_check;
	int64_t confirmed; /* ms; when a majority last named the address */
	uint64_t ticket;
	struct buffer key; /* owned; its hash slot is looked for */
	/* owned; what the seeds are asked */
	struct buffer request, nodes_request;
	/* the last that was known; without host if there is none */
	struct endpoint endpoint;
	unsigned hash_slot;
	struct last_place last_place;
};

enum discovered {
	DISCOVERY_UNDECIDED, /* or nothing that a check would change */
	DISCOVERY_CONFIRMED, /* endpoint is right */
	DISCOVERY_CHANGED,   /* endpoint is right now, and was not */
	DISCOVERY_FAILED,    /* see discovery_explain */
};

/* NULL for a URL that has the address itself. The URL must outlive
 * it. */
struct discovery *discovery_new(const struct url *url);
void discovery_free(struct discovery *discovery);

/* What the next requests are about: a cluster is asked where it is. */
void discovery_aim(struct discovery *discovery, struct argument key);

/* The address is this one, whatever the seeds would say. */
void discovery_pin(struct discovery *discovery,
		   const struct endpoint *endpoint);

/* Asks the seeds, unless they have yet to answer or the address is pinned. */
void discovery_start(struct discovery *discovery);

/* Asks them whether the address is still right. */
void discovery_check(struct discovery *discovery);
void discovery_stop(struct discovery *discovery);

static inline bool discovery_is_busy(const struct discovery *discovery)
{
	return discovery->seeking || discovery->checking;
}

/* The address was wrong: it is not guessed again. */
void discovery_forget(struct discovery *discovery);

/* As conn_prepare and conn_pump, for each seed. */
size_t discovery_prepare(struct discovery *discovery, struct pollfd *polled,
			 struct deadline *until);
enum discovered discovery_pump(struct discovery *discovery,
			       const struct pollfd *polled);

/* Why there is no address, and what each seed said. One whose answer could change
 * nothing any more was not waited for. */
void discovery_explain(const struct discovery *discovery,
		       struct refusal *refusal);

/* What an error reply says of the address. */
enum moved {
	MOVED_NOT,
	MOVED_AWAY, /* this is not, or no longer, the one looked for */
	MOVING,     /* a hash slot is on its way to another node: soon */
};

enum moved discovery_sort(enum cause cause);

#endif
