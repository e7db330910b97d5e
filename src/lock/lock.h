/*
 * The lock protocol (redlock-protocol(7)): a lock on M servers.
 *
 * Why two holders cannot believe in one key, as long as clocks run at nearly
 * one rate:
 *  - A vote is one script's answer, KEY set for a token that is never used for
 *    a second attempt. Two majorities share a server, and that server has one
 *    owner at a time.
 *  - validity is counted from before the first byte is sent, less the drift:
 *    it ends before any voter's lease can. A late answer only shortens it.
 *  - A vote does not count if the login failed (the command then ran as the
 *    default user), or if the server may have forgotten leases, all of them or
 *    KEY's (trust.h). Even if two names are one server (alias.h), two
 *    majorities of names share a name, and so a server.
 *  - A request that is answered twice, or sent twice, is idempotent for its
 *    token. A reply that is late belongs to its own round (quorum.h).
 *  - A release or extension compares and acts inside one script. No extension,
 *    and no repeated grant to the same token, makes a lease shorter: everyone
 *    who has the token may extend it, and the holder's validity still stands.
 *  - Nothing but lock_acquire ever makes a lock. lock_extend puts the key back
 *    on servers that have lost it only in a round in which a quorum has kept
 *    it, and does not count those in that round.
 *
 * Why fences rise: the fence is the largest of the votes, and the lock is
 * taken only once a quorum has it stored; any later quorum shares a server
 * with that one and counts on from there. A server is raised only while our
 * token owns KEY there. A larger one that a single server stores by then is of
 * an attempt that has failed: it is put back to servers that have lost the
 * lock, but is not the holder's fence, as no quorum knows it.
 *
 * Not a lock: it is released on every server, those that did not answer too,
 * behind the acquire on the same connection.
 */
#ifndef LOCK_H
#define LOCK_H

#include "server/quorum.h"
#include "lock/record.h"
#include "lock/token.h"

enum kind {
	KIND_EXCLUSIVE, /* one holder */
	KIND_REENTRANT, /* one owner, that may hold it more than once */
	KIND_SHARED,    /* any number */
	KIND_PERMITS,   /* up to lock->permits */
	KIND_NONE,      /* takes nothing, but waits for its turn */
};

#define PERMITS_MOST 100000
#define KEY_LONGEST 4096                 /* bytes */
#define FENCE_LARGEST (INT64_C(1) << 53) /* Lua counts in doubles */

enum vote {
	VOTE_PENDING,     /* not asked, or no answer (yet) */
	VOTE_FAILED,      /* servers[i].why */
	VOTE_YES,         /* granted, kept, released */
	VOTE_HELD,        /* another's */
	VOTE_GONE,        /* nobody's */
	VOTE_QUARANTINED, /* granted, but it may have forgotten (trust.h) */
};

/* Of a holder: the beginning of its token; "*" for several, "" for none. */
#define HOLDER_MARK 17

/* What a server has said of KEY during this wait (trust.h); times in ms by our
 * clock. */
struct told {
	bool heard; /* in this attempt */
	bool is_held;
	int64_t asked;          /* when its last answer was asked for */
	int64_t began;          /* when its record began, at the latest */
	int64_t since, until;   /* is_held: its holder's time, at the longest */
	char last[HOLDER_MARK]; /* the last holder that it knows of */
	char holder[HOLDER_MARK]; /* the one that its last refusal named */
};

/* What is done once, while the lock is waited for. */
struct meanwhile {
	int (*act)(void *context); /* NULL: nothing; what it returns is lost */
	void *context;
};

