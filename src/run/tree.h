/*
 * The processes that belong to COMMAND, so that they can be stopped: its
 * process group, all its descendants, and the groups and sessions that these
 * lead. A process that had left all of them before, such as a daemon, does not
 * belong to COMMAND.
 *
 * A process whose parent ends is adopted by another, and then nothing shows
 * where it came from. So each process that was found is remembered, by pid and
 * start time, and the first look is done before the first of them is signalled. An
 * orphan that has begun since that look began belongs to COMMAND if it carries the
 * lock's badge (ancestry.h) in its environment, as all that COMMAND starts does,
 * and its new parent does not.
 *
 * Why nobody is missed: what is there when the first look begins is in its list, and
 * is found by its parent. What is not in that list begins after that moment, even if
 * that is before the first signal, which may end its parent at once. As long as
 * its parent lives it is found by that, and later as an orphan. /proc tells when a
 * process began in ticks of 10 ms, rounded down, and the kernel notes that a little
 * before it shows the process. So an orphan counts as well if it began less than two
 * ticks before that moment. A daemon that is as young as that is stopped, too. An
 * older one is not, and an older process is one if its parent ends by itself before
 * the look has come to it.
 *
 * While a process becomes another program it shows no environment, and a process that
 * was read before its parent ended shows the wrong one. So what is new and not ours is
 * read again in each look, and as long as one of them can show no environment yet, the
 * look is not sure that nobody is left.
 *
 * Why nobody is left: while processes run they fork, and a list of them is old
 * when it is complete. So before COMMAND is killed, all processes are stopped,
 * each as soon as it is found, until three looks in a row find nobody new. A
 * stopped process still shows its children, and forks no more. These looks read
 * only processes that the look before has not seen, so they are faster than a
 * chain of processes that live for 3 ms. If something forks faster than that, the
 * search goes on after the kill until it is caught or the time is up. Then
 * tree_left names what is known to be left. A process that has neither the
 * group nor the parents nor the environment of COMMAND is not found.
 *
 * Why no stranger is hit: a pid belongs to COMMAND only if the process began
 * before redlock said so. A single process is signalled by a pidfd, and its
 * start time is read after the pidfd was opened. The number of a group cannot
 * be given away while it has a member, or while COMMAND is in it and not
 * reaped. Once COMMAND is reaped or has left the group, the group is forgotten
 * for good if it is empty, if a process has its number, or if its members are
 * of another session than COMMAND's.
 *
 * Without /proc (a chroot), or with one of another pid namespace, no process
 * can be found. A look that could not be made is not an empty one: COMMAND (by
 * its pidfd) and its group are stopped and killed, and the tree counts as dead
 * once the group is gone or has had time to die. The same holds for members
 * that /proc hides (hidepid=2).
 *
 * Looking through /proc takes time: with thousands of processes, more than
 * lies between the moment to kill COMMAND and the end of its lease. And
 * watching COMMAND end must not keep the machine busy. So between looks only
 * the processes that were found are watched, and looks take no more than a
 * twentieth of the time. A tree that has to be dead at the deadline is stopped
 * earlier: by twice the time of a look, as much for signals, and a little
 * more. A look that is not done by then is given up.
 *
 * With a terminal COMMAND shares its group with redlock and the rest of the
 * pipeline. Then only the members that carry the lock's badge belong to
 * COMMAND, and each is signalled by itself. If we are in a pid namespace inside
 * the job, the number of that group is 0 for all.
 *
 * Reads /proc: proc(5).
 */
#ifndef RUN_TREE_H
#define RUN_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/deadline.h"
#include "base/buffer.h"

#define TREE_DYING 1000 /* ms, that processes may take to die of SIGKILL */

struct tree {
	pid_t command;
	pid_t group; /* COMMAND's and nobody else's; 0: shared, or forgotten */
	pid_t session; /* of that group */
	int64_t since; /* ms: COMMAND was there by then */
	const char *badge;
	bool in_time; /* must be dead at the deadline, rather than killed from it on */
	int pidfd;     /* of COMMAND, or -1 */
	pid_t shared;  /* the group that it shares; -1: none */
	int64_t begun; /* ms: when it was first looked for, or hit; 0: not yet */
	bool checked;  /* whether the pidfd is COMMAND's */
	bool gone;     /* COMMAND was reaped before we looked at it */
	struct process *known; /* those that were alive when looked at last */
	size_t known_count;
	bool blind;           /* nothing can be found */
	bool hidden;          /* the group has members that are not shown */
	bool sure;            /* the last look missed nobody */
	unsigned in_vain;     /* looks in a row that found nobody */
	int64_t looked, cost; /* ms: when, and how long it took */
	int64_t effort;       /* ms, to signal those that are known */
	int64_t killed;       /* ms: when SIGKILL was first sent; 0: not yet */
};

/* COMMAND had this pid, group (0: redlock's) and session at the moment since.
 * */
struct tree tree_of(pid_t command, pid_t group, pid_t session, int64_t since,
		    const char *badge);

/* Looks for all of them; gives up at until. */
void tree_look(struct tree *tree, struct deadline until);

/* Whether there is anybody to signal: after a look as far as that has found, and without one
 * in COMMAND's group. What cannot be seen counts as somebody. */
bool tree_lives(struct tree *tree);

/* Sends number, and SIGCONT, as a stopped process takes nothing else. Both go
 * to COMMAND's group at once, and to COMMAND and its own group if it has left
 * that; if the group is shared, to those that were found. */
void tree_signal(struct tree *tree, int number);

/* Looks what is left of a tree that is to end. From the moment kill on, kills
 * it, at each call. */
void tree_watch(struct tree *tree, struct deadline kill);

/* When to do it again. */
struct deadline tree_next(const struct tree *tree, struct deadline kill);

/* Whether nobody is left, as far as can be seen; after a tree_watch. */
bool tree_is_over(const struct tree *tree);

/* Names those that are left, by pid, user and name. False if there are none. */
bool tree_left(struct tree *tree, struct buffer *text);

/* Frees what it remembers. */
void tree_release(struct tree *tree);

#endif
