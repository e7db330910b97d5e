/*
 * The room lock/ is the lock protocol (redlock-protocol(7)), and nothing else:
 * one lock on M servers, its Lua scripts (lua/), and how votes are counted.
 * run/, wait/, show/ and cmd/ may use it. Enter here. To look at locks without
 * taking one, a ballot (ballot.h) is enough.
 *
 * Why two holders cannot believe in one KEY, as long as clocks run at nearly
 * one rate:
 *  - A vote is the answer of one script, which set KEY for a token that is
 *    never used for a second attempt. Two majorities share a server, and that
 *    server has one owner at a time.
 *  - Validity is counted from before the first byte is sent, less the drift
 *    (lease.h). So it ends before the lease of any voter can end. A late answer
 *    only shortens it.
 *  - A vote does not count if the login failed, as the command then ran as the
 *    default user. Nor does it count if the server may have forgotten leases,
 *    all of them or KEY's (trust.h). Even if two names are one server
 *    (alias.h), two majorities of names share a name, and so a server.
 *  - A request may be sent twice or answered twice: it is idempotent for its
 *    token. A late reply belongs to its own round (quorum.h).
 *  - A release or an extension compares and acts inside one script. No
 *    extension, and no repeated grant to the same token, makes a lease shorter.
 *    Anybody who has the token may extend the lease, and the holder's validity
 *    still stands.
 *  - Only lock_acquire makes a lock. lock_extend puts KEY back on servers that
 *    have lost it, but only in a round in which a quorum has kept it. Those
 *    servers do not count in that round.
 *
 * Why fences rise: the fence is the largest of the votes, and the lock is taken
 * only after a quorum has stored it. Any later quorum shares a server with that
 * one and counts on from there. A lock whose validity is over is not renewed, whatever
 * the servers say: another may have held KEY in between. A server's fence is
 * raised only while our token owns KEY there. If a single server stores a larger
 * fence by then, that fence belongs to an attempt that has failed. It is put back
 * to servers that have lost the lock, but it is not the holder's fence, as no
 * quorum knows it.
 *
 * Why a lock outlives a failover, if quorum.replicas are asked for, and one of those
 * that have acknowledged it becomes the master: whatever is believed has been
 * acknowledged. That is true of a grant, of the fence that a quorum has stored, and of
 * each renewal. If only grants were, a replica could be behind by many renewals; it
 * would let the lock end under its holder. So a renewal that too few replicas
 * acknowledge is a failed one, and the validity stays as it was: counted from the start
 * of the last round that was acknowledged. What --min-hold keeps is acknowledged, too.
 * A release is not: KEY may be held again after a failover, until its lease ends. What
 * is put back on a server that has lost it counts only after a later extension. The
 * model of the protocol takes a master and its replicas for one server: a vote that is
 * not acknowledged is an answer that was lost, to a request that was executed.
 *
 * Why a break (`redlock break`) lets no two hold KEY: it asks. A server that was asked
 * (ask.lua) answers each renewal by that token with *broken*, and KEY stays there for as
 * long as it would have if the renewal had never come. To the holder that is a server
 * that does not renew, which any server may do at any time: it stops COMMAND before
 * validity ends, and only then gives KEY back. So nothing above changes, and whoever is
 * next has KEY from a release or from the end of a lease, as ever. A holder that does not
 * understand *broken* finds that KEY is held by someone else. Its lease is that
 * someone's, who does not exist, so nobody has KEY before that lease is over.
 *
 * Whom a break stops: *broken* is a vote against the lock, like *gone* and *held by
 * someone else*. A renewal that a quorum keeps is good, whatever the others say. So
 * servers that are too few to take the lock away are also too few to stop COMMAND by
 * saying that somebody has asked for it; and a break stands once as many servers as
 * make a quorum have it, since no quorum is left that could keep the lock. Servers that
 * have lost the wish with their data answer *gone*, which keeps nothing either; the
 * break repeats the wish while it waits. Whoever has waited is told at once that a
 * renewal is worthwhile (listening.h). The wish names the tokens that are asked, so a
 * request that is late, or comes twice, stops nobody who holds KEY later.
 *
 * An attempt that got no lock is released on every server, even on those that
 * did not answer: the release follows the acquire on the same connection.
 */
#ifndef LOCK_LOCK_H
#define LOCK_LOCK_H

