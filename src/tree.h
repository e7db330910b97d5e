/*
 * The processes that belong to COMMAND, for whoever has to stop it: its process
 * group, whatever descends from it, and the groups and sessions that those lead.
 * Not those that had left it for good before: a daemon has neither its group nor
 * its parents.
 *
 * A process whose parent ends is adopted by another, and nothing shows any more
 * where it came from. So those that were found once are remembered, by pid and
 * start time, and all are found before the first of them is signalled. Of those
 * that begin later, an orphan is ours too if it carries the lock's mark (held.h) in
 * its environment, as all that COMMAND starts do, and its new parent does not.
 *
 * Why nobody is left: while processes run they fork, and a list of them is old
 * when it is complete. So before COMMAND is killed all are stopped, each as soon
 * as it is found, and looked for again until looks find nobody new; who is
 * stopped still shows whose parent it is, and forks no more. These looks read
 * only what the look before has not seen, so they are faster than a chain of
 * processes that live for 3 ms. What forks faster than anybody can look is
 * hunted on after the kill, until it is caught or the time is up, and what is
 * known to be left then is named (tree_left). A process without the group, the
 * parents and the environment of COMMAND is not found.
 *
 * Why no stranger is hit: a pid belongs to COMMAND if the process began before
 * redlock said that it was COMMAND's. A single process is signalled by a pidfd
 * whose start time was read after it was opened. The number of a group cannot be
 * given away while COMMAND is in it and not reaped, nor while anybody else is in
 * it. Where COMMAND is reaped, or has left it, the group is forgotten for good as
 * soon as it is empty, a process has its number, or its members are of another
 * session than COMMAND's was.
 *
 * Without /proc (a chroot), or with one of another pid namespace, nobody can be
 * found: a look that could not be made is not an empty one. Then COMMAND (by its
 * pidfd) and its group are stopped and killed, and it is over once the group is
 * gone or has had time to die. The same holds for members that /proc hides
 * (hidepid=2).
 *
 * To look through /proc takes time, among thousands of processes more than there
 * is between the moment to kill COMMAND and the end of its lease; and watching it
 * end must not keep the machine busy. So between looks only those that were found
 * are watched, and looks take no more than a twentieth of the time. A tree that
 * has to be dead at the deadline is stopped earlier, by twice the time of a look,
 * as much for signals, and a little more, and a look that is not done by then is given up.
 *
 * With a terminal COMMAND shares its group with redlock and the rest of the
 * pipeline. There the group's members count that carry the lock's mark.
 *
 * Reads /proc: proc(5).
 */
#ifndef TREE_H
#define TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "deadline.h"
#include "output.h"

#define TREE_DYING 1000 /* ms, that processes may take to die of SIGKILL */

struct tree {
	pid_t command;
	pid_t group; /* COMMAND's and nobody else's; 0: shared, or forgotten */
	pid_t session; /* of that group */
	int64_t since; /* ms: COMMAND was there by then */
	const char *mark;
	bool in_time; /* must be dead at the deadline, not killed from it on */
	int pidfd;    /* of COMMAND, or -1 */
	pid_t shared; /* the group that it shares */
	int64_t told; /* ms: when it was first signalled; 0: not yet */
	bool checked; /* whether the pidfd is COMMAND's */
	bool gone;    /* COMMAND was reaped before we looked at it */
	struct process *known; /* those that were alive when looked at last */
	size_t known_count;
	bool blind;           /* nothing can be found */
	bool hidden;          /* the group has members that are not shown */
	bool sure;            /* the last look did not miss any */
	unsigned in_vain;     /* looks in a row that found nobody */
	int64_t looked, cost; /* ms: when, and how long it took */
	int64_t effort;       /* ms, to signal those that are known */
	int64_t killed;       /* ms: when SIGKILL was first sent; 0: not yet */
};

/* COMMAND had this pid, group (0: it shares redlock's) and session at the moment
 * since. */
struct tree tree_of(pid_t command, pid_t group, pid_t session, int64_t since,
		    const char *mark);

/* Looks for all of them; in vain if that takes longer than until. */
void tree_look(struct tree *tree, struct deadline until);

/* Sends number, and SIGCONT, as a stopped process takes nothing else, to COMMAND's
 * group, at one moment, and to a COMMAND that has left it with a group of its own;
 * if the group is shared, to those that were found. */
void tree_signal(struct tree *tree, int number);

/* Of one that is to end: sees what is left of it. Once it is time for that, kills
 * it, each time. */
void tree_watch(struct tree *tree, struct deadline kill);

/* When to do it again. */
struct deadline tree_next(const struct tree *tree, struct deadline kill);

/* Nobody is left, as far as anybody can see; after a tree_watch. */
bool tree_is_over(const struct tree *tree);

/* Names those that are left, by pid, user and name. False if there are none. */
bool tree_left(struct tree *tree, struct buffer *text);

/* Frees what it remembers. */
void tree_release(struct tree *tree);

#endif
