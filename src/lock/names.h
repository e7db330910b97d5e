/*
 * The names of what belongs to KEY on a server, all in KEY's cluster slot.
 *
 * The record is "{KEY}:redlock". A KEY that has a hash tag of its own is its
 * own prefix. A KEY that is in braces, "{x}" or "{a}b}", has no colon:
 * "{x}redlock". So no two KEYs share a record. The other names begin with the
 * record's.
 */
#ifndef LOCK_NAMES_H
#define LOCK_NAMES_H

#include <stdbool.h>

#include "server/server.h"

#define NAMES_SUFFIX "redlock" /* of a record: after a ":", or a hash tag */

struct names {
	struct argument key;
	struct argument record, queue, wishes, waits; /* owned */
};

/* key must outlive the names. It may be any bytes in a struct argument. */
void names_init(struct names *names, const char *key);
void names_init_bytes(struct names *names, struct argument key);
void names_release(struct names *names);

/* The name of KEY's record. The caller frees the data, here and below. */
struct argument names_record(struct argument key);

/* Whether key is another KEY's record, or the name of something that belongs to
 * it, now or later. No lock has such a KEY. */
bool names_are_reserved(struct argument key);

/* The channel of an attempt, by its place in the queue: the token, after the
 * hold of a reentrant lock ("-": none), as several may wait with one token. */
struct argument names_channel(const struct names *names, const char *hold,
			      const char *token);

/* The channel to which Redisson's waiters listen for the end of a lock on KEY. */
struct argument names_redisson(const struct names *names);

#endif
