/*
 * What our user may not do on a server.
 *
 * A user who could take a lock, but not keep it or give it back, must be refused
 * before COMMAND runs. What a lock needs later is asked for in front of each
 * acquire (lua/needs.lua), which costs no round trip, and no Redis command since
 * Redis 7. The answer is no more than a refusal, as a server names one right at
 * most, and before Redis 7.2 none. Which rights they are is asked for only then.
 */
#ifndef LOCK_RIGHTS_H
#define LOCK_RIGHTS_H

#include "lock/lock.h"

#define RIGHTS_TEXT 320 /* bytes */

/* " +del ~nightly": a list of script_rights' answer. 1: what a lock needs; 2: what
 * it can do without. */
const char *rights_read(char text[RIGHTS_TEXT], const struct reply *reply,
			size_t list);

/* After an attempt that has failed. If servers have refused it for lack of rights,
 * asks them which, and explains the failure again; else does nothing. */
void rights_explain(struct lock *lock, int interrupt, struct error *error)
	__attribute__((noinline)); /* others need no stack for it */

#endif
