/*
 * The masters of a cluster that have hash slots, for requests that go to all of
 * them, as a majority of the nodes in its URL names them. One node's word is
 * not enough, as redlock logs in to every server that is named.
 */
#ifndef SERVER_CLUSTER_H
#define SERVER_CLUSTER_H

#include "server/nodes.h"
#include "server/server.h"

/*
 * Asks all of the server's seeds at once. A majority must name the very same
 * masters; a minority that names others, or nothing, is passed over. There may
 * be no majority for a moment while the seeds learn of a failover.
 *
 * If there is none, the refusal tells for each seed what is wrong with it, or one master by
 * which its answer differs from the others'.
 *
 * 0, and the caller releases *nodes; or -1 with server->conn.refusal.
 * timeout: ms.
 */
int cluster_ask(struct server *server, int64_t timeout, struct nodes *nodes);

#endif
