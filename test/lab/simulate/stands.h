/*
 * What stands in for the modules of redlock that call the system: stream.h, deadline.h,
 * threads.h, signals.h, log.h, title.h, last_place.h and guard.h. By the linker's --wrap,
 * clocks and events are the world's, too. All else is redlock's own code, in the very
 * objects that redlock is linked from.
 *
 * The guard of a process is a time here: COMMAND ends then. What the guard itself does
 * is tested by test/holding/guard.bats.
 */
#ifndef STANDS_H
#define STANDS_H

#include "base/lease.h"
#include "run/guard.h"
#include "world.h"

/* What a guard was told last. */
struct stand_guard {
	struct guard guard; /* the first */
	struct lease_times times;
	void (*told)(void *context); /* called when they change */
	void *context;
};

#endif
