/*
 * The room of the servers: connections to them, how they are found, why one
 * does not count, and what is asked of all of them at once. It knows nothing of
 * locks. Come in by this header, and by mailbox.h to listen; lock/ and what is
 * above it may. From below: conn.h (one connection), discovery.h (where a
 * server is), server.h (both), and this one. hiredis is called in this room
 * only.
 *
 * One command to all servers, replies until the result is certain:
 *
 *	quorum_round(&quorum);                      a new ticket
 *	quorum_ask(&quorum, i, ...);                for each server
 *	quorum_gather(&quorum, wait, &handler);
 *
 * The handler gets each reply (NULL if that server failed or hung up:
 * quorum.servers[i].conn.refusal says why). After each reply it is asked
 * whether the result is certain. If so, the round ends, so a dead minority adds
 * no delay. What slower servers still owe is read and thrown away by later
 * calls.
 *
 * A connection that was up and broke before its reply came is opened again
 * once a round and the command sent again: every script is idempotent for its
 * token, so a reply that was lost after the server had executed the request
 * does no harm.
 *
 * Not thread-safe: the thread that holds COMMAND's lock owns the connections.
 */
#ifndef SERVER_QUORUM_H
#define SERVER_QUORUM_H

#include "server/last_place.h"
#include "server/mailbox.h"
#include "server/server.h"

struct quorum {
	struct server *servers; /* owned */
	size_t count;
	struct mailbox *mailbox; /* polled, too; or NULL */
	int64_t timeout;         /* ms, of one round */
	int64_t replicas;        /* of each server that must have a promise */
	uint64_t ticket;
	int64_t asked_at; /* ms; when this round began */
	struct {
		bool waiting;  /* asked in this round, no answer yet */
		bool was_up;   /* had a connection when it was asked */
		bool broken;   /* lost one under the request */
		size_t polled; /* its first descriptor */
	} per_server[SERVERS_MAX];
};

enum gathered { GATHER_CERTAIN, GATHER_OVER, GATHER_INTERRUPTED };

struct reply_handler {
	void *context;
	void (*reply)(void *context, size_t server, const struct reply *reply);
	bool (*certain)(void *context); /* NULL: all answers are waited for */
};

/* Takes over the count URLs; a server is asked for its identity if there is
 * more than one, or need_age is set: then it matters whether it is young, and
 * has read its append-only file. */
void quorum_init(struct quorum *quorum, struct url *urls, size_t count,
		 int64_t timeout, bool need_age);
void quorum_release(struct quorum *quorum);

/* The seeds of a URL as servers, to be asked as themselves; their identity does
 * not matter. */
void quorum_init_seeds(struct quorum *quorum, const struct url *url,
		       int64_t timeout);

/* A server's promise counts only when this number of its replicas have it, within
 * half the time of a round: the other half is for the way there and back (conn.h). */
void quorum_want_replicas(struct quorum *quorum, int64_t replicas);

/* The number of votes that makes a lock: a majority. */
size_t quorum_size(const struct quorum *quorum);

/* Whether these two names are one server, by its run_id. */
bool quorum_is_one(const struct quorum *quorum, size_t server, size_t other);

/* Another server that has the same run_id, or i if there is none. */
size_t quorum_find_alias(const struct quorum *quorum, size_t i);

/* What is remembered of these servers, all of them and in this order. */
void quorum_last_place(const struct quorum *quorum, const char *what,
		       struct last_place *last);

/* What is asked next is about another KEY: see server_turn. */
void quorum_turn(struct quorum *quorum);

/* Begins a round; its time counts from here. */
void quorum_round(struct quorum *quorum);

/* Asked in this way (bits of enum asking). Never fails: a server that fails at once
 * is handed to the handler. */
void quorum_ask(struct quorum *quorum, size_t server, unsigned how,
		const struct argument *arguments, size_t count);

/* The answer of this one is not waited for; the handler will not see it. */
void quorum_forget(struct quorum *quorum, size_t server);

/* Its connection broke in this round after the request was sent, or it would not say
 * then who it is: whether the request was executed is unknown, unless it has answered
 * since. */
bool quorum_has_broken(const struct quorum *quorum, size_t server);

bool quorum_is_waiting(const struct quorum *quorum, size_t server);

/*
 * CERTAIN: the handler said so. OVER: the deadline has passed, or no answer is
 * left to wait for. If the deadline is a whole round away, a server that lacks a
 * script has as long once more. Those that did not answer have a refusal.
 * INTERRUPTED: the wait was interrupted.
 */
enum gathered quorum_gather(struct quorum *quorum, struct wait wait,
			    const struct reply_handler *handler);

/* Reads what servers still send and sends what they still have to get, until
 * the deadline, an interrupt, or the handler has heard enough: CERTAIN. It gets
 * the late answers to the last round. */
enum gathered quorum_idle(struct quorum *quorum, struct wait wait,
			  const struct reply_handler *handler);

/* Whether there is nothing for quorum_idle to do. */
bool quorum_is_idle(const struct quorum *quorum);

/* Whether closing the connections now might lose what was sent (drain.h): if
 * the answer to a sticky request is still to come, or to any request before the last,
 * or to one that may have to be sent whole (server.h), and over TLS any answer; and if
 * a request that is to last (server.h) has no connection yet, or was refused for a
 * moment. */
bool quorum_may_lose(const struct quorum *quorum);

/* Waits for those answers, up to time ms, and always reads what has come. After half
 * of the time it sends whole what the server may have no script for. If the time is not
 * 0, it waits for the time of a round more for servers that have answered before, and for
 * those that are not connected yet. */
void quorum_drain(struct quorum *quorum, int64_t time);

/* Closes connections on which nothing can be lost; unconnected: and those that are not up. */
void quorum_close_done(struct quorum *quorum, bool unconnected);

/* Another process goes on with the connections: they are no longer ours. */
void quorum_leave(struct quorum *quorum);

/* Cuts the connection of a server that has not answered, and takes back what
 * was sent with it: the server is known to answer on another connection. */
void quorum_abandon(struct quorum *quorum, size_t server);

/* The next round uses fresh connections to those that have not answered. False if none was
 * cut: each was unconnected, or had to be kept (server_renew). */
bool quorum_renew_silent(struct quorum *quorum);

/* ... and to those that have not answered for so long (ms) that they may never do, even
 * if what they were asked may be executed yet. */
void quorum_renew_hung(struct quorum *quorum, int64_t time);

/* Whether any server is connected already. */
bool quorum_is_connected(const struct quorum *quorum);

#endif