#include "base/bounds.h"
#include "lock/ballot.h"
#include "lock/listening.h"
#include "lock/names.h"
#include "lock/pick.h"
#include "lock/run.h"
#include "lock/silence.h"

enum kind {
	KIND_EXCLUSIVE, /* one holder */
	KIND_REENTRANT, /* one owner, which may hold it more than once */
	KIND_SHARED,    /* any number */
	KIND_PERMITS,   /* up to wish.permits */
	KIND_NONE,      /* takes nothing, but waits for its turn */
};

/* What is wanted. Set it before the first attempt. */
struct wish {
	enum kind kind;
	int64_t permits;   /* KIND_PERMITS */
	int64_t ttl;       /* ms */
	int64_t afterlife; /* ms that the record outlives the lock, unless the
			    * description says otherwise */
	/* ms: an attempt fails if a run that succeeded began less than this ago;
	 * 0: it does not matter */
	int64_t once_in;
	/* ms of validity that the taker needs to begin with; 0: nobody renews
	 * the lock */
	int64_t validity_needed;
	struct buffer description; /* owned: the record's text */
	const char *owner;    /* KIND_REENTRANT: the token to use, or NULL */
	const char *ancestor; /* who is above us and may hold KEY, or NULL */
	bool untracked;       /* whoever releases it will know only the token */
	pid_t keeper; /* an extend says that this process renews it; or 0 */
	/* an extend is for the record's ttl, or for ttl if it has none */
	bool as_taken;
};

/* What is held, or asked for. */
struct grant {
	char token[TOKEN_LONGEST + 1];
	char hold[HOLD_SIZE]; /* KIND_REENTRANT: which of the owner's holds: a
			       * number, after '+' if untracked; "-" for none;
			       * "*" for any, "*+" for any untracked one (pick.h) */
	/* KIND_PERMITS: the slot that requests name; once there is a quorum, its
	 * slot. 0: none, or not known */
	int64_t slot;
	int moves;        /* how often votes were moved (slots.h) */
	int64_t fence;    /* a quorum has it stored */
	int64_t seen;     /* the largest that a server reported at a renewal */
	int64_t acquired; /* when the lock was granted */
	int64_t started;  /* when the last good round began */
	int64_t lease;    /* ms from started to valid, with the drift */
	int64_t left;     /* ms: the shortest lease after an extend */
	struct deadline valid; /* end of validity */
	struct deadline renew; /* when the next renewal is due (watchdog.h) */
};

/* What is done once, after the first requests have left: while their answers are
 * on their way it costs no time. */
struct before_wait {
	int (*act)(void *context); /* NULL: nothing; what it returns is lost */
	void *context;
};

struct lock {
	struct names names;
	struct wish wish;
	struct grant grant;
	struct ballot ballot;
	struct silence silence;
	struct listening listening; /* while the lock is held, after a wait */
	struct before_wait before_wait;
	/* a release may still be on its way there: no token goes there again */
	bool barred[SERVERS_MAX];
	/* BUSY, and busy.has_run: the run of wish.once_in */
	struct past_run success;
	/* after a good renewal: when to ask those that did not answer it */
	struct deadline next_call;
	bool hurries;        /* while the lock is held: lock_hurry */
	bool alias_reported; /* ballot.alias, while the lock is held */
	bool broken; /* lock_extend: NOT_HELD, as it was broken, by ... */
	struct breaker breaker;
	bool by_hand;       /* a release leaves nothing to --min-hold */
	bool is_to_be_told; /* a release: a quorum has to note what has ended */
	int64_t held;       /* lock_note_held; 0: as long as this one */
	int64_t kept; /* ms: after lock_release, for how long KEY is held still */
	/* others had KEY when a quorum last said anything: attempt_note_busy */
	bool seen_busy;
	struct pick *pick; /* while a release picks a hold; else NULL */
	struct buffer
		ended; /* owned: what a release notes of the run; empty: there
			      * was none, as the attempt is taken back */
};

enum lock_result {
	LOCK_OK,       /* granted, kept, released */
	LOCK_BUSY,     /* acquire: others hold it */
	LOCK_NOT_HELD, /* extend, release: not by this token */
	LOCK_ERROR,    /* *error is filled */
	LOCK_INTERRUPTED,
	LOCK_AGAIN, /* queue_wait: a split vote */
};

/* key must outlive the lock. Before an attempt, fill wish.description
 * (record_describe). */
void lock_init(struct lock *lock, struct quorum *quorum, const char *key,
	       int64_t ttl, int64_t quarantine);

