/*
 * What a node of a cluster says of all nodes: the text of CLUSTER NODES.
 *
 * A node has an address and, since Redis 7, may have a name
 * (cluster-announce-hostname). Over TLS the name counts before the address, as
 * certificates are for names.
 */
#ifndef SERVER_NODES_H
#define SERVER_NODES_H

#include <stdbool.h>
#include <stddef.h>

#include "net/endpoint.h"

#define NODES_MAX 16384 /* each has a hash slot */

struct nodes {
	struct endpoint *list; /* owned */
	size_t count;
};

void nodes_release(struct nodes *nodes);

/* The masters that have hash slots. host: of the node that says it, which may not
 * know its own. by_name: one that has a name goes by that. -1 if text is no such
 * answer, or names more than NODES_MAX; then nodes is empty. */
int nodes_read(struct nodes *nodes, const char *text, const char *host,
	       bool by_name);

/* Makes *name, which is released first, the name and port of the node at this
 * address, or if that is NULL of the node that says it. -1 if it has none: then
 * it is zeroed. */
int nodes_find_name(const char *text, const struct endpoint *address,
		    struct endpoint *name);

#endif
