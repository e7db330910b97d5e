#include "run/max_hold.h"

#include <signal.h>
#include <unistd.h>

void overdue_start(struct overdue *overdue, const struct child *child,
		   const char *mark, struct deadline at, int64_t kill_after)
{
	*overdue = (struct overdue){
		.child = child,
		.term = at,
		.kill = deadline_never(),
		.kill_after = kill_after,
		.mark = mark,
	};
}

void overdue_cancel(struct overdue *overdue)
{
	overdue->term = deadline_never();
}

struct deadline overdue_next(const struct overdue *overdue)
{
	return overdue->begun ? tree_next(&overdue->tree, overdue->kill)
			      : overdue->term;
}

struct deadline overdue_done(const struct overdue *overdue)
{
	return overdue->begun ? deadline_at(overdue->kill.at + TREE_DYING)
			      : deadline_never();
}

/* All are found before the first is hit: whose parent ends is hard to find. */
static bool begin(struct overdue *overdue)
{
	if (!deadline_passed(overdue->term))
		return false;
	overdue->tree = tree_of(overdue->child->pid, overdue->child->group,
				getsid(0), clock_ms(), overdue->mark);
	tree_look(&overdue->tree, deadline_never());
	if (child_has_exited(overdue->child)) {
		overdue_cancel(overdue);
		return false;
	}
	tree_signal(&overdue->tree, SIGTERM);
	overdue->kill = deadline_in(overdue->kill_after);
	overdue->begun = true;
	return true;
}

bool overdue_act(struct overdue *overdue)
{
	if (!overdue->begun)
		return begin(overdue);
	tree_watch(&overdue->tree, overdue->kill);
	return false;
}

bool overdue_is_over(const struct overdue *overdue)
{
	return !overdue->begun || tree_is_over(&overdue->tree);
}

void overdue_release(struct overdue *overdue)
{
	tree_release(&overdue->tree);
}
