/*
 * One connection to one server: hiredis parses what comes, the bytes are moved
 * here without ever blocking.
 *
 *	conn_open(&conn, &endpoint)
 *	conn_ask(&conn, owed, &request)
 *	... conn_prepare, poll(2), conn_pump ...
 *	conn_close(&conn)
 *
 * Nothing moves until conn_pump is called with what poll(2) said about what
 * conn_prepare wants. conn_open queues the greeting: login, name, and the
 * request for its identity. It leaves in one write with the first request.
 *
 * Why a reply is never taken for another request's: Redis answers in order, so
 * the connection keeps a queue of what it is owed, and a reply counts for the
 * ticket that stands first in it. A late reply is thus read and handed over
 * under its old ticket. A reply that nobody is owed, or that is malformed
 * or too large, ends the connection.
 *
 * If the identity is asked for, replies to requests are handed over only when it is
 * complete. A server that refuses to tell it, as one does that executes a client's script
 * (BUSY), is asked again before the next request: no answer would count otherwise, for as
 * long as there is this connection. A young server that claims to have read its
 * append-only file when it started is asked for the user that has read it (identity.h); it
 * was not known before that this question is needed, so its answer comes after the first
 * replies. These are withheld until then.
 *
 * A server that a cluster's URL names may have been started without cluster-enabled since.
 * It would have every KEY, and grant what others hold at the nodes of the cluster. So
 * INFO is asked for, if only for that, of every server that such a URL leads to; if it
 * says that the server is in no cluster the connection ends before an answer is read.
 *
 * Replicas. If `replicas` is set, a replicated request is followed by WAIT in the same
 * write. If its answer is a promise (an array that begins with 1, as a script of ours
 * answers when it has granted or kept something), it is handed over only when that
 * many have acknowledged what it wrote; otherwise as a failure. Other answers are
 * handed over at once. Why WAIT proves it: WAIT is about what its own connection has
 * written, and our scripts write whenever they promise something, even if they are
 * executed for the second time. Whatever was written before that, by whomever, comes
 * first in what a replica receives. A connection on which nothing was written would be
 * told at once that all is well, so a promise by message (queue.h) is never believed
 * without a request of our own that writes. While WAIT lasts the server reads nothing
 * more from the connection, and what follows is executed late: so WAIT has a bound,
 * which is never 0 (for ever). If the connection is closed in this time, what follows
 * is lost: so WAIT is sticky if its request is, and drain.h waits for each.
 *
 * hiredis is included by conn.c and reply.c only. Not thread-safe: one thread
 * at a time.
 */
#ifndef SERVER_CONN_H
#define SERVER_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/deadline.h"
#include "net/stream.h"
#include "net/url.h"
#include "server/identity.h"
#include "server/refusal.h"

#define ROUND_TRIPS 3 /* that the distance is taken from */
#define OWED_MAX 32   /* replies a connection may owe before it is dropped */

enum owed_kind {
	OWED_LOGIN,
	OWED_NAME,
	OWED_INFO,
	OWED_MODE,
	OWED_CONFIG,
	OWED_USER,
	OWED_ASKED,
	OWED_REPLICAS
};

struct owed {
	enum owed_kind kind;
	bool sticky;     /* the connection must stay until this has come */
	bool replicated; /* it counts when replicas have it; or asks them */
	uint64_t ticket;
	uint64_t number; /* the caller's */
	int64_t since;   /* ms; when it was sent, or queued until there is a
			  * connection */
};

/* A reply that is handed over when the identity is complete. */
struct withheld {
	struct redisReply *reply; /* owned */
	struct owed owed;
};

