/*
 * All locks that are held: their records are looked for with SCAN, a page at a
 * time, and each page's locks are then asked for on every server.
 *
 * A lock is listed where a quorum has it. Any quorum has a server in common
 * with any set of servers that leaves out fewer than that; so it is enough to
 * scan so many of those that answer.
 *
 * SCAN may tell a name twice, and servers tell the same names: a lock that has
 * been listed is remembered (keyset.h). One that is taken or given back
 * meanwhile may be listed or not.
 */
#ifndef LOCK_LIST_H
#define LOCK_LIST_H

#include "show/batch.h"

struct lister {
	void *context;
	/* False to stop. key lives for the call only. */
	bool (*found)(void *context, const struct listed *listed);
	/* NULL, or told after each page */
	void (*progress)(void *context, uint64_t looked_at, uint64_t locks);
};

/* Lists the locks whose KEY the pattern (glob.h) matches; NULL for all. 0, or
 * -1 with *error where no quorum answers (any more). The quorum's servers may
 * send large replies from here on. */
int lock_list(struct quorum *quorum, const char *pattern,
	      const struct lister *lister, struct error *error);

#endif
