/*
 * Waiting for a lock in the servers' queues (redlock-protocol(7), Waiting).
 *
 *	queue_init(&queue, &lock, &busy);
 *	do
 *		result = queue_wait(&queue, wait, &error);
 *	while (result == LOCK_AGAIN, after a pause)
 *	queue_release(&queue);
 *
 * queue_wait subscribes to a channel of its own on every server, and then asks
 * each for KEY with a place in its queue. Place and channel belong to this
 * attempt: if two waiters use one token (reentrant locks), neither can take or
 * give up the other's place. When KEY becomes free for us on a server, that
 * server publishes a message. The message is the late answer to the request
 * whose number it bears, and is judged like any answer.
 *
 * Why no grant is believed for too long:
 *  - Its validity is counted from when the request was sent, not from when the
 *    message came. The server says how long after the request's arrival the
 *    grant ends. That is by its own clock, so the drift is taken off. The
 *    request arrived after it was sent, so the grant ends later than we count,
 *    not sooner.
 *  - The server's clock may be set, as Redis has no other. If it is set forward between
 *    the request and the grant, the server counts too much. So we count the time
 *    from the request to the message, too. Ours is longer by the time that both take on
 *    their way: at most 100 ms and four round trips, or the server timeout if that is less.
 *    If the difference is larger, or ours is shorter by more than the drift, then the clock was
 *    set, the message was late, or we were stopped. Then we rely only on what our own
 *    clock says: a lease (3 s) that did not begin before we sent the request. If that
 *    is over, the server is asked again: if KEY is still ours, it is granted again.
 *    What is left: a clock that is set forward by as much as the message is late.
 *  - It is at most 3 s from now. A server gives no longer lease to a waiter
 *    that has not answered yet, so a waiter that dies or is cut off at its
 *    grant keeps the others out no longer. The holder renews the lock at once
 *    (grant.renew); if it cannot, COMMAND is stopped within those 3 s
 *    (watchdog.h). The next in line is told about the 3 s, and asks when they are
 *    over.
 *  - A message is stale if a later request has been answered already: that
 *    grant has been seen or has ended. A message that comes twice is stale,
 *    too. (A waiter that takes nothing believes stale messages: otherwise the one
 *    message that KEY is free could cross with its next request, and be lost.)
 *  - What is given back is not asked for again under the same token. So a late
 *    message goes to a channel that nobody listens to, and a late release finds
 *    nothing of ours. The one exception is a grant by a single server alone
 *    (below): that server is asked again only after it has answered the
 *    release, on a connection that had not broken. Otherwise it never gets the
 *    token again (lock->barred).
 *  - Once there is a quorum, no message is read: while fences are raised or the
 *    lock is confirmed, only the answers to that count. A grant that comes in
 *    this time knows nothing of the fence, and may end sooner than we have
 *    counted. Its server is given the lock like the others that were not
 *    needed, or is released.
 *  - A server that was restarted has no vote before it has said since when it
 *    is up. It says so on the connection for requests, which may be slower than
 *    a message.
 *  - If replicas must have it (quorum.replicas), a grant by message is no vote yet. A
 *    request of our own must be granted KEY again, which writes, and WAIT must say that
 *    the replicas have this write. The grant itself was written on the connection of
 *    whoever released KEY: WAIT on ours, without a write of ours, would prove nothing
 *    (conn.h). Each server's replicas are asked separately: one that lags takes away the
 *    vote of its own server only.
 *  - Votes whose time is over do not count. If less than half of the lease is
 *    left, or nobody will renew it (wish.validity_needed is 0), a round of its
 *    own confirms the lock before anybody relies on it.
 *
 * Why no wake-up is lost: the request goes out after that server has confirmed
 * the subscription. A connection that broke is opened again and the request
 * repeated. Besides, each server is asked again when the lease ends that it
 * told us of, and at least every 5 s (ttl/3 if that is less). This also brings
 * back a waiter that a server took for dead.
 *
 * Why the right holder is named: before a line about the wait, and when the time is over,
 * there is a look (requests.h), which takes a round at most. If a quorum grants KEY by then,
 * it is had. If the time is over and too few servers answer, what they said before is told
 * as such (busy->outage).
 *
 * Why nothing is left: every end except a grant takes the attempt back on every
 * server (attempt.h). After a grant, the servers that were not needed for it
 * are given the lock. If others hold it there, our place is given up.
 *
 * Several waiters may each be granted KEY by too few servers. This split is
 * certain only when the servers that have not answered are overdue, by their
 * own distance, or could not complete a quorum. Before that, each waiter in
 * turn would give a near server's grant back before a far server can have
 * answered, and nobody would be served. (A server that has never answered us is
 * not waited for, so a dead one adds no delay.) After that, those waiters ask
 * the other servers once more. A waiter that is still short of a quorum gives
 * back what it has (LOCK_AGAIN), and comes again after a random pause, with the
 * time that it has waited. But if a quorum of servers names one holder, only
 * the grants of the other servers are given back: those have lost its lock, and
 * the holder will put it back there.
 */
#ifndef WAIT_QUEUE_H
#define WAIT_QUEUE_H

#include "wait/requests.h"

struct queue {
	struct lock *lock;
	struct mailbox mailbox;
	struct listener listener;
	struct argument channel;
	struct requests requests;
	struct error outage; /* as reported; code 0: there is none */
	bool lacks_replicas; /* the outage is that it was granted, and too few
			      * replicas had it */
	int64_t replicas_failed; /* ms; when that was last so; 0: never */
	bool asked_again;        /* the servers that have not granted it */
	bool deaf_told;
	bool is_ending;  /* the time is over: this look is the last */
	int64_t partial; /* when to give up too few votes; 0: there are none */
	int64_t partial_time; /* ms, with too few votes */
	char before[SERVERS_MAX]
		   [TOKEN_PREFIX_SIZE]; /* holders that we waited for */
	/* called if somebody else may be ahead of us now, and when the deadline
	 * that it returned has passed; NULL for none */
	struct deadline (*show)(void *context, struct queue *queue);
	void *context; /* show's */
};

/* busy will say who holds KEY, by the last refusal; it must outlive the queue. */
void queue_init(struct queue *queue, struct lock *lock, struct busy *busy);
void queue_release(struct queue *queue);

/* Whether too few servers can be reached, or have a vote, so that nobody can be named
 * who is waited for; and why. */
bool queue_lacks_quorum(const struct queue *queue, struct error *why);

/*
 * An outage is reported once, and waited through. A connection that is closed, as proxies
 * do, and is back at the first try is none.
 *
 * OK: lock is held as after lock_acquire. BUSY: the time is over. AGAIN: wait a
 * moment and call again. After anything but OK nothing is left on any server
 * that answers. ERROR with queue_is_deaf: the servers let nobody listen.
 */
enum lock_result queue_wait(struct queue *queue, struct wait wait,
			    struct error *error);

/* Looks who holds KEY now: false as long as servers may still say so. */
bool queue_look(struct queue *queue);

/* Says that there is no subscription to this server, and why. */
void queue_tell_deaf(const struct queue *queue,
		     const struct server *subscriber);

/* Whether so many servers refuse subscriptions that no quorum is left. */
bool queue_is_deaf(const struct queue *queue, const struct server **subscriber);

#endif
