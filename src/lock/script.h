/*
 * The protocol's requests: one Lua script each (lua/), sent with EVAL to one
 * server, with the database, KEY, what belongs to it, and the lock's token.
 *
 * EVAL, not EVALSHA: a short-lived process would pay a round trip for a server
 * that has not seen the script, to save a few kilobytes.
 */
#ifndef SCRIPT_H
#define SCRIPT_H

#include "lock/lock.h"

/*
 * The names of what belongs to KEY, all in its cluster slot: the record is
 * "{KEY}:redlock"; a KEY that has a hash tag of its own is its own prefix, and
 * one that is in braces, "{x}" or "{a}b}", has no colon: "{x}redlock". So no
 * two KEYs share a record. The caller frees the data.
 */
struct argument script_record_name(struct argument key);

/* Whether key is another KEY's record, or the name of something that belongs to
 * it, now or later. No lock has such a KEY. */
bool script_is_reserved(struct argument key);

/* What comes behind the record's name. */
struct argument script_name(struct argument record, const char *suffix);

/* The channel of this attempt, by its place in the queue: the token, after the
 * hold of a reentrant lock, as several may wait with one token. Free as above.
 * */
struct argument script_channel(const struct lock *lock);

/* One attempt, that leaves no place in the queue. */
void script_acquire(struct lock *lock, size_t server);

/* An attempt that stays in the queue, by its number; waited in ms. */
void script_queue(struct lock *lock, size_t server, uint64_t request,
		  int64_t waited);

/* One that is put back, with the largest fence known, whoever is queueing. */
void script_put_back(struct lock *lock, size_t server);

void script_extend(struct lock *lock, size_t server);
void script_raise(struct lock *lock, size_t server);

/* An acquire that has not been sent yet is then never sent. linger: ms for
 * which KEY stays taken. */
void script_release(struct lock *lock, size_t server, int64_t linger);

/* Who holds KEY and who waits, but for so many of each that are known. */
void script_inspect(struct lock *lock, size_t server, size_t holders,
		    size_t waiters);

/* mark: of a holder that KEY is to be taken from, or "". foreign: even if it is
 * not a lock. */
void script_break(struct lock *lock, size_t server, const char *mark,
		  bool foreign);

/* The next records, from the cursor on. */
void script_scan(struct lock *lock, size_t server, const char *cursor,
		 const char *pattern);

/* What the server lets us do. */
void script_rights(struct lock *lock, size_t server);

#define LOOK_MOST 100

/* Who holds each of up to LOOK_MOST: pairs are KEY and its record. */
void script_look(struct lock *lock, size_t server, const struct argument *pairs,
		 size_t count);

#endif
