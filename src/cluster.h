/*
 * The masters of a cluster, as a majority of the nodes that its URL names tell
 * them: for what has to ask all of them. One node's word is not enough, as whoever
 * is named is sent the login.
 */
#ifndef CLUSTER_H
#define CLUSTER_H

#include "nodes.h"
#include "server.h"

/*
 * Asks all of the server's seeds at once. A majority must name the very same
 * masters; a minority that names others, or nothing, is passed over. It is no
 * majority while they hear of a failover one after the other.
 *
 * 0, and the caller releases *nodes; or -1 with server->why. timeout: ms.
 */
int cluster_ask(struct server *server, int64_t timeout, struct nodes *nodes);

#endif
