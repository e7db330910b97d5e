/*
 * Looks at many locks at once: who holds each, if a quorum says the same.
 *
 *	batch_init(&batch, &quorum);
 *	batch_round(&batch);			which servers answer at all
 *	batch_add(&batch, key, record);		up to BATCH_MOST, then
 *	batch_round(&batch);			each server is asked once
 *	batch_tell(&batch, n, &listed);		n from 0 to batch.count - 1
 *	batch_clear(&batch);
 *
 * A server is lost if it has failed or was silent for the time of a round: it is not
 * asked again, and has no vote.
 */
#ifndef SHOW_BATCH_H
#define SHOW_BATCH_H

#include "lock/script.h"
#include "show/holders.h"

struct listed {
	struct argument key; /* the batch's */
	/* KIND_NONE: a newer redlock uses KEY, and only first's protocol is
	 * known */
	enum kind kind;
	int64_t permits;
	int64_t holders;   /* as many as a quorum has */
	struct seen first; /* one of them */
};

struct batch {
	struct ballot ballot;                  /* VOTE_YES: has answered */
	struct argument pairs[2 * BATCH_MOST]; /* owned: KEY and its record */
	size_t count;
	struct listed answer[SERVERS_MAX][BATCH_MOST]; /* holders 0: not held */
	bool answered[SERVERS_MAX];
	bool lost[SERVERS_MAX];
};

void batch_init(struct batch *batch, struct quorum *quorum);

/* Takes over both names. */
void batch_add(struct batch *batch, struct argument key,
	       struct argument record);

/* One round. */
void batch_round(struct batch *batch);

/* Whether a quorum has the n-th that was added; *listed is filled then. */
bool batch_tell(const struct batch *batch, size_t n, struct listed *listed);

/* Forgets what was added; also at the end. */
void batch_clear(struct batch *batch);

/* Whether the servers that are not lost are enough. */
bool batch_has_quorum(const struct batch *batch);

#endif
