/*
 * How the last runs of a KEY went, put together from what all its servers say.
 *
 *	history_init(&history, &quorum, key);
 *	history_read(&history, &error);		once
 *	... history.run[0], the last to begin, to history.run[history.count - 1] ...
 *	history_release(&history);
 *
 * Runs on two servers are one if they have the same token and the same fence. If
 * servers differ in how it ended, the end that most of them know is taken. That it
 * is unknown counts only if no server knows better: the release may have reached a
 * single one. If they differ in when it began by a second or more, the one in the
 * middle is taken. A run whose end is unknown is left out if only a minority of the
 * servers that answered reports it: it was an attempt that had no quorum. A run that
 * began more than an hour ahead comes last, as a wrong clock noted it.
 *
 * Nothing relies on this for safety.
 */
#ifndef SHOW_HISTORY_H
#define SHOW_HISTORY_H

#include "lock/lock.h"
#include "lock/run.h"

#define HISTORY_SHOWN 20 /* runs */

struct history {
	struct names names;
	struct ballot ballot; /* VOTE_YES: has answered */
	struct past_run *run; /* owned; the last to begin comes first */
	size_t count;         /* at most HISTORY_SHOWN */
	size_t known;         /* of run: older ones, too, follow those */
	struct told *told;    /* owned: what each server said */
	size_t told_count, told_capacity;
	bool hasty; /* wait for a quorum only */
};

/* key must outlive the struct. */
void history_init(struct history *history, struct quorum *quorum,
		  const char *key);
void history_release(struct history *history);

/* Takes a server's answer; for a struct reply_handler. */
void history_hear(void *history, size_t server, const struct reply *reply);

/* For those who ask for many KEYs at once: adds a run that a server reports, and puts all
 * of them together. ballot must be filled. A run without a token is none. */
void history_add(struct history *history, size_t server,
		 const struct past_run *run);
void history_merge(struct history *history);

/* Asks all servers, and waits for all of them, but no longer than a round may take.
 * 0, or -1 with *error: no quorum has answered. Either way *history has what was
 * answered. */
int history_read(struct history *history, struct error *error);

/* The run that ended last, and the one of those that succeeded, perhaps one too old to be
 * shown; or NULL. */
const struct past_run *history_last(const struct history *history);
const struct past_run *history_success(const struct history *history);

/* For how long KEY was held by those that are shown, but for those of an unknown end:
 * the median and the longest, ms; -1 if there is none. */
int64_t history_usual(const struct history *history);
int64_t history_longest(const struct history *history);

#endif
