#include "show/inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lock/ballot.h"
#include "lock/script.h"

#define PAGES_MOST 100 /* SHOWN_MOST of each take half of that */

/* The most servers that one holder is known to have. */
static size_t best_holder(const struct view *view, bool *whole)
{
	size_t best = 0;

	*whole = false;
	for (size_t n = 0; n < view->holders.count; n++) {
		const struct seen *holder = &view->holders.seen[n];

		*whole |= !view_is_partial(view, holder);
		if (seen_count(holder) > best)
			best = seen_count(holder);
	}
	return best;
}

/* Whether what is still out can change nothing. */
static bool is_known(void *context)
{
	const struct view *view = context;
	const struct lock *lock = &view->lock;
	size_t need = quorum_size(lock->quorum), out = 0, best;
	bool whole;

	if (!view->hasty)
		return false;
	for (size_t i = 0; i < lock->quorum->count; i++)
		out += lock->vote[i] == VOTE_PENDING ||
		       (lock->vote[i] == VOTE_YES && !view->complete[i]);
	best = best_holder(view, &whole);
	return whole ||
	       (best + out < need && ballot_count(lock, VOTE_YES) >= need);
}

static bool gather(struct view *view)
{
	struct judge judge = {view, view_hear, is_known};
	struct quorum *quorum = view->lock.quorum;

	return quorum_gather(quorum, deadline_in(quorum->timeout), &judge) ==
	       GATHER_OVER;
}

static bool ask_next_page(struct view *view)
{
	struct lock *lock = &view->lock;
	bool asked = false;

	quorum_round(lock->quorum);
	for (size_t i = 0; i < lock->quorum->count && !lock->alias; i++) {
		if (lock->vote[i] != VOTE_YES || view->complete[i])
			continue;
		/* one that is silent from here on has not answered */
		lock->vote[i] = VOTE_PENDING;
		view->standing[i] = STANDING_UNKNOWN;
		script_inspect(lock, i, view->told_holders[i],
			       view->told_waiters[i]);
		asked = true;
	}
	return asked;
}

static int by_age(const void *a, const void *b)
{
	const struct seen *one = a, *other = b;

	if (one->who.held != other->who.held)
		return one->who.held > other->who.held ? -1 : 1;
	return one->order < other->order ? -1 : one->order > other->order;
}

static void sort(struct crowd *crowd)
{
	if (crowd->count > 1)
		qsort(crowd->seen, crowd->count, sizeof(*crowd->seen), by_age);
	if (crowd->total < (int64_t)crowd->count)
		crowd->total = (int64_t)crowd->count;
}

/* What came of the answers; a vote is an answer here. */
static int conclude(struct view *view, struct error *error)
{
	sort(&view->holders);
	sort(&view->waiters);
	if (ballot_has_quorum(&view->lock) && !view->lock.alias)
		return 0;
	ballot_explain_failure(&view->lock, error);
	return -1;
}

static bool is_silent(const struct lock *lock, size_t i)
{
	return lock->quorum->servers[i].owed_count > 0;
}

int lock_inspect(struct view *view, struct error *error)
{
	struct lock *lock = &view->lock;
	unsigned pages = 1;
	bool going;

	ballot_open(lock);
	for (size_t i = 0; i < lock->quorum->count; i++) {
		if (is_silent(lock, i))
			lock->vote[i] = VOTE_FAILED;
		else
			script_inspect(lock, i, 0, 0);
	}
	going = gather(view);
	while (going && pages++ < PAGES_MOST && ask_next_page(view))
		going = gather(view);
	return conclude(view, error);
}

int lock_is_held(struct view *view, const char *token, struct error *error)
{
	bool whole;

	view->hasty = true;
	if (token != NULL)
		snprintf(view->lock.token, sizeof(view->lock.token), "%s",
			 token);
	if (lock_inspect(view, error) < 0)
		return -1;
	best_holder(view, &whole);
	return whole;
}

int lock_break(struct view *view, const char *mark, bool foreign,
	       struct error *error)
{
	struct lock *lock = &view->lock;

	view_forget(view);
	token_make(lock->token); /* names this request */
	ballot_open(lock);
	for (size_t i = 0; i < lock->quorum->count; i++)
		script_break(lock, i, mark, foreign);
	gather(view);
	for (size_t i = 0; i < lock->quorum->count; i++)
		if (view->standing[i] == STANDING_MISUSED)
			view->standing[i] = STANDING_CHANGED;
	return conclude(view, error);
}
