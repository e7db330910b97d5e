/*
 * How a release has a keeper (keeper.h) give its locks back. It finds the keeper by its
 * note (note.h), and waits for it to end. So nobody ever takes KEY from a process that
 * goes on, and a release that goes astray leaves no lock that nobody renews.
 *
 * The token of a reentrant lock does not say which of its holds a release is for: several
 * keepers may keep one each, and what `acquire` has taken without a keeper is held, too.
 * No process may go on without its hold because of somebody else's release. So a hold
 * that nobody keeps goes first (dismissal_has_hold, lock_adopt_untracked), of several keys
 * if there is one of each: each acquire has a release of its own. If only some servers
 * say that they have given one back, that is all that is done. Else one keeper is
 * ended, and it is its hold that is given back: one at the servers that the release names
 * (nearness.h) goes before one at some of them, then that of the nearest process above
 * the release, or else the latest. A keeper at none of them keeps another lock, whose
 * owner has the same token, or this one, whose servers have other names: it is not ended,
 * and no hold but an untracked one is given back (dismissal_is_elsewhere). If the first
 * attempt has failed, there may be an untracked one, and no keeper is ended, either.
 * Whoever removes the note ends that keeper, so of two releases at once each has its own.
 */
#ifndef RUN_DISMISSAL_H
#define RUN_DISMISSAL_H

#include <stdbool.h>

#include "base/error.h"
#include "lock/lock.h"
#include "run/note.h"

/* Whether a keeper of this user's keeps a hold of these reentrant locks, all of its own. */
bool dismissal_has_hold(struct lock *const *locks, size_t count);

/* Whether one may keep these locks, all of its own, which could not be found: *error says
 * why. */
bool dismissal_is_hidden(struct lock *const *locks, size_t count,
			 struct error *error);

/* Whether keepers keep such holds only at servers that these locks do not have: *error
 * says so. Then none but an untracked one is to be released. */
bool dismissal_is_elsewhere(struct lock *const *locks, size_t count,
			    struct error *error);

enum dismissal {
	DISMISSED_NONE, /* there is no such keeper, or it has not ended in time */
	DISMISSED_LEFT, /* it leaves the locks: they are ours to release */
	DISMISSED_DONE, /* it has given them back: partings, by index, say how */
	DISMISSED_ELSEWHERE, /* so it has, at servers that are not all ours */
};

/* Ends a keeper of this user's that keeps these locks, all of its own; while it stops
 * PID, it only leaves them. If they are reentrant, its holds are theirs from then on.
 * partings: NULL if it is to leave them. */
enum dismissal dismissal_make(struct lock *const *locks, size_t count,
			      struct parting partings[LOCKS_MOST]);

#endif
