/*
 * The protocol's requests: one Lua script each (lua/), sent with EVAL to one
 * server, with the database, KEY, its record and the lock's token.
 *
 * EVAL, not EVALSHA: a short-lived process would pay a round trip for a server
 * that has not seen the script, to save a kilobyte.
 */
#ifndef SCRIPT_H
#define SCRIPT_H

#include "lock.h"

/* "{KEY}:redlock", in KEY's cluster slot; a KEY that has a hash tag of its own
 * is its own prefix. The caller frees the data. */
struct argument script_record_name(struct argument key);

/* A new grant, or, with the fence that it had, one that is put back. */
void script_acquire(struct lock *lock, size_t server, int64_t kept_fence);
void script_extend(struct lock *lock, size_t server);
void script_raise(struct lock *lock, size_t server);

/* An acquire that has not been sent yet is then never sent. */
void script_release(struct lock *lock, size_t server);

#endif
