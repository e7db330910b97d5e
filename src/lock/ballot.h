/*
 * The votes of one round, and what servers have said of KEY during a wait.
 *
 *	ballot_init(&ballot, &quorum, ttl, quarantine);
 *	ballot_open(&ballot, busy);              no vote is in
 *	ballot_read(&ballot, i, reply, ...);     each answer
 *	ballot_has_quorum(&ballot);
 *
 * Whoever reads an answer sets the server's vote. trust.h decides which grants
 * are votes, alias.h finds two names of one server, and explain.h says why
 * there is no quorum. To look at locks, no more than a ballot is needed.
 */
#ifndef LOCK_BALLOT_H
#define LOCK_BALLOT_H

#include "lock/record.h"
#include "lock/token.h"
#include "server/quorum.h"

enum vote {
	VOTE_PENDING, /* not asked, or no answer (yet) */
	VOTE_FAILED,  /* servers[i].conn.refusal.text */
	VOTE_YES,     /* granted, kept, released; answered */
	VOTE_HELD,    /* held by someone else */
	VOTE_GONE,    /* held by nobody */
	VOTE_BROKEN, /* an extend: somebody asks us to stop, or has broken it */
	VOTE_QUARANTINED, /* granted, but it may have forgotten (trust.h) */
	VOTE_ELSEWHERE,   /* granted or kept, but in another slot (slots.h) */
};

#define HOLDERS_TOLD 20

/* One of several holders, by a server's word. */
struct tenant {
	int64_t slot; /* 0: it keeps us out whatever slot we have, or have none */
	int64_t since; /* ms by our clock, at the earliest */
	char token[TOKEN_PREFIX_SIZE];
};

/* What a server has reported of KEY during this wait (trust.h); times in ms by
 * our clock. */
struct report {
	bool is_new; /* of this attempt */
	bool is_held;
	bool is_known; /* it has reported its record */
	int64_t asked; /* when its last answer was asked for */
	int64_t began; /* when its record began, at the latest: below 0 if it is
			* older than this machine is up */
	int64_t since, until; /* is_held: its holder's time, at the longest */
	char last[TOKEN_PREFIX_SIZE];   /* the last holder that it knows of */
	char holder[TOKEN_PREFIX_SIZE]; /* named by its last refusal */
	struct tenant tenants[HOLDERS_TOLD]; /* named by its last answer */
	size_t tenant_count;
	int64_t tenants_until; /* when their leases are over, at the latest */
};

#define SLOTS_FREE 20

/* What a server that granted a permit says of slots (slots.h). */
struct slots {
	int64_t own;    /* the one that was granted; 0: it is no permit */
	bool contested; /* perhaps another has it (trust.h): no vote for it */
	int64_t free[SLOTS_FREE]; /* those that could have been */
	size_t count;
};

struct ballot {
	struct quorum *quorum;

	/* a round */
	int64_t clock; /* ms since 1970, one for all servers */
	enum vote vote[SERVERS_MAX];
	int64_t fence[SERVERS_MAX];
	struct slots slots[SERVERS_MAX];
	char token_prefix[SERVERS_MAX][TOKEN_PREFIX_SIZE]; /* of the holder that
							    * a refusal names */
	struct busy *busy; /* an attempt: who has KEY; NULL in other rounds */
	bool renewed;      /* it was a good renewal */
	bool has_run;      /* an attempt: a server reports a run that makes it
			    * needless (wish.once_in) */
	/* a release: an earlier round of it may have been executed there */
	bool unsure[SERVERS_MAX];

	int64_t wanted; /* the slot of the quorum: votes for others do not count;
			 * 0: there is none yet, or it is no permit */

	/* a wait */
	int64_t ttl;        /* ms, of our own lease, or that a wait is for */
	int64_t quarantine; /* ms; 0 for none */
	int64_t learned;    /* ms: the longest lease that was reported */
	struct report report[SERVERS_MAX];

	bool alias; /* two URLs turned out to be one server (alias.h) */
	struct error alias_error;
};

void ballot_init(struct ballot *ballot, struct quorum *quorum, int64_t ttl,
		 int64_t quarantine);

/* A new round. busy: of an attempt to take the lock, else NULL. */
void ballot_open(struct ballot *ballot, struct busy *busy);

/* --- counting ------------------------------------------------------------- */

size_t ballot_count(const struct ballot *ballot, enum vote vote);

/* The server granted it, whether that counts or not. */
bool ballot_is_granted(const struct ballot *ballot, size_t server);
bool ballot_has_quorum(const struct ballot *ballot);

/* Whether enough servers have said that there is no lock to be had (in an
 * attempt), or that it is not held (in other rounds). */
bool ballot_said_no(const struct ballot *ballot);

/* Whether some granted it, some did not, and nobody is seen on a quorum: others
 * try at the same time, and perhaps none of us will have it. */
bool ballot_is_split(const struct ballot *ballot);

/* The largest number of servers that refuse in the name of one holder. */
size_t ballot_same_holder(const struct ballot *ballot);

/* Whether the missing answers can change nothing. */
bool ballot_is_decided(const struct ballot *ballot);

/* Whether no answer is missing. */
bool ballot_is_complete(const struct ballot *ballot);

/* The server refused for a reason that will not pass. */
bool ballot_failed_for_good(const struct ballot *ballot, size_t server);

/* The server granted or kept it, but too few of its replicas have that. */
bool ballot_is_unacknowledged(const struct ballot *ballot, size_t server);
bool ballot_lacks_replicas(const struct ballot *ballot); /* some server does */

/* So many servers have failed for good that no quorum is left. */
bool ballot_is_hopeless(const struct ballot *ballot);

/* --- reading -------------------------------------------------------------- */

/*
 * The first number of a script's answer, from least to 1. False if there is
 * none: then the server's vote is VOTE_FAILED, and its why is set. Two names of
 * one server do not matter here: alias_read asks for them.
 */
bool ballot_read(struct ballot *ballot, size_t server,
		 const struct reply *reply, int64_t least, int64_t *answer);

/* The rest of the answer has the wrong shape. */
void ballot_reject(struct ballot *ballot, size_t server);

#endif
