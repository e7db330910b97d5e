/*
 * Taking several locks, all or none.
 *
 * All are asked for at once, each by a thread, so that those that are free cost one round
 * trip. If some are refused: what was granted and comes, bytewise, after the first of
 * these is given back; what comes before it is held; and the first is waited for. Then
 * the rest is asked for at once again.
 *
 * Why nobody waits in a circle: whoever waits for a key holds only keys that come before
 * it. So in any chain of waiters, each for a key that the next one holds, the keys
 * rise. What comes after it is given back before the wait begins. A round may have
 * any keys, but ends by itself; if votes were split, after a few attempts.
 *
 * Why one of those that come at once is served, also if none of them waits (-n): each
 * may have got a key in its round that another one needs, and gives it back only after
 * that one was refused. So whoever holds all keys before the one that it was refused
 * waits for this for the time of a round, if it has been held for less than that. After
 * that time the key is held only by one that has all its own keys before it, too; and
 * of those, the one that was refused the last key of all was refused it by one that
 * runs. Whoever was refused its first key need not wait.
 *
 * Why it comes to an end: all keys before the one that is waited for are held, so the
 * next one that is refused comes after it. Whoever waits stands in that queue as of the
 * time when the whole wait began.
 *
 * Why no lease is forgotten: during the wait each lock that is held has a watchdog, which
 * renews it. After the wait, in the round in which the rest is asked for, all that are
 * held are extended, so each has its whole lease before anybody relies on it. One that
 * turns out to be lost by then is asked for anew, like the rest: nothing runs yet that
 * could lose it. So what is returned was held by a quorum in one and the same round. The
 * validity of all is that of the first to end (cmd_valid_until).
 *
 * Why nothing is left: each attempt that is refused takes itself back (lock.h), and each
 * lock that was granted is released at every end but LOCK_OK: busy, an error, a signal.
 * A signal is looked at in each round and each wait, and once more when all are held. If
 * redlock is killed meanwhile, nobody renews what it holds: the leases end, and its place
 * in a queue is passed over.
 *
 * One wait budget is for all: time, and attempts, of which a round is one.
 */
#ifndef CMD_SEVERAL_H
#define CMD_SEVERAL_H

#include "cmd/session.h"
#include "wait/waiter.h"

/* As waiter_acquire, for all locks of the session. After anything but OK, *about is the
 * lock that it is about. */
enum lock_result several_take(struct session *session, struct waiter *waiter,
			      struct lock **about, struct busy *busy,
			      struct error *error);

#endif
