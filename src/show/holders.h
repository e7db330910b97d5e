/*
 * show/: what servers and locks are like, for people and programs. Nothing in here
 * takes a lock, but for doctor's own. Only the commands come in.
 *
 * A struct holders: who holds a lock, and who waits for it, put together from what
 * all its servers say. inspect.h fills it.
 *
 * A holder on two servers is the same one if it has the same token and the same slot.
 * Tokens are as good as the lock, so servers send digests (SHA-1) of them, never the
 * tokens.
 * All of this is what servers and holders said: nothing relies on it for safety.
 */
#ifndef SHOW_HOLDERS_H
#define SHOW_HOLDERS_H

#include "lock/lock.h"

#define SHOWN_MOST 1000 /* holders, and waiters, of longest standing */
#define DIGEST_SIZE 41
#define PERMITS_LARGEST 1000000000 /* a larger number is not believed */

/* A holder, or a waiter. */
struct seen {
	char digest[DIGEST_SIZE]; /* of its token */
	struct busy who;          /* a waiter's held: how long it has waited */
	int64_t count;            /* a holder's: how often it holds KEY */
	int64_t slot;             /* a holder's, of permits; 0: none */
	int64_t permits;          /* a waiter's */
	enum kind wants;          /* a waiter's */
	bool wish_known;          /* a waiter's: wants and permits are filled */
	uint32_t servers;         /* a bit for each server that has it */
	size_t order;             /* in which they were first heard of */
};

struct crowd {
	struct seen *seen; /* owned */
	size_t count;
	int64_t total; /* also of those that seen has no room for */
};

enum standing {
	STANDING_UNKNOWN, /* no answer: lock.ballot.vote is not VOTE_YES */
	STANDING_FREE,
	STANDING_HELD,
	STANDING_MISUSED, /* KEY is not a lock */
	STANDING_CHANGED, /* inspect_break: others hold it by now */
};

struct holders {
	struct names names;
	struct ballot ballot;          /* VOTE_YES: has answered */
	char token[TOKEN_LONGEST + 1]; /* in whose name the servers are asked */
	struct crowd holding, waiting;
	enum standing standing[SERVERS_MAX];
	char type[SERVERS_MAX][16]; /* Redis type of KEY */
	int64_t permits[SERVERS_MAX], fences[SERVERS_MAX];
	int64_t began[SERVERS_MAX];  /* its record; ms by its clock, or -1 */
	char place[SERVERS_MAX][64]; /* where its next holders are */
	size_t told_waiters[SERVERS_MAX];
	bool complete[SERVERS_MAX]; /* has told all */
	bool replica[SERVERS_MAX];  /* it says it is one: it grants nothing */
	int spoilt[SERVERS_MAX];    /* 0, or what beside KEY is no lock's */
	char spoilt_type[SERVERS_MAX][32];
	bool hasty; /* wait only until KEY is known to be held */
	bool owing; /* ask those, too, that owe an answer nobody waited for */
	const bool *lost; /* servers that are not asked; NULL: none */
};

/* key must outlive the struct. It may be any bytes in a struct argument. */
void holders_init(struct holders *holders, struct quorum *quorum,
		  const char *key);
void holders_init_bytes(struct holders *holders, struct quorum *quorum,
			struct argument key);
void holders_release(struct holders *holders);

/* Takes a server's answer; for a struct reply_handler. */
void holders_hear(void *holders, size_t server, const struct reply *reply);

/* The longest first, and SHOWN_MOST at most. */
void holders_sort(struct crowd *crowd);

/* Forgets holders and waiters. */
void holders_forget(struct holders *holders);

/* The number of servers with this standing. */
size_t holders_servers(const struct holders *holders, enum standing standing);

/* Whether nobody can take KEY there: it, or what is beside it, is not a lock. And
 * the number of these servers. */
bool holders_is_misused(const struct holders *holders, size_t server);
size_t holders_misused(const struct holders *holders);

/* "{key}:redlock is a list" */
void holders_print_spoilt(struct buffer *text, const struct holders *holders,
			  size_t server);

/* A server that says what most servers say of KEY. The number of servers, if none
 * says that KEY is in use. */
size_t holders_speaker(const struct holders *holders);

/* How many permits KEY has, as most servers say: 0 for a shared lock, -1 for others. */
int64_t holders_permits(const struct holders *holders);

/* KIND_NONE if a key of this Redis type is not a lock. permits: -1 for none. */
enum kind holders_kind(const char *type, int64_t permits);

/* "exclusive", "reentrant", "shared", "permits", "none" */
const char *holders_kind_name(enum kind kind);

/* The largest fence, 0 for none. */
int64_t holders_fence(const struct holders *holders);

/* The number of servers that have it, and whether that is too few for a lock. */
size_t seen_count(const struct seen *seen);
bool holders_is_partial(const struct holders *holders,
			const struct seen *holder);

/* Whether a holder has the lock, or anybody has: 1 or 0, or -1 if it is held if servers
 * that have not answered have it, too. */
int holders_has_lock(const struct holders *holders, const struct seen *holder);
int holders_is_held(const struct holders *holders);

/* How many hold KEY: those that have it on enough servers, or may have; or all if none
 * has. If there are more than are shown, some are known only by the number that a server
 * tells. */
int64_t holders_count(const struct holders *holders);

/* Of those that have it on enough servers, or may have, the one that has held KEY longest, or NULL.
 * *unknown: for one of them it is not known how long. */
const struct seen *holders_longest(const struct holders *holders,
				   bool *unknown);

/* Reads "digest left held count slot\n" and the description. -1: it is something else. */
int seen_read_holder(struct seen *seen, const char *text, size_t length);

#endif
