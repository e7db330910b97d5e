/*
 * --max-hold: COMMAND is stopped once it has held the lock for that long.
 *
 *	max_hold_start(&max_hold, &child, badge, at, kill_after);
 *	... poll until max_hold_next(&max_hold) ...
 *	if (max_hold_act(&max_hold)) it has just begun
 *	max_hold_is_over(&max_hold)
 *	max_hold_release(&max_hold);
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
 * reaped before _release, so that no other process has its pid or group.
 */
#ifndef RUN_MAX_HOLD_H
#define RUN_MAX_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "run/child.h"
#include "base/deadline.h"
#include "run/tree.h"

struct max_hold {
	struct child *child;
	struct deadline term, kill; /* when to send SIGTERM, SIGKILL */
	int64_t kill_after;         /* ms */
	const char *badge;
	struct tree tree;
	bool begun;
};

/* badge (ancestry.h) outlives it; at may be never. */
void max_hold_start(struct max_hold *max_hold, struct child *child,
		    const char *badge, struct deadline at, int64_t kill_after);

/* COMMAND is stopped for another reason. What was not begun never will be. */
void max_hold_cancel(struct max_hold *max_hold);

/* When to call _act again. */
struct deadline max_hold_next(const struct max_hold *max_hold);

/* Does what the clock says. True the one time when it begins. */
bool max_hold_act(struct max_hold *max_hold);

/* There is nothing to wait for: it has not begun, or nothing is left. */
bool max_hold_is_over(const struct max_hold *max_hold);

void max_hold_release(struct max_hold *max_hold);

#endif
