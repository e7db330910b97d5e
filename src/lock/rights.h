/*
 * What our user may not do on a server.
 *
 * A user who could take a lock, but not keep it or give it back, must be refused
 * before COMMAND runs. What a lock needs later is asked for in front of each
 * acquire (lua/needs.lua), which costs no round trip, and no Redis command since
 * Redis 7. A refusal does not say which rights are missing: a server names one at
 * most, and none before Redis 7.2. So they are asked for after a refusal.
 */
#ifndef LOCK_RIGHTS_H
#define LOCK_RIGHTS_H

#include "lock/lock.h"

#define RIGHTS_TEXT 320 /* bytes */

/* " +del ~nightly": a list of script_rights' answer. 1: what a lock needs; 2: what
 * it can do without. */
const char *rights_read(char text[RIGHTS_TEXT], const struct reply *reply,
			size_t list);

/* The same for commands that the server does not have: " type pttl". */
const char *rights_read_missing(char text[RIGHTS_TEXT],
				const struct reply *reply, size_t list);

/* After an attempt that has failed. If servers have refused it for lack of rights,
 * asks them which, and explains the failure again; else does nothing. */
void rights_explain(struct lock *lock, int interrupt, struct error *error)
	__attribute__((noinline)); /* others need no stack for it */

#endif
