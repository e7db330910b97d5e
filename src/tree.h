/*
 * The processes that belong to COMMAND, for the guard to stop: its process
 * group, whatever descends from it, and the groups that those lead (a nested
 * redlock gives its own COMMAND one). Not those that have left it for good: a
 * daemon has neither its group nor its parents.
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
};

/* Sends number (0 for none) to every process that is alive; how many are. */
size_t tree_signal(const struct tree *tree, int number);

/* Sends number to COMMAND's group, at one moment; where the group is shared,
 * as tree_signal. */
void tree_signal_group(const struct tree *tree, int number);

#endif
