/*
 * Looking at many locks at once: who holds each, where a quorum says the same.
 *
 *	look_init(&look, &quorum);
 *	look_round(&look);			who is there at all
 *	look_add(&look, key, record);		up to LOOK_MOST, then
 *	look_round(&look);			each server is asked once
 *	look_tell(&look, n, &listed);		n from 0 to look.count - 1
 *	look_clear(&look);
 *
 * A server that has failed, or was silent for a round's time, is lost: it is
 * not asked again, and has no vote.
 */
#ifndef LOCK_LOOK_H
#define LOCK_LOOK_H

#include "lock/script.h"
#include "show/holders.h"

struct listed {
	struct argument key; /* the look's */
	enum kind kind;
	int64_t permits;
	int64_t holders;   /* that a quorum has */
	struct seen first; /* one of them */
};

struct look {
	struct lock lock;                     /* for its votes: it has no KEY */
	struct argument pairs[2 * LOOK_MOST]; /* owned: KEY and its record */
	size_t count;
	struct listed answer[SERVERS_MAX][LOOK_MOST]; /* holders 0: not held */
	bool answered[SERVERS_MAX];
	bool lost[SERVERS_MAX];
};

void look_init(struct look *look, struct quorum *quorum);
void look_release(struct look *look);

/* Takes over both names. */
void look_add(struct look *look, struct argument key, struct argument record);

/* One round. */
void look_round(struct look *look);

/* The n-th that was added, where a quorum has it. */
bool look_tell(const struct look *look, size_t n, struct listed *listed);

void look_clear(struct look *look);

/* The number of servers that are not lost, and whether those are enough. */
size_t look_alive(const struct look *look);
bool look_has_quorum(const struct look *look);

#endif
