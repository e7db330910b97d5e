/*
 * Why a server does not count: what an error reply is, or what is wrong with
 * the way there. It is found out once, where the reply is read, and decides the
 * words, the advice, the exit status, and whether another try may do better;
 * nothing below compares texts.
 *
 * Redis 5 to 8, Valkey, KeyDB and Dragonfly begin their errors with the same
 * words. What a script's command was told comes in three forms: as the command
 * would have been told, with the script's name after it (since Redis 7), or in
 * the middle of "ERR Error running script (...): @user_script:3: ...".
 */
#ifndef CAUSE_H
#define CAUSE_H

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
	CAUSE_LACK,          /* its user has too few rights */
	CAUSE_ALIAS,         /* it is another one of ours */
	CAUSE_NO_MASTER,     /* a Sentinel does not know the name */
	CAUSE_NO_MAJORITY,   /* Sentinels or nodes do not agree */

	/* error replies */
	CAUSE_OTHER,
	CAUSE_NO_LOGIN,
	CAUSE_WRONG_LOGIN,
	CAUSE_NEEDLESS_LOGIN,
	CAUSE_OLD_LOGIN,
	CAUSE_LOGIN,
	CAUSE_RIGHTS,
	CAUSE_KIND, /* KEY is held as another kind of lock; our scripts' words */
	CAUSE_DATA, /* KEY is not a lock; our scripts' words */
	CAUSE_KEPT, /* the same, of what is to be broken */
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
	CAUSE_SLOTS,
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

	/* the same, of a server that Sentinels or nodes have named */
	CAUSE_OLD_MASTER,
	CAUSE_OTHER_NODE,
	CAUSE_MOVING,
};

/* What an error reply is; its text without what wraps it. */
struct refusal {
	enum cause cause;
	const char *text; /* within the failure's text */
	size_t length;
};

struct refusal cause_of(const char *failure);

/* The same of what answers the login, or was said to whoever connects. */
struct refusal cause_of_login(const char *failure);

/* What it is if others have said that the server is the right one. */
enum cause cause_elsewhere(enum cause cause);

/* enum exit_code */
int cause_code(enum cause cause);

/* Whether it may be gone at the next try. */
bool cause_is_passing(enum cause cause);

/* Whether the server said so itself, so that its silence afterwards tells
 * nothing more. */
bool cause_is_said(enum cause cause);

/* Whether it is about the login, so that url->advice is the remedy. */
bool cause_is_login(enum cause cause);

/* What has happened, "" if the text alone says it; and whether the text of the
 * error reply says more. */
const char *cause_words(enum cause cause, bool *whole);

/* What to do about it, or "". */
const char *cause_remedy(enum cause cause);

#endif
