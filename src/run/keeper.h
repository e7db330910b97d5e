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
 *		keeper_forget(&keeper, locks, count, partings);
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
 * `redlock release` by the same user on this machine is no loss: it finds the
 * keeper by a note in the runtime directory (runtime.h), which names its process,
 * the token and KEY, and has it give the lock back, by SIGUSR2. The keeper does so at its
 * own servers, whatever servers the release names (a token is nobody else's, but for an
 * owner's, below), appends to its note how that
 * went, and ends. So nobody ever takes KEY from a process that goes on, and a release
 * that goes astray leaves no lock that nobody renews. A keeper of several locks has one
 * note with all of them, and is ended by the release of all; the release of some of them
 * is a loss. A release from elsewhere, such as another pid namespace, cannot be told
 * from a loss.
 *
 * A note is removed once its keeper's pid is nobody's. What /proc does not show, or not
 * to us, may live: it is neither signalled nor forgotten.
 *
 * Once in a ttl it makes its notes as if they were new: what cleans /tmp up removes what is
 * old.
 *
 * While PID is stopped because its lock is lost, a release may be PID's own, in a trap:
 * if it waited for the keeper, which waits for PID, it would last until SIGKILL. So the
 * keeper appends to its note at once that it leaves the locks to the release, and goes on
 * stopping PID, as if none had come. When PID has ended, it gives back itself what the
 * release has not.
 *
 * Keepers and releases of an earlier redlock only know SIGUSR1, at which a keeper ends and
 * leaves the lock to whoever has sent it. A keeper that knows SIGUSR2 has a second note,
 * with the names of its servers, and how long a round with them may take: a release
 * waits for a few of these.
 *
 * The token of a reentrant lock does not say which of its holds a release is for: several
 * keepers may keep one each, and what `acquire` has taken without a keeper is held, too.
 * No process may go on without its hold because of somebody else's release. So a hold
 * that nobody keeps goes first (keeper_has_hold, lock_adopt_untracked), of several keys
 * if there is one of each: each acquire has a release of its own. If only some servers
 * say that they have given one back, that is all that is done. Else one keeper is
 * ended, and it is its hold that is given back: one at the servers that the release names
 * (nearness.h) goes before one at some of them, then that of the nearest process above
 * the release, or else the latest. A keeper at none of them keeps another lock, whose
 * owner has the same token, or this one, whose servers have other names: it is not ended,
 * and no hold but an untracked one is given back (keeper_is_elsewhere). If requests of the
 * first attempt were lost, so that it may have given one back, it is not ended, either.
 * Whoever removes the note ends that keeper, so of two releases at once each has its own.
 */
#ifndef RUN_KEEPER_H
#define RUN_KEEPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "lock/lock.h"
#include "run/process.h"

enum keeper_result {
	KEPT_TO_THE_END,  /* PID has ended */
	KEPT_CALLED_BACK, /* keeper_dismiss: by a release of the user's */
	KEPT_GIVEN_BACK, /* an earlier redlock's release: the lock is not ours to give
			  * back any more */
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
	int note, servers;      /* descriptors of its two notes */
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

/* 0, or -1 with *error: there is no such process, or it takes no signals of ours. */
int keeper_follow(struct keeper *keeper, pid_t pid, struct error *error);

/* A descriptor that is readable once PID has ended or a signal has come; only the latter
 * if the kernel has no pidfd. -1 with *error. */
int keeper_interrupt(const struct keeper *keeper, struct error *error);

/* Whether PID has ended, and in words what that means for its lock. */
bool keeper_is_over(const struct keeper *keeper);
void keeper_explain_end(const struct keeper *keeper, struct error *error);

/* 0 in the child; the child's pid in the parent, after the child can be found by
 * _dismiss; or -1 with *error, and there is no child. */
pid_t keeper_fork(struct keeper *keeper, struct lock *const *locks,
		  size_t count, struct error *error);

/* Until one of these. After LOST and OVERDUE, PID has been signalled as wished. Locks
 * that are parted with have been given back. */
enum keeper_result keeper_keep(struct keeper *keeper, struct lock *const *locks,
			       size_t count, struct error *why);

/* How the release of a lock has ended. */
struct parting {
	enum lock_result result; /* LOCK_OK, _NOT_HELD or _ERROR */
	bool unsure;             /* lock_release_is_unsure */
	struct error error;      /* but for LOCK_OK */
};

/* Removes the note of this process, and tells whoever has dismissed it of the partings,
 * by index. NULL: the locks were left. */
void keeper_forget(const struct keeper *keeper, struct lock *const *locks,
		   size_t count, const struct parting *partings);

/* In the parent: has the child give the lock back and end, and waits for that. */
void keeper_recall(pid_t child);

/* Whether a keeper of this user's keeps a hold of these reentrant locks, all of its own. */
bool keeper_has_hold(struct lock *const *locks, size_t count);

/* Whether one may keep these locks, all of its own, which could not be found: *error says
 * why. */
bool keeper_is_hidden(struct lock *const *locks, size_t count,
		      struct error *error);

/* Whether keepers keep such holds only at servers that these locks do not have: *error
 * says so. Then none but an untracked one is to be released. */
bool keeper_is_elsewhere(struct lock *const *locks, size_t count,
			 struct error *error);

enum dismissal {
	DISMISSED_NONE, /* there is no such keeper, or it has not ended in time */
	DISMISSED_LEFT, /* it leaves the locks: they are ours to release */
	DISMISSED_DONE, /* it has given them back: partings, by index, say how */
	DISMISSED_ELSEWHERE, /* so it has, at servers that are not all ours */
};

/* Ends a keeper of this user's that keeps these locks, all of its own; while it stops
 * PID, it only leaves them. If they are reentrant, its holds are theirs from then on.
 * partings: NULL if it is to leave them. */
enum dismissal keeper_dismiss(struct lock *const *locks, size_t count,
			      struct parting partings[LOCKS_MOST]);

#endif
