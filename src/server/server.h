/*
 * A server, at its URL or at the address that discovery.h finds: one connection
 * to it, and the command that was asked last, which follows the server when it
 * moves.
 *
 * server_ask queues a command and connects if need be; nothing moves until
 * server_pump is called with what poll(2) said about what server_prepare wants.
 *
 * Why an acquire and its release are never seen in reverse: both use this
 * connection, which is kept while an answer is due (server_renew tells when it
 * may be replaced). What was never sent can be taken back (server_withdraw).
 *
 * If discovery.h looks for a server, the one that was found may answer that it
 * is not the right one, or no longer. Then it has not executed the command. It
 * is sent again to the server that is found next, a few times; while KEY's hash
 * slot is on its way to another node, every few ms.
 *
 * So is a command that a server refuses as it executes a client's script, or loads its
 * data, if the caller is patient: nothing was changed. If only the request for its
 * identity was refused (conn.h), the command may have been executed, and is executed again:
 * that does no harm either (quorum.h). The caller's round bounds how long this goes on;
 * until then it waits as for a slow server.
 *
 * A script is not sent, but named by its SHA1 (EVALSHA), if the caller knows that. The
 * server may not know the script, as it was started since, is another one, or has
 * forgotten it; or it has no EVALSHA for our user. It says so, and has executed
 * nothing. So the command is sent again whole (EVAL), at once and on the same
 * connection; if there is no EVALSHA, so is every later one. This is as safe as sending
 * it whole at first: a refused command has changed nothing, so nothing was executed
 * before the whole one. It is sent once for each refusal, and a
 * refusal of the whole one is handed over like any other. If the connection breaks,
 * whatever was lost with it, that is a command which is asked again (quorum.h).
 *
 * What was asked after such a command has been executed before it, or was refused,
 * too. So both are sent again, in order, and only the answers to these count: a raise
 * must find what the acquire before it was granted. But a release makes the acquire
 * before it needless: that is not sent again, so it cannot come after the release.
 * server_send_whole does the same without waiting for the answer, but for an acquire
 * (drain.h). A script that was executed on the same connection in the last second is taken
 * to be still known.
 *
 * Not thread-safe: one thread at a time.
 */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bounds.h"
#include "base/buffer.h"
#include "base/deadline.h"
#include "net/url.h"
#include "server/conn.h"
#include "server/reply.h"

struct discovery;

/* A command, formatted. */
struct request {
	struct buffer whole;
	struct buffer brief; /* the same without its script; or empty */
	const char *sha1;    /* of its script; NULL: not known */
	bool lasting;        /* ASK_LASTING */
	bool patient;        /* ASK_PATIENTLY */
	struct owed owed;
};

/* A node of a cluster that was silent, and the refusal for that. */
struct silent_node {
	struct endpoint at;
	struct refusal refusal;
};

struct server {
	struct url url;              /* owned */
	struct discovery *discovery; /* owned; NULL: the URL says where it is */
	struct conn conn;
	/* before: one that was sent without its script before the last one, and may
	 * be refused */
	struct request last, before;
	uint64_t number;       /* how many were sent */
	bool reached;          /* there has been a connection */
	uint64_t void_until;   /* those up to this one have been sent again */
	const char *next_sha1; /* of the script of the next one */
	bool needs_whole;      /* it takes no EVALSHA */
	struct deadline again; /* when the last one is asked again, if at all */
	bool both_again;       /* and the one before it, first */
	int64_t refused;       /* ms; when the last one was, for want of its
				* script; 0: it was not */
	struct deadline patience;   /* until when a patient one is asked
				     * again: the end of its round */
	bool put_off;               /* the last one was refused for a moment */
	bool unsure;                /* ... and may have been executed */
	struct deadline next_login; /* not before, once one was refused */
	unsigned moves;             /* how often it was elsewhere meanwhile */
	struct silent_node *silent; /* owned: server_turn */
	size_t silent_count;
};

/* A reply to what was asked under ticket. reply lives for the call only. */
typedef void server_reply(void *context, struct server *server, uint64_t ticket,
			  const struct reply *reply);

