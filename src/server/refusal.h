/*
 * Why a server does not count: its last failure, as people are told it. What
 * returns a number returns -1.
 */
#ifndef BLAME_H
#define BLAME_H

#include "server/server.h"

int blame(struct server *server, enum cause cause, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* What it said itself. */
int blame_refusal(struct server *server, struct refusal refusal);

/* It said that, and nobody had asked. */
int blame_unasked(struct server *server, const struct reply *reply);

/* Its reply, where that is a failure; or is one as the server is barred. */
void blame_reply(struct server *server, struct reply *reply);

/* Nobody knows where it is. */
int blame_discovery(struct server *server);

#endif
