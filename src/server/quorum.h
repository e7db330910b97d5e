/*
 * One command to all servers, replies until the result is certain.
 *
 *	quorum_round(&quorum);                      a new ticket
 *	quorum_ask(&quorum, i, ...);                for each server
 *	quorum_gather(&quorum, until, &judge);
 *
 * The judge is handed each reply (NULL where that server failed or hung up:
 * quorum.servers[i].why says why) and is asked after each whether the result
 * is certain; then nothing more is waited for, so that a dead minority adds no
 * delay. What slower servers still owe is read and thrown away by later calls.
 *
 * A connection that was up and broke before its reply came is opened again
 * once a round and the command sent again: every script is idempotent for its
 * token, so a reply that was lost after the server had executed the request
 * does no harm.
 *
 * Not thread-safe: the thread that holds COMMAND's lock owns the connections.
 */
#ifndef QUORUM_H
#define QUORUM_H

#include "server/last_place.h"
#include "server/mailbox.h"
#include "server/server.h"

struct quorum {
	struct server *servers; /* owned */
	size_t count;
	int64_t permits;         /* how many may hold the lock, 1 unless set */
	struct mailbox *mailbox; /* polled, too, where there is one */
	int64_t timeout;         /* ms, of one round */
	int interrupt;           /* readable: give up at once; -1 for none */
	uint64_t ticket;
	int64_t asked_at; /* ms; when this round began */
	struct {
		bool waiting;  /* asked in this round, no answer yet */
		bool was_up;   /* had a connection when it was asked */
		bool broken;   /* lost one under the request */
		size_t polled; /* its first descriptor */
	} slot[SERVERS_MAX];
};

enum gathered { GATHER_CERTAIN, GATHER_OVER, GATHER_INTERRUPTED };

struct judge {
	void *context;
	void (*reply)(void *context, size_t server, const struct reply *reply);
	bool (*certain)(void *context);
};

/* Takes over the count URLs; a server is asked for its identity where there
 * is more than one or need_identity is set. */
void quorum_init(struct quorum *quorum, struct url *urls, size_t count,
		 int64_t timeout, bool need_identity);
void quorum_release(struct quorum *quorum);

/*
 * The number of votes that makes a lock: M*N/(N+1) rounded down, plus 1, for N
 * permits on M servers: k holders fill k quorums of the M*N places, so N + 1
 * never fit. For N = 1 that is the majority.
 */
size_t quorum_size(const struct quorum *quorum);

/* Whether these two names are one server, by its run_id. */
bool quorum_is_one(const struct quorum *quorum, size_t server, size_t other);

/* Another server that has the same run_id, or i where there is none. */
size_t quorum_find_alias(const struct quorum *quorum, size_t i);

/* What is remembered of these servers, all of them and in this order. */
void quorum_open_hint(const struct quorum *quorum, const char *what,
		      struct hint *hint);

/* Begins a round; its time counts from here. */
void quorum_round(struct quorum *quorum);

/* Never fails: a server that fails at once is handed to the judge. */
void quorum_ask(struct quorum *quorum, size_t server, bool sticky,
		const struct argument *arguments, size_t count);

/* The answer of this one is not waited for; the judge will not see it. */
void quorum_forget(struct quorum *quorum, size_t server);

/* Its connection broke in this round with the request on it: nobody knows
 * whether it was executed, unless it has answered on a new one. */
bool quorum_has_broken(const struct quorum *quorum, size_t server);

bool quorum_is_waiting(const struct quorum *quorum, size_t server);

/*
 * CERTAIN: the judge said so. OVER: the deadline has passed or nobody is left
 * to wait for; those that did not answer have why set. INTERRUPTED: the
 * interrupt descriptor is readable.
 */
enum gathered quorum_gather(struct quorum *quorum, struct deadline until,
			    const struct judge *judge);

/* Reads what servers still send and sends what they still have to get, until
 * the deadline, an interrupt, or the judge (its certain may be NULL) has heard
 * enough: CERTAIN. It hears what answers the last round late. */
enum gathered quorum_idle(struct quorum *quorum, struct deadline until,
			  const struct judge *judge);

/* Whether there is nothing for quorum_idle to do. */
bool quorum_is_idle(const struct quorum *quorum);

/* Whether what was sent may be lost with the connection it was sent on, should
 * that be closed now (linger.h): where the answer to a sticky request is still
 * to come, and over TLS any. */
bool quorum_may_lose(const struct quorum *quorum);

/* Waits for those, until the deadline: at least what has come is read. */
void quorum_drain(struct quorum *quorum, struct deadline until);

/* Another process goes on with the connections: they are ours no more. */
void quorum_leave(struct quorum *quorum);

/* Cuts the connection of one that has not answered, and what was sent with it:
 * for one that is known to answer on another connection. */
void quorum_abandon(struct quorum *quorum, size_t server);

/* The next round uses fresh connections to those that have not answered. */
void quorum_renew_silent(struct quorum *quorum);

#endif