/* To extend or release what this token holds, if we do not know which of its
 * holds is ours. */
void lock_adopt(struct lock *lock, const char *token);

/* The next release gives back an untracked hold. LOCK_NOT_HELD: there is none. */
void lock_adopt_untracked(struct lock *lock);

/* Whether there is one, as far as servers answer by then. */
bool lock_has_untracked(struct lock *lock, struct deadline until);

void lock_release_memory(struct lock *lock);

/* After record_describe: adds once_in to the description, and for how long (ms) the
 * record outlives the lock, if that is not -1. */
void lock_describe_history(struct lock *lock, int64_t remember);

/* After lock_release: whether a request whose answer was lost may have given it back. */
bool lock_release_is_unsure(const struct lock *lock);

/* The end of validity of a grant, if its round started then. */
struct deadline lock_validity(const struct lock *lock, int64_t started);

/*
 * One attempt, under a fresh token. BUSY fills *busy. After anything but OK
 * nothing is left on any server that answers. ERROR with error->transient: the
 * next attempt may succeed.
 */
enum lock_result lock_acquire(struct lock *lock, struct wait wait,
			      struct busy *busy, struct error *error);

/* Whether an attempt failed only because some servers that granted it may have
 * forgotten leases. */
bool lock_is_quarantined(const struct lock *lock);

/*
 * Renews the lease of grant.token. The lease never ends sooner than before: a
 * run relies on it while others extend it. OK: grant has new times. NOT_HELD:
 * too many servers have lost the lock for a quorum (*error says which), or its
 * validity was over before they had answered, so another may have held it in
 * between. ERROR: too few answered; the lease runs on as it was.
 */
enum lock_result lock_extend(struct lock *lock, struct wait wait,
			     struct error *error);

/*
 * While it waits, reads what servers send late, and asks those that did not answer the last
 * renewal again, each second or so: a server that was restarted has the lock again soon, so
 * the next one may fail. That is a part of the renewal, whose late answers are heard, and
 * prolongs nothing but what that server keeps: the validity stays as it was. A server that
 * says only now that KEY is gone there gets the lock back, as a quorum has renewed it.
 * CERTAIN: there is reason for a renewal (listening.h).
 */
enum gathered lock_idle(struct lock *lock, struct wait wait);

/* Whether it is held without some servers that may be back any moment. */
bool lock_misses_servers(const struct lock *lock);

/*
 * Has the next releases note how a run of KEY ended, in its history (runs.lua):
 * "exit N", "signal N", "lost", "overdue", "broken by ...", "released" or "not
 * started". An exit or a signal is a loss if KEY is gone by the release; but not with a +
 * before it: it was held until then. waited: ms, -1 if unknown. Without this a release takes
 * back an attempt that was no run.
 */
void lock_note_end(struct lock *lock, int64_t waited, const char *how);

/* For how long (ms) a lock that was acquired has been held: no longer than it was valid, though
 * a process that was stopped, or that runs on without it, notes its end later. */
int64_t lock_held_for(const struct lock *lock);

/* With several locks: for how long (ms) it has had all of them. Its run did not begin
 * before. */
void lock_note_held(struct lock *lock, int64_t held);

/* Gives the lock of grant.token back on every server, min_hold ms from now; that of
 * a hold that is not the owner's last is left to the last one. Servers that cannot be
 * reached are asked again until then; more than a round has a line, and ends if a signal has
 * come that would end the process. NOT_HELD: it was not held. If only the token is known
 * (lock_adopt), an untracked hold is given back, or else any: on several servers that takes
 * another round, or more if others come first. */
enum lock_result lock_release(struct lock *lock, int64_t min_hold,
			      struct deadline until, struct error *error);

/* --- for the rounds of a lock (attempt.c, extend.c, release.c) ------------ */

/* From a grant until it is given back: no line of -v waits for its reader (log.h). */
void lock_hurry(struct lock *lock, bool hurry);

/* Does what was to be done before_wait, the first time. */
void lock_use_the_time(struct lock *lock);

/* For a reply_handler with the lock as its context. */
bool lock_is_decided(void *lock);
bool lock_is_complete(void *lock);

/*
 * Whether the token certainly holds nothing. A release finds nothing under the
 * second of two names of one server, either. Only the other answers tell the
 * difference, so this waits a moment for those that are on their way.
 */
bool lock_is_lost(struct lock *lock, struct reply_handler *handler);

#endif
