/*
 * Lists all locks that are held. SCAN finds their records, a page at a time; then all
 * servers are asked for the locks of that page.
 *
 * A lock is listed if a quorum has it, or may have it: a server that does not answer may.
 * Any quorum has a server in common with any set of servers that leaves out fewer than a
 * quorum. So servers are scanned until those that are left, or do not answer, are too few
 * for a quorum. But of a KEY that is free one server may be all that still knows: if these
 * are listed, too, all servers are scanned.
 *
 * SCAN may return a name twice, and several servers return the same names: each KEY
 * is remembered when it is listed, so that it is listed once. A lock that is taken
 * or given back meanwhile may be listed or not.
 *
 * Patterns are those of the shell: fnmatch(3) in the C locale, byte by byte. Servers
 * have other patterns: there ! negates nothing, and there are no classes. So
 * servers are sent only what means the same in both, and what they find is
 * matched here.
 */
#ifndef SHOW_SCAN_H
#define SHOW_SCAN_H

#include "show/batch.h"

struct lister {
	void *context;
	/* False to stop. key lives for the call only. */
	bool (*found)(void *context, const struct listed *listed);
	bool all; /* also those that are not held, as long as their record lasts;
		   * and how their last runs ended */
	/* NULL, or told after each page */
	void (*progress)(void *context, uint64_t looked_at, uint64_t locks);
};

/* Lists the locks whose KEY the pattern matches; NULL for all. 0, or
 * -1 with *error if no quorum answers (any more). The quorum's servers may
 * send large replies from here on. */
int scan_locks(struct quorum *quorum, const char *pattern,
	       const struct lister *lister, struct error *error);

#endif
