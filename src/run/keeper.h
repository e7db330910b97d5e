/*
 * A keeper: a process in the background that renews a lock for another process,
 * PID, as long as that lives, and then releases it. It is what a shell script has in
 * place of `redlock run`.
 *
 *	keeper_follow(&keeper, pid)		before the lock is asked for
 *	keeper_interrupt(&keeper)		ends the wait for the lock
 *	child = keeper_fork(&keeper, locks, count);	with the locks held
 *	in the child:
 *		kept = keeper_keep(&keeper, locks, count, &why);
 *		... release the lock, but for KEPT_GIVEN_BACK ...
 *		note_forget(&keeper.notes, locks, count, partings);
 *	in the parent, which then only prints and exits: the connections are the
 *	child's
 *
 * The keeper has a session of its own, /dev/null for standard streams and no
 * descriptor that it has inherited: a `$(...)`, a pipeline or an ssh(1) that
 * started it does not wait for it. Its working directory is /, and its title names
 * KEY and PID. Its first act is a renewal that writes its pid into the record, for those
 * who look at the lock.
 *
 * Why PID does not go on without the lock: validity and rounds are those of
 * watchdog.h, whose loop the keeper runs. At the moment at which `run` would stop
 * COMMAND the keeper sends PID the signal, and later SIGKILL, before validity ends.
 * There is no guard: if the keeper itself is killed or stopped, nobody tells PID,
 * and the lease ends by itself.
 *
 * If PID is not to be stopped, a loss of one lock leaves it the others: they are kept
 * until PID ends, or all are lost. PID is sent a signal for the first loss only. A lock
 * that was broken is still held: it is given back when its lease ends, or PID does.
 *
 * Why it hits no stranger: PID is known by a pidfd, or by its start time if the
 * kernel has none. The group that PID leads cannot get another meaning while PID
 * lives; after that it is looked at every few ms, and is forgotten as soon as nobody
 * lives in it.
 *
 * `redlock release` by the same user on this machine is no loss: it finds the keeper by
 * a note (note.h), and has it give the lock back, by SIGUSR2 (dismissal.h). The keeper does
 * so at its own servers, whatever servers the release names (a token is nobody else's, but
 * for an owner's), appends to its note how that went, and ends. A keeper of several locks is
 * ended by the release of all; the release of some of them is a loss. A release from
 * elsewhere, such as another pid namespace, cannot be told from a loss.
 *
 * Once in a ttl it makes its notes as if they were new: what cleans /tmp up removes what is
 * old.
 *
 * While PID is stopped because its lock is lost, a release may be PID's own, in a trap:
 * if it waited for the keeper, which waits for PID, it would last until SIGKILL. So the
 * keeper appends to its note at once that it leaves the locks to the release, and goes on
 * stopping PID, as if no release had come. When PID has ended, it gives back itself what
 * the release has not.
 */
#ifndef RUN_KEEPER_H
#define RUN_KEEPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "lock/lock.h"
#include "run/note.h"
#include "run/process.h"

enum keeper_result {
	KEPT_TO_THE_END,  /* PID has ended */
	KEPT_CALLED_BACK, /* dismissal.h: by a release of the user's */
	KEPT_GIVEN_BACK, /* by a release of an earlier redlock: the lock is no longer
			  * ours to give back */
	KEPT_UNTIL_TOLD, /* a signal has come */
	KEPT_OVERDUE,    /* max_hold is over; PID was stopped */
	KEPT_LOST, /* *why says how; if PID runs on: all are lost, and have
			  * been given back */
};

struct keeper {
	struct process process; /* PID */
	int pidfd;              /* -1: the kernel has none */
	int signal;             /* to PID if the lock is lost; 0: none */
	bool kill;              /* SIGKILL after it */
	bool group;             /* to the group that PID leads, if it does */
	int64_t kill_after;     /* ms between the two */
	int64_t max_hold;       /* ms, 0: none */
	int signals;            /* descriptor (signals.h) */
	int timer;              /* descriptor, of the keeper's own process */
	struct own_notes notes;
	/* called before PID is sent a signal because of LOST or OVERDUE */
	void (*tell)(const struct keeper *keeper, enum keeper_result kept,
		     const struct error *why);
	/* called to give a lock that is lost back, by its index, if PID runs on */
	void (*part)(const struct keeper *keeper, size_t index);
	void *context;           /* for these */
	const struct lock *lost; /* the latest that is, or NULL */
	bool told;               /* PID has been sent the signal */
	bool left; /* the locks, to a release, while PID was stopped */
	bool is_lost[LOCKS_MOST], is_parted[LOCKS_MOST]; /* by index */
};

/* 0, or -1 with *error: there is no such process, it takes no signals of ours, or it is our
 * own, which ends before the keeper could do anything for it. */
int keeper_follow(struct keeper *keeper, pid_t pid, struct error *error);

/* A descriptor that is readable once PID has ended or a signal has come; only the latter
 * if the kernel has no pidfd. -1 with *error. */
int keeper_interrupt(const struct keeper *keeper, struct error *error);

/* Whether PID has ended, and in words what that means for its lock. */
bool keeper_is_over(const struct keeper *keeper);
void keeper_explain_end(const struct keeper *keeper, struct error *error);

/* 0 in the child; the child's pid in the parent, after the child can be found by
 * dismissal.h; or -1 with *error, and there is no child. */
pid_t keeper_fork(struct keeper *keeper, struct lock *const *locks,
		  size_t count, struct error *error);

/* Until one of these. After LOST and OVERDUE, PID has been signalled as wished. Locks
 * that are parted with have been given back. */
enum keeper_result keeper_keep(struct keeper *keeper, struct lock *const *locks,
			       size_t count, struct error *why);

/* In the parent: has the child give the lock back and end, and waits for that. */
void keeper_recall(pid_t child);

#endif
