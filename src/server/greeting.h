/*
 * The first exchange with a server, which goes in front of the first command
 * and leaves with it: login, name, and who the server is.
 */
#ifndef GREETING_H
#define GREETING_H

#include "server/server.h"

void greeting_put(struct server *server);

/* Takes one of its replies. -1 where it ends the connection. */
int greeting_take(struct server *server, enum owed_kind kind,
		  const struct reply *reply);

#endif