struct conn {
	const struct url *url;        /* whose login and TLS it uses */
	const struct endpoint *found; /* is named in refusals, as the URL does
				       * not say it; or NULL */
	bool login_optional; /* answers count even if the login was refused */
	bool identify;       /* ask for struct identity */
	bool doubts; /* ... and, if it is doubtful, whether its file was read */
	bool in_cluster;      /* a server that says it is in no cluster does not
			  * count: neither its answers nor its word for where
			  * KEY is */
	bool listens;         /* hands over messages, as owed to nobody */
	int64_t replicas;     /* that replicated requests need; 0: none */
	int64_t replica_time; /* ms that these have, more than 0 */
	struct reply_bounds bounds; /* bounds.wide: takes larger replies */
	struct stream stream;
	struct redisReader *reader;
	size_t unparsed; /* bytes since the last whole reply */
	int64_t heard;   /* ms; when the last byte came; 0: none has on this
			* connection */
	struct buffer output;
	size_t sent; /* of output */
	struct owed owed[OWED_MAX];
	unsigned owed_first, owed_count;
	struct withheld withheld[OWED_MAX];
	unsigned withheld_count;
	bool withholds; /* replies, until OWED_USER has come */
	struct withheld
		promise;  /* until OWED_REPLICAS has come; or without reply */
	int64_t distance; /* ms that it takes to answer: the shortest of the last
			   * round trips; 0: it has not answered yet */
	int64_t round_trips[ROUND_TRIPS]; /* ms, the last one first; 0: none */
	int64_t measured;                 /* ms; when the last one ended */
	bool login_failed;
	bool unidentified;    /* it has refused to say who it is, or for a
			       * moment what it keeps */
	bool complained;      /* the last reply refused the greeting */
	const char *executed; /* the SHA1 of a script that was, or NULL */
	int64_t executed_at;  /* ms */
	struct identity identity;
	struct refusal refusal; /* the last */
};

/* A reply to what was asked so; both live for the call only. -1 makes conn_pump
 * return -1. */
typedef int conn_reply(void *context, const struct owed *owed,
		       const struct reply *reply);

/* conn is zeroed. The URL must outlive it. */
void conn_init(struct conn *conn, const struct url *url, bool identify,
	       bool doubts);
void conn_release(struct conn *conn);

/* -1 if it failed at once (see refusal). The endpoint must outlive the
 * connection. */
int conn_open(struct conn *conn, const struct endpoint *at);

/* What was not sent yet is dropped. */
void conn_close(struct conn *conn);

/* Queues a request, or sends it if the connection is up. owed's kind and since
 * are set here. -1 if the connection failed and is closed. */
int conn_ask(struct conn *conn, struct owed owed, const struct buffer *request);

/* Fills in what to poll and makes *until earlier if need be. reads: see
 * conn_pump. */
void conn_prepare(const struct conn *conn, bool reads, struct pollfd *polled,
		  struct deadline *until);

/* Moves bytes, with what poll(2) said; -1 if the connection failed and is
 * closed, or reply said so. If reply is NULL what the server says is not read
 * yet. */
int conn_pump(struct conn *conn, short revents, conn_reply *reply,
	      void *context);

bool conn_owes_sticky(const struct conn *conn);

/* Whether it owes answers to more than one request, without those that are sticky and
 * not the last: they may be granted, and are released. */
bool conn_owes_questions(const struct conn *conn);

/* Whether the answer to this one is still to be handed over. */
bool conn_owes(const struct conn *conn, uint64_t number);

/* The time since what it owes first was sent, in ms; 0 if it owes nothing. */
int64_t conn_waited(const struct conn *conn);

/* Whether the server is in a WAIT, or will be: what follows is not read yet. */
bool conn_owes_replicas(const struct conn *conn);

/* Why the server does not count. Returns -1. */
int conn_blame(struct conn *conn, enum cause cause, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same for one that has not answered in this time. If bytes were moving in
 * the second half of it the link is slow, and the server is up. */
void conn_blame_silence(struct conn *conn, int64_t waited_ms);

static inline bool conn_is_up(const struct conn *conn)
{
	return conn->stream.state == STREAM_UP;
}

/* The login was refused, for as long as there is this connection. */
static inline bool conn_is_locked_out(const struct conn *conn)
{
	return conn->login_failed && !conn->login_optional;
}

/* ... or its identity is unknown: none of its answers counts. */
static inline bool conn_is_barred(const struct conn *conn)
{
	return conn_is_locked_out(conn) ||
	       (conn->identify && !conn->identity.known);
}

/* ... and the server has said so: the refusal stays, whatever is asked. */
static inline bool conn_has_refused(const struct conn *conn)
{
	return conn_is_up(conn) && conn_is_barred(conn) &&
	       conn->refusal.text[0] != '\0';
}

#endif