/* Takes over *url. identify, doubts: see struct conn. */
void server_init(struct server *server, struct url *url, bool identify,
		 bool doubts);
void server_release(struct server *server);

enum asking {
	ASK_PLAINLY = 0,
	ASK_STICKY = 1,   /* its reply must come before the connection may be
			 * replaced */
	ASK_REPLICAS = 2, /* if it promises something, replicas must have it
			  * (conn.h) */
	ASK_INSTEAD = 4,  /* the one before it need not be executed any more */
	ASK_LASTING = 8,  /* it is to get there when all is done: drain.h */
	ASK_PATIENTLY = 16, /* one who refuses for a moment is asked again */
};

/* Queues a command, asked in this way (bits of enum asking). -1 if the server
 * failed at once (see conn.refusal). */
int server_ask(struct server *server, uint64_t ticket, unsigned how,
	       const struct argument *arguments, size_t count);

/* Asks the last command again on a fresh connection, under its old ticket. */
int server_ask_again(struct server *server);

/* A server that is neither up nor down is being connected to. */
static inline bool server_is_up(const struct server *server)
{
	return conn_is_up(&server->conn);
}

bool server_is_down(const struct server *server);

static inline bool server_is_barred(const struct server *server)
{
	return conn_is_barred(&server->conn);
}

static inline int server_fd(const struct server *server)
{
	return stream_fd(&server->conn.stream);
}

#define POLLED_MAX (1 + SEEDS_MAX) /* descriptors of one server */

/* Fills in what is to be polled for it, and makes *until earlier if need be.
 * Their number is always the same for a server. */
size_t server_prepare(const struct server *server, struct pollfd *polled,
		      struct deadline *until);

/* Moves bytes, with what poll(2) said of these; -1 if the server failed (see
 * conn.refusal). Then the connection is closed, unless only the seeds have failed and
 * it owes a sticky reply. */
int server_pump(struct server *server, const struct pollfd *polled,
		server_reply *reply, void *context);

/* What the next requests are about: a cluster is asked where it is. */
void server_aim(struct server *server, struct argument key);

/* The next command is EVAL, and this is its script's SHA1: a string that stays, and
 * is the same one for the same script. NULL: always send the script. */
void server_name_script(struct server *server, const char *sha1);

/* Whether a command is sent that has no answer yet, without its script, which the
 * server may not know. */
bool server_may_lack_script(const struct server *server);

/* Sends such a command whole if it is lasting, with what was asked after it; the answer is
 * sticky. */
void server_send_whole(struct server *server);

/* What comes next is for this node of the cluster. */
void server_visit(struct server *server, const struct endpoint *endpoint);

/* Where discovery.h has found it; NULL if it has not, or the URL says it. */
const struct endpoint *server_endpoint(const struct server *server);

/* Before a child process goes on with the connections: gives up a connection that is not
 * up yet, with what was queued for it, and the look-up of a name, as the child has no
 * thread for that. The child's next request begins both anew. */
void server_before_fork(struct server *server);

/* Closes the connection; what was not sent yet is dropped. */
void server_cut(struct server *server);

/* Takes back what was queued but not sent, as nothing is connected yet. */
void server_withdraw(struct server *server);

/* Whether an earlier request has no answer yet, or could not be sent, as it is not known yet
 * where the server is. */
bool server_is_silent(const struct server *server);

/* What is asked next is about another KEY, and nothing that was asked before has to be
 * executed. A silent node of a cluster is disconnected, as that KEY may be at another node.
 * For each KEY that turns out to be at the silent one the server fails at once, and the
 * refusal is that of the first time. */
void server_turn(struct server *server);

/* Whether a sticky request (quorum.h) has no answer yet. */
bool server_owes_sticky(const struct server *server);

/* Whether the last command was refused for a moment, and has no other answer yet. */
bool server_is_put_off(const struct server *server);

/* Closes the connection unless it owes a sticky reply, or refuses for a moment; the next
 * server_ask opens a fresh one. */
void server_renew(struct server *server);

/* conn_blame for a server that has not answered in this time. */
void server_blame_silence(struct server *server, int64_t waited_ms);

/* What to do about the last failure, or "". */
const char *server_remedy(const struct server *server);

#endif
