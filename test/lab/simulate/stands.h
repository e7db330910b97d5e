/*
 * What stands in for the modules of redlock that call the system: stream.h, deadline.h,
 * threads.h, signals.h, log.h, title.h, last_place.h, drain.h, local.h, tls_load.h and
 * guard.h. By the linker's --wrap, clocks and events are the world's, too. All else is
 * redlock's own code, in the very objects that redlock is linked from. Threads are fibers
 * of their process.
 *
 * The guard of a process is a time here: COMMAND ends then. What the guard itself does
 * is tested by test/holding/guard.bats.
 */
#ifndef STANDS_H
#define STANDS_H

#include "base/lease.h"
#include "lock/lock.h"
#include "run/guard.h"
#include "world.h"

/* What a guard was told last. */
struct stand_guard {
	struct guard guard;          /* must come first */
	struct lease_times times;    /* the earliest */
	void (*told)(void *context); /* called when they change */
	void *context;
};

/* The guard is entrusted with these locks. */
void stand_entrust(struct stand_guard *stand, struct lock *const *locks,
		   size_t count, int64_t kill_after);

#endif
