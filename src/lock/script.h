/*
 * The protocol's requests: one Lua script each (lua/), run by one server, with the
 * database, KEY, what belongs to it, and a token.
 *
 * Acquire and release are one script, which is named by the SHA1 of its text and sent
 * only to a server that does not know it (server.h). So the first run after a server's
 * start pays one more round trip, and all others save the server most of the work that
 * a lock costs: to read 14 KB and to compute their SHA1. The others, and those with
 * --replicas or of redlock doctor, are sent whole with EVAL.
 *
 * An acquire that has no answer yet and its release have to fit into 16 KiB, with
 * room for names and texts: a Redis server reads as much at once. If it was stopped,
 * or slow, we may have ended by then. It fails to send us the first answer, and drops
 * what it has not read: KEY would stay taken until its lease ends. By their SHA1 both
 * are short: either the server knows the script, and executes both, or it has executed
 * neither. A release that follows an acquire which was sent whole hands KEY on by a
 * shorter script (take_back.lua). The end of a run is not noted there; the servers that
 * granted KEY note it.
 */
#ifndef LOCK_SCRIPT_H
#define LOCK_SCRIPT_H

#include "lock/lock.h"

/* An attempt that leaves no place in the queue. */
void script_acquire(struct lock *lock, size_t server);

/* An attempt that stays in the queue. request: its number; waited: ms. how: bits of enum
 * asking; ASK_REPLICAS: it is known to have been granted, and asks whether replicas have
 * that. */
void script_queue(struct lock *lock, size_t server, uint64_t request,
		  int64_t waited, unsigned how);

/* Puts a lock back that the server has lost, with the largest fence known,
 * even if others are in the queue. */
void script_put_back(struct lock *lock, size_t server);

void script_extend(struct lock *lock, size_t server);

/* Asks whether the owner has a hold that nobody keeps. */
void script_untracked(struct lock *lock, size_t server);

/* counts: its answer is waited for. */
void script_raise(struct lock *lock, size_t server, bool counts);

/* An acquire that has not been sent yet is then never sent. min_hold: ms for
 * which KEY stays taken. */
void script_release(struct lock *lock, size_t server, int64_t min_hold);

/*
 * For those who look at locks. token: in whose name; inspect tells only whether
 * it holds KEY ("": all holders), and break does its work once for each.
 */

/* Asks who holds KEY, from a place on that the last answer named ("": the first), and
 * who waits for it, without the first `waiters`. */
void script_inspect(struct quorum *quorum, size_t server,
		    const struct names *names, const char *token,
		    const char *place, size_t waiters);

/* holders: the digests of the tokens that KEY may be taken from, with a blank after each.
 * foreign: even if KEY is not a lock. why: for those that lose it
 * (record_describe_breaker). */
void script_break(struct quorum *quorum, size_t server,
		  const struct names *names, const char *token,
		  const char *holders, bool foreign, const char *why);

/* digests: of the tokens that are asked, a blank after each. */
void script_ask(struct quorum *quorum, size_t server, const struct names *names,
		const char *digests, const char *why);

/* How the last runs of KEY ended. */
void script_history(struct quorum *quorum, size_t server,
		    const struct names *names);

/* The next records, from the cursor on. */
void script_scan(struct quorum *quorum, size_t server, const char *cursor,
		 const char *pattern);

/* Whether a cluster's node would abort at SPUBLISH. */
void script_shard(struct quorum *quorum, size_t server);

/* What the server lets us do (rights.h). dead: a name that no key has, or "" if no key
 * has any of names. takes: KEY is to be taken, and not only waited for. */
void script_rights(struct quorum *quorum, size_t server,
		   const struct names *names, const char *dead, bool takes);

#define BATCH_MOST 50

/* Who holds each of up to BATCH_MOST, and how many wait for it. runs: how its last
 * runs ended, too. */
void script_batch(struct quorum *quorum, size_t server,
		  const struct names *names, size_t count, bool runs);

#endif