struct lock {
	struct quorum *quorum;
	struct argument key;
	struct argument record, queue, wishes, waits; /* owned */
	int64_t ttl;                                  /* ms */
	int64_t quarantine;                           /* ms; 0 for none */
	int64_t afterlife; /* ms that the record outlives the lock */
	int64_t room;      /* ms of validity that its taker needs to begin with;
		       * 0: nobody renews it */
	struct meanwhile meanwhile;
	enum kind kind;
	int64_t permits;           /* KIND_PERMITS */
	struct buffer description; /* owned */
	char token[TOKEN_LONGEST + 1];
	char hold[TOKEN_SIZE + 1]; /* KIND_REENTRANT: this one of the owner's;
				    * "-" for none, '*' and a number for any,
				    * '+' and a number for one by hand */
	/* an extend is for the record's ttl, or for ttl if it has none */
	bool as_taken;
	bool by_hand;      /* it will be released by who knows only the token */
	const char *owner; /* KIND_REENTRANT: the token to use, or NULL */
	const char *ancestor;  /* who is above us and may hold KEY, or NULL */
	int64_t clock;         /* ms since 1970, one for all servers */
	int64_t fence;         /* a quorum has it stored */
	int64_t seen;          /* the largest that a server told at a renewal */
	int64_t left;          /* ms: the shortest lease after an extend */
	int64_t acquired;      /* when the lock was granted */
	int64_t started;       /* when the last good round began */
	int64_t lease;         /* ms from started to valid, with the drift */
	struct deadline valid; /* end of validity */
	struct deadline renew; /* when the first renewal is due */
	enum vote vote[SERVERS_MAX]; /* of the last round */
	int64_t fences[SERVERS_MAX];
	struct told told[SERVERS_MAX];
	int64_t learned; /* ms: the longest lease told of during this wait */
	struct {
		bool read;
		uint32_t servers; /* a bit for each */
	} silence;                /* silence.h */
	/* a release may still be on its way there: no token goes there again */
	bool barred[SERVERS_MAX];
	bool renewed; /* the last round was a good renewal */
	bool alias;   /* two URLs turned out to be one server */
	bool alias_told;
	struct error alias_error;
};

enum lock_result {
	LOCK_OK,       /* granted, kept, released */
	LOCK_BUSY,     /* acquire: others hold it */
	LOCK_NOT_HELD, /* extend, release: not by this token */
	LOCK_ERROR,    /* *error is filled */
	LOCK_INTERRUPTED,
	LOCK_AGAIN, /* queue_wait: a split vote */
};

/* key must outlive the lock. Whoever acquires fills description
 * (record_describe) first. */
void lock_init(struct lock *lock, struct quorum *quorum, const char *key,
	       int64_t ttl, int64_t quarantine);

/* To extend or release what this token holds, without knowing which of its
 * holds is ours. */
void lock_adopt(struct lock *lock, const char *token);
void lock_release_memory(struct lock *lock);

/* The part of a ttl that clocks may disagree about. */
int64_t lock_drift(int64_t ttl);

/* The end of validity of what a round granted that started then. */
struct deadline lock_validity(const struct lock *lock, int64_t started);

/*
 * One attempt, under a fresh token. BUSY fills *busy. After anything but OK
 * nothing is left on any server that answers. ERROR with error->passing may
 * be otherwise in a moment.
 */
enum lock_result lock_acquire(struct lock *lock, struct deadline until,
			      struct busy *busy, struct error *error);

/* Whether an attempt failed only because servers that granted it may have
 * forgotten leases. */
bool lock_is_quarantined(const struct lock *lock);

/*
 * Renews lock->token's lease. It never ends sooner than before: a run relies
 * on it while others extend it. OK: valid, started and left are new. NOT_HELD:
 * too many servers have lost it for a quorum; *error says which. ERROR: too
 * few answered; the lease runs on as it was.
 */
enum lock_result lock_extend(struct lock *lock, struct deadline until,
			     struct error *error);

/*
 * Until the deadline or an interrupt, reads what servers send late. One that
 * answers the last renewal only now, that KEY is gone there, gets it back.
 */
enum gathered lock_idle(struct lock *lock, struct deadline until);

/* Gives lock->token's lock back on every server, where linger (ms) is over from
 * now. NOT_HELD: it was not held. */
enum lock_result lock_release(struct lock *lock, int64_t linger,
			      struct deadline until, struct error *error);

#endif
