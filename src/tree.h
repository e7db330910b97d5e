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

struct tree {
	pid_t command;  /* 0: not known yet */
	bool own_group; /* command leads it */
	const char *token;
	struct process *known; /* those that were alive when looked at last */
	size_t known_count;
};

/* Looks who is alive and sends them number (0: nothing); how many they are. */
size_t tree_signal(struct tree *tree, int number);

/* Sends number to COMMAND's group, at one moment; where the group is shared,
 * as tree_signal. */
void tree_signal_group(struct tree *tree, int number);

/* Frees what it remembers. */
void tree_release(struct tree *tree);

#endif
