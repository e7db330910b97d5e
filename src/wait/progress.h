/*
 * Reports a wait while it goes on: the holder of KEY and since when, our place in
 * the queue, and the time waited.
 *
 *	progress_init(&progress, &lock, clock_ms());
 *	wake = progress_show(&progress, &busy, place, NULL);
 *	progress_end();
 *
 * In the foreground of a terminal that is one live line, drawn each second
 * (log.h). Elsewhere it is a line after 10 s, after 1, 5 and 15 min, and then
 * every 30 min. With -v there is also a line at once; with -q there is none. If
 * either we or the holders seem to have forgotten -P, a line says so at once.
 * The process title names the place.
 *
 * A line that is written says what is so now: before it is due a waiter looks (queue.h).
 * For the live line the servers are asked nothing: it shows what their last refusals
 * said. A waiter asks each server again every 5 s at most (requests.h), so a new
 * holder is known by then.
 */
#ifndef WAIT_PROGRESS_H
#define WAIT_PROGRESS_H

#include "lock/lock.h"

struct progress {
	const struct lock *lock;
	int64_t began; /* clock_ms() */
	int64_t due;   /* ms waited: when the next line is written */
	int64_t place; /* that the title names */
	bool warned;   /* of a forgotten -P */
};

void progress_init(struct progress *progress, const struct lock *lock,
		   int64_t began);

/* After how many ms of waiting the next line is written. */
int64_t progress_after(int64_t waited);

/* Whether progress_show will write a line. */
bool progress_is_due(const struct progress *progress, int64_t place);

/* place: ours in the queue, from 1; 0 for none; -1 if it is not known yet: what
 * is due at once waits for it, for a moment. outage: why there is no quorum now,
 * or NULL. Returns when to call again at the latest. */
struct deadline progress_show(struct progress *progress,
			      const struct busy *busy, int64_t place,
			      const char *outage);

/* Call before anything else is done with the terminal. */
void progress_end(void);

#endif
