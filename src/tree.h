/*
 * The processes that belong to COMMAND, for who has to stop it: its process
 * group, whatever descends from it, and the groups that those lead (a nested
 * redlock gives its own COMMAND one). Not those that have left it for good: a
 * daemon has neither its group nor its parents.
 *
 * A process whose parent ends is adopted by another, and nothing shows any more
 * where it came from. So those that were found once are remembered, by pid and
 * start time, and all are found before the first of them is signalled.
 *
 * To look through /proc takes time, among thousands of processes more than there
 * is between the moment to kill COMMAND and the end of its lease; and who watches it
 * end must not keep the machine busy. So between looks only those that were found
 * are watched, and nobody looks more than a twentieth of the time. Before COMMAND is
 * killed it is stopped for a last look: nothing of it runs any more, and it still
 * shows whose parent it is. Where it has to be gone in time that is so much earlier,
 * and a look that is not done when they are to be killed is given up.
 *
 * In the foreground of a terminal COMMAND shares its group with redlock and
 * the rest of the pipeline. There the group's members count that carry the
 * lock's token in their environment, as all that COMMAND starts do.
 *
 * Reads /proc: proc(5).
 */
#ifndef TREE_H
#define TREE_H

#include <stdbool.h>
#include <sys/types.h>

#include "deadline.h"

struct tree {
	pid_t command;
	pid_t group; /* 0: the one that we are in */
	const char *token;
	bool in_time; /* killed by the time for that, not from then on */
	struct process *known; /* those that were alive when looked at last */
	size_t known_count;    /* 0: it has ended */
	int64_t looked, cost;  /* ms: when, and how long it took */
	bool killing;
};

/* Looks for all of them; in vain where that takes longer than until. */
void tree_look(struct tree *tree, struct deadline until);

/* Sends number, and SIGCONT, as a stopped process takes nothing else, to COMMAND's
 * group, at one moment; where the group is shared, to those that were found. */
void tree_signal(struct tree *tree, int number);

/* Of one that is to end: sees who of it is left. Once it is time for that, kills
 * them, each time. */
void tree_watch(struct tree *tree, struct deadline kill);

/* When to do it again. */
struct deadline tree_next(const struct tree *tree, struct deadline kill);

/* Frees what it remembers. */
void tree_release(struct tree *tree);

#endif
