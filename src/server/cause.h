/*
 * The causes for which a server does not count: what an error reply is, or what
 * is wrong with the connection. The cause is found once, when the reply is
 * read. It decides the words, the advice, the exit status, and whether another
 * try may do better; no other code compares texts.
 *
 * Redis 5 to 8, Valkey, KeyDB and Dragonfly begin their errors with the same
 * words. What a script's command was told comes in three forms: as the command
 * would have been told, with the script's name after it (since Redis 7), or in
 * the middle of "ERR Error running script (...): @user_script:3: ...". In a
 * script some have no code but ERR, so a sentence has to tell; only its
 * beginning does, as the name of a user, which may be anything without a blank,
 * comes later.
 */
#ifndef SERVER_CAUSE_H
#define SERVER_CAUSE_H

#include <stdbool.h>
#include <stddef.h>

enum cause {
	CAUSE_AWAY, /* no connection, or no answer */
	CAUSE_SLOW,
	CAUSE_BARRED_SOCKET, /* its Unix socket is not for this user */
	CAUSE_SYSTEM,        /* our machine has no connection left, for now */
	CAUSE_DESCRIPTORS,   /* nor has our process, by its limit */
	CAUSE_CERTIFICATE,   /* theirs or ours is refused */
	CAUSE_NONSENSE,      /* an answer of the wrong shape */
	CAUSE_NOT_REDIS,     /* not a reply at all */
	CAUSE_UNFIT,         /* as it says of itself; the text has the remedy */
	CAUSE_LACK,          /* its user has too few rights, which are named */
	CAUSE_ALIAS,         /* it is another one of ours */
	CAUSE_NO_MASTER,     /* a Sentinel does not know the name */
	CAUSE_NO_MAJORITY,   /* Sentinels do not agree */
	CAUSE_NODES_DIFFER,  /* nor do nodes */
	CAUSE_UNACKNOWLEDGED, /* too few replicas have what it promised */
	CAUSE_PLAIN_PORT,     /* they have named it, and it speaks no TLS */

	/* error replies */
	CAUSE_OTHER,
	CAUSE_NO_LOGIN,
	CAUSE_WRONG_LOGIN,
	CAUSE_NEEDLESS_LOGIN,
	CAUSE_OLD_LOGIN,
	CAUSE_LOGIN,
	CAUSE_RIGHTS,
	CAUSE_KIND, /* KEY is held as another kind of lock; our scripts' words */
	CAUSE_EARLIER,      /* KEY is held by an earlier redlock; the same */
	CAUSE_DATA,         /* KEY is not a lock; our scripts' words */
	CAUSE_KEPT,         /* the same, of what is to be broken */
	CAUSE_DEAF,         /* its holder cannot be asked to stop; the same */
	CAUSE_LATER,        /* KEY is used by a newer redlock */
	CAUSE_FEW_REPLICAS, /* --replicas asks for more; our scripts' words */
	CAUSE_TYPE,
	CAUSE_DATABASE,
	CAUSE_DATABASE_OF_CLUSTER,
	CAUSE_COMMAND,
	CAUSE_NO_CLUSTER,
	CAUSE_NO_SENTINEL,
	CAUSE_REPLICA,
	CAUSE_CUT_OFF,
	CAUSE_MOVED,
	CAUSE_ASK,
	CAUSE_HASH_SLOTS,
	CAUSE_TRY_AGAIN,
	CAUSE_CLUSTER_DOWN,
	CAUSE_PROTECTED,
	CAUSE_CLIENTS,
	CAUSE_MEMORY,
	CAUSE_DISK,
	CAUSE_LOADING,
	CAUSE_BUSY,
	CAUSE_REPLICAS,
	CAUSE_SCRIPT,
	CAUSE_TRANSACTION,

	/* the same, of a server that Sentinels or nodes have named, or of those
	 * that have named one before */
	CAUSE_OLD_MASTER,
	CAUSE_OTHER_NODE,
	CAUSE_MOVING,
	CAUSE_LEFT_CLUSTER,
	CAUSE_LOST_MASTER,
	CAUSE_SENTINEL_LOGIN, /* Sentinels require a login, or another one */
};

/* What an error reply is; its text without what wraps it. */
struct error_reply {
	enum cause cause;
	const char *text; /* within the failure's text */
	size_t length;
};

struct error_reply cause_of(const char *failure);

/* The same for the answer to a login, or for what a server says to each client
 * that connects. */
struct error_reply cause_of_login(const char *failure);

/* What it is if Sentinels or nodes have named the server, or if those who say so have
 * named it before: then it may pass. */
enum cause cause_elsewhere(enum cause cause);

/* What it is if Sentinels have refused us, and not the server. */
enum cause cause_of_sentinel(enum cause cause);

/* enum exit_code */
int cause_code(enum cause cause);

/* Whether it may be gone at the next try. */
bool cause_is_transient(enum cause cause);

/* Whether the server executes nothing for a moment. */
bool cause_is_of_the_moment(enum cause cause);

/* Whether the server said so itself, so that its silence afterwards tells
 * nothing more. */
bool cause_is_from_server(enum cause cause);

/* Whether it is about the login, so that url->advice is the remedy. */
bool cause_is_login(enum cause cause);

/* What has happened, "" if the text alone says it; and whether the text of the
 * error reply says more. */
const char *cause_words(enum cause cause, bool *whole);

/* What to do about it, or "". */
const char *cause_remedy(enum cause cause);

#endif
