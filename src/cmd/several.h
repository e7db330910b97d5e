/*
 * Taking several locks, all or none.
 *
 * A round asks for all of them at once, each by a thread, so keys that are free cost one
 * round trip. If others hold some of them, the first of these, in the bytewise order of the
 * keys, is waited for. Meanwhile the keys before it stay held. Keys after it that were
 * granted are given back before the wait begins. Then comes the next round.
 *
 * Why nobody waits in a circle: a process that waits for a key holds only keys before it.
 * So in any chain of processes, each of which waits for a key that the next one holds,
 * the keys rise. In a round a process may hold any of its keys, but a round ends by
 * itself; if votes were split, after a few attempts. This is not so for nested runs: what
 * a process above holds is not given back, so they may wait in a circle.
 *
 * Why one of several that begin at once is served, even if none of them waits (-n): in
 * its round each may get a key that another one needs, and gives it back only after the
 * other one was refused. So a process that holds all its keys before the refused one
 * waits for that key after all, for three times --server-timeout, if its holder has had it
 * for less than that. After that time only a process that holds all of its own earlier keys,
 * too, still has the key. Of all these processes, consider the one that was refused the
 * last key: the holder of that key was refused none, so it runs. A process that was
 * refused its first key need not wait. The time is one for all the keys that a process waits
 * for in this way, so -n ends soon, however many they are. It is enough for many keys if all
 * servers answer at once; if some are down, all processes may give up.
 *
 * A key may have servers of its own, so an outage may affect one key only. It is waited
 * through if those servers have answered before, or if the wait has a limit. As it may last,
 * nothing is held meanwhile that others may need, unless it began while we stood in line. A
 * busy key comes before one that cannot be reached, whatever their names: it is waited for
 * first, and named at the end. But an outage that is not waited through ends the taking at
 * once, unless COMMAND would then run without the locks: it has to wait until no key is
 * busy, or it would run beside a holder. The other keys were asked only before the wait that
 * an outage has ended, so they are asked once more, even if that is after the limit.
 *
 * Why it comes to an end: but for outages, all keys before the one that is waited for are
 * held, so the next key that is refused comes after it. In each queue a process has the
 * place of the time when its whole wait began.
 *
 * Why no lease is forgotten: during the wait each lock that is held has a watchdog, which
 * renews it until its validity ends, as there is no COMMAND yet that would have to be stopped
 * before that. If it finds that its lock is lost, that ends the wait. After the wait, in the
 * round in which the rest is asked for, all that are held are extended, so each has its
 * whole lease before anybody relies on it. A lock that turns out to be lost by then is
 * asked for anew, like the rest: nothing relies on it yet. But if somebody has broken it,
 * the taking ends (EXIT_LOST). So all locks that are returned were held by a quorum in one
 * and the same round. They are valid until the first of them ends (cmd_valid_until).
 *
 * If too few servers answer in that round, a lock counts as held only if somebody will renew
 * it (wish.validity_needed), and enough of its lease is left to begin with. A lock that
 * nobody will renew is asked for anew, and if that fails, too, that is an outage as above.
 * If half of its lease has passed before the others were granted, another round extends all.
 *
 * Why nothing is left: each attempt that is refused takes itself back (lock.h), and each
 * lock that was granted is released at every end but LOCK_OK: busy, an error, a signal.
 * A signal is looked at in each round and each wait, and once more when all are held. If
 * redlock is killed meanwhile, nobody renews what it holds: the leases end, and its place
 * in a queue is passed over.
 *
 * All keys share one limit of time and of attempts; a round counts as one attempt.
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
