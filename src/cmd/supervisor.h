/*
 * COMMAND under its lock, from its start until nothing of it is left: the guard, the
 * job, the watchdog and --max-hold work together here, in one loop. It prints what the
 * user has to know meanwhile.
 *
 *	supervisor_prepare(&supervisor);	while waiting for the lock; optional
 *	cause = supervisor_start(&supervisor, command, label);
 *	if (cause == 0)
 *		supervisor_wait(&supervisor);	until COMMAND has exited
 *	spared = supervisor_stop(&supervisor);
 *	... release the lock here, if COMMAND was spared ...
 *	supervisor_end(&supervisor);
 *	... or else here ...
 *
 * COMMAND keeps its pid until supervisor_end, as the guard may still be stopping what
 * COMMAND has left. The lock of a COMMAND that was not spared is released only when
 * all of that is over.
 */
#ifndef CMD_SUPERVISOR_H
#define CMD_SUPERVISOR_H

#include "lock/lock.h"
#include "run/child.h"
#include "run/guard.h"
#include "run/job.h"
#include "run/max_hold.h"
#include "run/watchdogs.h"
#include "settings/settings.h"

struct supervisor {
	const struct settings *settings;
	struct lock *const *locks; /* KEY's is the first */
	size_t count; /* 0: COMMAND runs without a lock, and needs no guard */
	int signals;  /* descriptor */
	struct guard guard;
	struct job job;
	struct child child; /* exit: -1 until it has exited */
	struct watchdogs watchdogs;
	struct max_hold max_hold;
	struct deadline max_hold_at; /* never: there is none */
	const struct lock *lost;     /* while COMMAND ran, or NULL */
	struct deadline dead_by;     /* of what is stopped; 0: not yet killed */
	bool named;                  /* what could not be stopped */
	bool ends; /* a signal that ends processes was handed on */
	bool told; /* to stop, by ^Z; COMMAND has not taken the signal yet */
};

/* Makes the guard before there is a lock: the lock is then handed on sooner. If
 * that fails, supervisor_start tries again, and reports it. 0, or -1 with errno. */
int supervisor_prepare(struct supervisor *supervisor);

/* There is no lock: ends what was prepared. */
void supervisor_dismiss(struct supervisor *supervisor);

/* With the lock held. label: for -v. 0, or an errno: COMMAND was not started
 * (ETIME: it was too late). */
int supervisor_start(struct supervisor *supervisor, char *const command[],
		     const char *label);

void supervisor_wait(struct supervisor *supervisor);

/* Also if COMMAND was not started. The connections are the caller's again. True if
 * the guard has not acted, and will not. */
bool supervisor_stop(struct supervisor *supervisor);

/* Waits for the guard, and reaps COMMAND. */
void supervisor_end(struct supervisor *supervisor);

/* After that: whether COMMAND ended while the lease lasted, but we were stopped, and the
 * lease is over by now. So KEY may be gone, and that is no loss. */
bool supervisor_is_late(const struct supervisor *supervisor);

#endif
