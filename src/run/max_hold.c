#include "run/max_hold.h"

#include <signal.h>
#include <unistd.h>

void max_hold_start(struct max_hold *max_hold, struct child *child,
		    const char *badge, struct deadline at, int64_t kill_after)
{
	*max_hold = (struct max_hold){
		.child = child,
		.term = at,
		.kill = deadline_never(),
		.kill_after = kill_after,
		.badge = badge,
	};
}

void max_hold_cancel(struct max_hold *max_hold)
{
	max_hold->term = deadline_never();
}

struct deadline max_hold_next(const struct max_hold *max_hold)
{
	return max_hold->begun ? tree_next(&max_hold->tree, max_hold->kill)
			       : max_hold->term;
}

/* All are found before the first is signalled: a process whose parent has ended
 * is hard to find. */
static bool begin(struct max_hold *max_hold)
{
	if (!deadline_passed(max_hold->term))
		return false;
	max_hold->tree = tree_of(max_hold->child->pid, max_hold->child->group,
				 getsid(0), clock_ms(), max_hold->badge);
	tree_look(&max_hold->tree, deadline_never());
	if (child_has_exited(max_hold->child)) {
		max_hold_cancel(max_hold);
		return false;
	}
	tree_signal(&max_hold->tree, SIGTERM);
	max_hold->kill = deadline_in(max_hold->kill_after);
	max_hold->begun = true;
	return true;
}

bool max_hold_act(struct max_hold *max_hold)
{
	if (!max_hold->begun)
		return begin(max_hold);
	tree_watch(&max_hold->tree, max_hold->kill);
	return false;
}

bool max_hold_is_over(const struct max_hold *max_hold)
{
	return !max_hold->begun || tree_is_over(&max_hold->tree);
}

void max_hold_release(struct max_hold *max_hold)
{
	tree_release(&max_hold->tree);
}
