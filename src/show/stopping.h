/*
 * Asks the holders of a lock to stop, and sees what becomes of them. Why no two hold the
 * lock meanwhile: lock.h.
 *
 *	inspect_lock(&holders, &error);			who holds it
 *	stopping_init(&stopping, &holders, why);
 *	while (stopping_round(&stopping, &error) == STOPPING_WAITS)
 *		... a pause, stopping_pause(&stopping) at most ...
 *	... stopping.asked ...
 *	stopping_release(&stopping);
 *
 * Each round asks all of them again: a server that was restarted empty, or was out of
 * reach at first, gets the wish as soon as it has the lock. Nobody else is asked. If
 * the rounds end early, the request stands.
 *
 * Waiters who have votes of too few servers are not asked, unless there is nobody else. They
 * give these back, but keep their token, and would be stopped when it is their turn. So is
 * whoever is gone not asked again.
 *
 * A holder has released the lock if a quorum says that it is gone, and has kept its
 * record: that stays when KEY goes. A server may have lost its data if its fence is
 * smaller than it was, if its record was begun anew, or if it was restarted and may
 * forget. Whatever it has granted since, it cannot know until it has the holder again, and
 * the holder may run on until its lease ends. If the record still has the holder, or that
 * it was asked, which a release would have removed, KEY was deleted, or its lease was over
 * there.
 */
#ifndef SHOW_STOPPING_H
#define SHOW_STOPPING_H

#include "show/holders.h"

enum fate {
	FATE_HOLDS,
	FATE_RELEASED, /* it was gone before its lease was over */
	FATE_DELETED,  /* the same, and KEY was deleted, by no release */
	FATE_ENDED,    /* its lease was over, without an answer */
	FATE_MISSED,   /* it was gone before it was asked */
};

struct asked {
	struct seen seen; /* as it was before */
	enum fate fate;
	int64_t after;        /* ms from the first round until it was gone */
	struct deadline ends; /* its lease, as it was told last */
	bool met;             /* a server has reported it in a round */
	bool whole;           /* it was seen on a quorum */
	uint32_t forgotten;   /* a bit for each server that may have lost it */
};

/* What a server has told last: it shows whether the server has forgotten something. */
struct memory {
	bool known;
	int64_t fence, began;     /* of its record (holders.h) */
	char run_id[RUN_ID_SIZE]; /* "": unknown */
};

struct stopping {
	struct holders *holders; /* of those that are asked, after a round */
	const char *why;
	struct asked *asked; /* owned */
	size_t count;
	int64_t more; /* holders that nobody has asked: they are too many */
	struct buffer digests;             /* owned */
	struct memory memory[SERVERS_MAX]; /* of each server */
	int64_t began;       /* the first round; 0: there was none */
	struct deadline end; /* all leases are over by then */
};

enum stopping_result {
	STOPPING_WAITS,
	STOPPING_DONE,   /* none of them holds the lock */
	STOPPING_NOBODY, /* the first round: none of them held it */
	STOPPING_OVER,   /* one holds it, although all leases should be over */
	STOPPING_FAILED, /* *error: nobody was asked, or nobody knows how it went */
};

/* holders must outlive it; so must why (record_describe_breaker). */
void stopping_init(struct stopping *stopping, struct holders *holders,
		   const char *why);
void stopping_release(struct stopping *stopping);

enum stopping_result stopping_round(struct stopping *stopping,
				    struct error *error);

/* ms */
int64_t stopping_pause(const struct stopping *stopping);

#endif
