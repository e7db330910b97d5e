/*
 * Somebody asks the holders of a key to stop, as `redlock break` does, and what he is told is
 * judged:
 *
 *  - A holder that has released the key, or whose lease is over, does not run.
 *  - While it is calm, the key is free when the leases are over that were left: nobody goes
 *    on renewing.
 *
 * Or he takes the key away.
 */
#ifndef BREAKING_H
#define BREAKING_H

#include "cmd/session.h"
#include "plan.h"

/* A client has a key, by this token, and COMMAND begins. Returns whether a server has taken
 * the key away from that token. */
bool breaking_begin(size_t client, size_t key, const char *token);

/* A client is now one who asks; nobody asks the owner of a reentrant lock. */
void breaking_ask(size_t client, struct session *session);

/* It takes an exclusive key away from whoever has it, as `redlock break --now` does. The
 * judges are told who may run on. */
void breaking_force(size_t client, struct session *session);

/* From the beginning of the world: servers are watched as they do so. */
void breaking_watch(void);

#endif
