/*
 * --max-hold: COMMAND is stopped once it has held the lock for so long.
 *
 *	overdue_start(&overdue, &child, mark, at, kill_after);
 *	... poll until overdue_next(&overdue) ...
 *	if (overdue_act(&overdue)) it has just begun
 *	overdue_is_over(&overdue)
 *	overdue_release(&overdue);
 *
 * At the moment `at` it sends SIGTERM (and SIGCONT, as a stopped process takes
 * no SIGTERM), and kill_after later SIGKILL. Both go to COMMAND's group and
 * all of its tree (tree.h). With a terminal the tree contains neither redlock
 * nor the rest of a pipeline. It is over when nothing of the tree is left.
 *
 * redlock itself does this, in the loop in which it waits for COMMAND, with
 * the lock held and renewed. The guard still waits for the end of the lease:
 * the earlier of the two stops COMMAND.
 *
 * A COMMAND that has exited by then is not stopped any more. It must not be
 * reaped before _release, so its pid and group are nobody else's.
 */
#ifndef OVERDUE_H
#define OVERDUE_H

#include <stdbool.h>
#include <stdint.h>

#include "run/child.h"
#include "base/deadline.h"
#include "run/tree.h"

struct overdue {
	const struct child *child;
	struct deadline term, kill; /* when to send SIGTERM, SIGKILL */
	int64_t kill_after;         /* ms */
	const char *mark;
	struct tree tree;
	bool begun;
};

/* mark (held.h) outlives it; at may be never. */
void overdue_start(struct overdue *overdue, const struct child *child,
		   const char *mark, struct deadline at, int64_t kill_after);

/* COMMAND is stopped for another reason: unless it was begun, it never is. */
void overdue_cancel(struct overdue *overdue);

/* When to call _act again. */
struct deadline overdue_next(const struct overdue *overdue);

/* When those that were to be stopped ought to be dead. */
struct deadline overdue_done(const struct overdue *overdue);

/* Does what the clock says. True the one time when it begins. */
bool overdue_act(struct overdue *overdue);

/* Nothing is to be waited for: it was not begun, or nobody is left. */
bool overdue_is_over(const struct overdue *overdue);

void overdue_release(struct overdue *overdue);

#endif
