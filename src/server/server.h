/*
 * One connection to one server: hiredis parses what comes, the bytes are moved
 * here without ever blocking.
 *
 * server_ask queues a command and connects where needed; nothing moves until
 * server_pump is called with what poll(2) said of what server_prepare wants.
 * The whole first exchange (login, name, identity, command) leaves in one
 * write.
 *
 * Why a reply is never taken for another's: Redis answers in order, so the
 * connection keeps a queue of what it is owed, and a reply counts for the
 * ticket that stands first in it. A late reply is thus read and handed over
 * under its old ticket. A reply that nobody is owed, a malformed one, or one
 * that is too large ends the connection.
 *
 * Why an acquire and its release are never seen in reverse: both use this
 * connection, which is kept while an answer is due (server_renew tells when it
 * may be replaced). What was never sent can be taken back (server_withdraw).
 *
 * If discovery.h looks for a server, the one that was found may answer that it
 * is not the right one, or no longer. Then it has not executed the command,
 * which is sent again to the server that is found next, a few times; while
 * KEY's slot is on its way to another node, every few ms.
 *
 * hiredis is included by server.c and reply.c only. Not thread-safe:
 * one thread at a time.
 */
#ifndef SERVER_H
#define SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "server/cause.h"
#include "base/deadline.h"
#include "server/identity.h"
#include "base/output.h"
#include "server/resp.h"
#include "net/stream.h"
#include "net/url.h"

#define SERVERS_MAX 32
#define WHY_SIZE 512 /* bytes of an explanation */
#define OWED_MAX 32  /* replies a connection may owe before it is dropped */

enum owed_kind { OWED_LOGIN, OWED_NAME, OWED_INFO, OWED_CONFIG, OWED_ASKED };

struct owed {
	enum owed_kind kind;
	bool sticky;
	uint64_t ticket;
	int64_t since; /* ms; when it was sent, or queued until there is a
			* connection */
};

struct discovery;

struct server {
	struct url url;              /* owned */
	struct discovery *discovery; /* owned; NULL: the URL says where it is */
	bool guest;    /* answers count although the login was refused */
	bool identify; /* ask for struct identity */
	bool listens;  /* hands over messages, with ticket 0 */
	struct reply_bounds bounds; /* bounds.wide: takes larger replies */
	struct stream stream;
	struct redisReader *reader;
	size_t unparsed; /* bytes since the last whole reply */
	int64_t heard;   /* ms; when the last byte came; 0: none has on
			  * this connection */
	struct buffer output;
	size_t sent;        /* of output */
	struct buffer last; /* the command asked last, formatted */
	struct owed last_owed;
	struct deadline again; /* when that is asked again, if at all */
	unsigned moves;        /* how often it was elsewhere meanwhile */
	struct owed owed[OWED_MAX];
	unsigned owed_first, owed_count;
	int64_t distance; /* ms that it takes to answer, of late; 0: it has not
			   * answered yet */
	bool login_failed;
	bool complained; /* the last reply refused the greeting */
	struct identity identity;
	char why[WHY_SIZE]; /* the last failure, without the name */
	enum cause cause;   /* of that */
};

/* A reply to what was asked under ticket. reply lives for the call only. */
typedef void server_reply(void *context, struct server *server, uint64_t ticket,
			  const struct reply *reply);

/* Takes over *url. identify: ask who the server is when connecting. */
void server_init(struct server *server, struct url *url, bool identify);
void server_release(struct server *server);

/* Queues a command. sticky: its reply must come before the connection may be
 * replaced. -1 where the server failed at once (see why). */
int server_ask(struct server *server, uint64_t ticket, bool sticky,
	       const struct argument *arguments, size_t count);

/* Queues a command of the first exchange (greeting.h), with what is owed for
 * it. */
void server_put(struct server *server, struct owed owed,
		const struct argument *arguments, size_t count);

/* Asks the last command again on a fresh connection, under its old ticket. */
int server_ask_again(struct server *server);

/* A server that is neither is being connected to. */
static inline bool server_is_up(const struct server *server)
{
	return server->stream.state == STREAM_UP;
}

bool server_is_down(const struct server *server);

/* It refused the login, or has not said who it is: no answer of it counts, and
 * why tells the cause. */
static inline bool server_is_barred(const struct server *server)
{
	return (server->login_failed && !server->guest) ||
	       (server->identify && !server->identity.known);
}

/* ... and has said so: why stays, however often it is asked. */
static inline bool server_has_refused(const struct server *server)
{
	return server_is_up(server) && server_is_barred(server) &&
	       server->why[0] != '\0';
}

static inline int server_fd(const struct server *server)
{
	return stream_fd(&server->stream);
}

#define POLLED_MAX (1 + SEEDS_MAX) /* descriptors of one server */

/* Fills in what is to be polled for it, and makes *until earlier where need be;
 * how many there are is always the same for a server. */
size_t server_prepare(const struct server *server, struct pollfd *polled,
		      struct deadline *until);

/* Moves bytes, with what poll(2) said of these; -1 where the connection failed
 * and is closed (see why). */
int server_pump(struct server *server, const struct pollfd *polled,
		server_reply *reply, void *context);

/* What the next requests are about: where a cluster is asked for it. */
void server_aim(struct server *server, struct argument key);

/* What comes next is for this node of the cluster. */
void server_visit(struct server *server, const struct url *place);

/* Closes the connection; what was not sent yet never is. */
void server_cut(struct server *server);

/* Takes back what was queued but not sent, as nothing is connected yet. */
void server_withdraw(struct server *server);

/* Whether the reply to a sticky command is still to come. */
bool server_owes_sticky(const struct server *server);

/* Closes the connection unless it owes a sticky reply; the next server_ask
 * opens a fresh one. */
void server_renew(struct server *server);

/* Says why it does not count. */
void server_blame(struct server *server, enum cause cause, const char *why);

/* ... as another connection to it does not, or did not before. */
void server_blame_as(struct server *server, const struct server *other);

/* What to do about the last failure, or "". */
const char *server_remedy(const struct server *server);

/* Says why a server has not answered in this time. If bytes were moving in the
 * second half of it, the link is slow, and the server is up. */
void server_blame_silence(struct server *server, int64_t waited_ms);

#endif
