/*
 * Looking at a lock without touching it, and taking it away from whoever holds
 * it.
 *
 *	view_init(&view, &quorum, key);
 *	lock_inspect(&view, &error);
 *	view_release(&view);
 *
 * All servers are asked and waited for, as each one's answer is of interest;
 * one that owes an answer from an earlier view is passed over.
 */
#ifndef LOCK_INSPECT_H
#define LOCK_INSPECT_H

#include "show/holders.h"

/*
 * Fills the view. 0, or -1 with *error where no quorum has answered: what the
 * others said is in the view nevertheless.
 */
int lock_inspect(struct view *view, struct error *error);

/* Whether a quorum has the lock for token (NULL: for anybody): 1 or 0, or -1
 * with *error. Waits no longer than it takes to know. */
int lock_is_held(struct view *view, const char *token, struct error *error);

/*
 * Takes KEY away from all its holders, which are in the view then. A server is
 * left alone if none of its holders has this mark ("": any holder will do), or
 * if KEY is not a lock there and not `foreign`. 0, or -1 as lock_inspect.
 */
int lock_break(struct view *view, const char *mark, bool foreign,
	       struct error *error);

#endif
