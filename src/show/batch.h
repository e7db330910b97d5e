/*
 * Looks at many locks at once: who holds each, if a quorum says the same, and how many
 * wait for it. If servers do not say the same of who shares KEY, or they are too many to be
 * looked at with others (batch.lua), all of them are asked for (inspect.h).
 *
 *	batch_init(&batch, &quorum);
 *	batch_round(&batch);			which servers answer at all
 *	batch_add(&batch, key);			up to BATCH_MOST, then
 *	batch_round(&batch);			each server is asked once
 *	batch_tell(&batch, n, &listed);		n from 0 to batch.count - 1
 *	batch_clear(&batch);
 *
 * A lock that too few servers have for a quorum may be held if others do not answer.
 *
 * A server is lost if it has failed or was silent for the time of a round: it is not
 * asked again, and has no vote.
 */
#ifndef SHOW_BATCH_H
#define SHOW_BATCH_H

#include "lock/script.h"
#include "show/history.h"
#include "show/holders.h"

struct listed {
	struct argument key; /* the batch's */
	/* KIND_NONE: a newer redlock uses KEY, and only first's protocol is
	 * known */
	enum kind kind;
	int64_t permits;
	/* as many as a quorum has, or has if servers that have not answered say the same;
	 * 0: it is not held */
	int64_t holders;
	bool perhaps;      /* it is held only if they do */
	struct seen first; /* one of them */
	/* a server's: differs if a holder does; "*": there are too many */
	char crowd[DIGEST_SIZE];
	int64_t longest; /* ms that one of the holders has held it, -1 unknown */
	bool known;      /* it has been held before, or is held */
	int64_t waiting;     /* as many as a quorum has; -1: not known */
	int64_t oldest_wait; /* ms that the first of them has waited */
	/* if batch.runs is set; no token: there is none */
	struct past_run last, success; /* run, and the last that succeeded */
};

struct batch {
	struct ballot ballot;           /* VOTE_YES: has answered */
	struct names names[BATCH_MOST]; /* owned, and so are the KEYs */
	size_t count;
	bool runs; /* set to be told the last runs, too */
	struct listed answer[SERVERS_MAX][BATCH_MOST];
	bool answered[SERVERS_MAX];
	bool lost[SERVERS_MAX];
};

void batch_init(struct batch *batch, struct quorum *quorum);

/* Takes over the KEY. */
void batch_add(struct batch *batch, struct argument key);

/* One round. */
void batch_round(struct batch *batch);

/* Fills *listed with what a quorum says of the n-th that was added. Returns whether it
 * is held, or may be. May take a few rounds. */
bool batch_tell(struct batch *batch, size_t n, struct listed *listed);

/* Forgets what was added; also at the end. */
void batch_clear(struct batch *batch);

/* Whether the servers that are not lost are enough. */
bool batch_has_quorum(const struct batch *batch);

#endif
