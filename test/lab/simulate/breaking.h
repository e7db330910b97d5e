/*
 * Somebody asks the holders of a key to stop, as `redlock break` does, and what he is told is
 * judged:
 *
 *  - A holder that has released the key, or whose lease is over, does not run.
 *  - While it is calm, the key is free when the leases are over that were left: nobody goes
 *    on renewing.
 */
#ifndef BREAKING_H
#define BREAKING_H

#include "cmd/session.h"
#include "plan.h"

/* A client has a key, by this token, and COMMAND begins. */
void breaking_begin(size_t client, size_t key, const char *token);

/* A client is now one who asks; nobody asks the owner of a reentrant lock. */
void breaking_ask(size_t client, struct session *session);

#endif
