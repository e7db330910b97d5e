/*
 * The masters of a cluster that have slots, as CLUSTER NODES of one node names
 * them, for requests that go to all of them.
 */
#ifndef NODES_H
#define NODES_H

#include "net/url.h"

#define NODES_MAX 16384 /* each has a slot */

struct nodes {
	struct url *list; /* owned: hosts and ports */
	size_t count;
};

void nodes_release(struct nodes *nodes);

/* host: of the node that was asked, which may not know its own. -1 if text is
 * no such answer, or names more than NODES_MAX; then nodes is empty. */
int nodes_read(struct nodes *nodes, const char *text, const char *host);

#endif
