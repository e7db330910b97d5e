/*
 * Waiting for a lock in the servers' queues (redlock-protocol(7), Waiting).
 *
 *	queue_init(&queue, &lock, &busy);
 *	do
 *		result = queue_wait(&queue, until, &error);
 *	while (result == LOCK_AGAIN, after a pause)
 *	queue_release(&queue);
 *
 * queue_wait subscribes to a channel of its own on every server, and then asks
 * each for KEY with a place in its queue. Place and channel are this attempt's:
 * of two waiters that use one token (reentrant locks) neither takes, or gives
 * up, what the other waits for. A server whose KEY becomes
 * free for us says so by a message; this is the late answer to the request
 * whose number it bears, and is judged like any answer.
 *
 * Why no grant is believed for too long:
 *  - Its validity is counted from when the request was sent that it answers,
 *    not from when it came. The server says how long after that request the
 *    grant ends, by its own clock and so but for the drift; that the request
 *    came later than it was sent makes the grant end later, not sooner.
 *  - It is at most 3 s from now. So long is the lease that a server gives to
 *    one whose answer it has not had: whoever dies as it is granted KEY, or is
 *    cut off, keeps the others out no longer. The holder renews it at once
 *    (lock->renew), and COMMAND is stopped within those 3 s where it cannot
 *    (watchdog.h). The next in line is told, and asks when they are over.
 *  - A message that answers a request which has had a later answer already is
 *    stale: that grant has been seen or has ended. So is one that comes twice.
 *    (Who only waits until KEY is free holds nothing, and believes it: else the
 *    one message that says so could cross with its next request, and be lost.)
 *  - Whatever is taken back is not asked for again under the same token, so
 *    a message for it is for a channel that nobody listens to, and a release
 *    that is late finds nothing of ours. The one exception is what a single
 *    server alone had granted (below): there the release must have been
 *    answered, on a connection that had not broken, before it is asked again;
 *    else that server never gets the token again (lock->barred).
 *  - A server that was restarted has no vote before it has said since when it is
 *    up, which is on the connection for requests, and may be behind a message.
 *  - Votes whose time is over do not count. With less than half of the lease
 *    left, or where nobody will renew it (lock->room is 0), the lock is confirmed
 *    by a round of its own before anybody relies on it.
 *
 * Why no wake-up is lost: the request goes out when the subscription has been
 * confirmed, on that server; a connection that broke is opened again and the
 * request made again. Besides, each server is asked again when the lease that
 * it told of ends, and at least every 5 s (ttl/3 where that is less). That also
 * brings a waiter back whom a server took for dead.
 *
 * Why nothing is left: every end but a grant takes the attempt back on every
 * server (attempt.h); after a grant those servers that were not needed for it
 * are given the lock, or, where others have it, our place is given up there.
 *
 * Several waiters may each be granted KEY by too few servers. That is known only
 * when those that have not spoken are overdue by their own distance, or are too
 * few to make a quorum of what is granted: else a near server's grant would be
 * given back before a far one can have spoken, by each waiter in turn, and nobody
 * would be served. (Nothing is hoped of a server that has not answered us before:
 * one that is dead is not felt.) Then those waiters ask the
 * other servers once more; who is then still short of a quorum gives back what
 * it has (LOCK_AGAIN), and comes again after a random pause, with the time that
 * it has waited. But where a quorum of servers names one holder, only what the
 * others have granted is given back: they have lost its lock, and it will put
 * it back there.
 */
#ifndef QUEUE_H
#define QUEUE_H

#include "requests.h"

struct queue {
	struct lock *lock;
	struct mailbox mailbox;
	struct listener listener;
	struct argument channel;
	struct requests requests;
	struct error outage; /* that was told; code 0: there is none */
	bool asked_again; /* those that have not granted it, as others have */
	int64_t partial; /* when too few votes are given up; 0: there are none */
	int64_t patience;                      /* ms, with too few votes */
	char before[SERVERS_MAX][HOLDER_MARK]; /* whom we have waited for */
	/* called when who is ahead may have changed, and each second where a
	 * live line is shown (log.h); NULL for none */
	void (*show)(struct queue *queue);
	int64_t shown; /* for show: the place that the title names */
};

/* busy tells who holds KEY, from the last refusal; it must outlive the queue. */
void queue_init(struct queue *queue, struct lock *lock, struct busy *busy);
void queue_release(struct queue *queue);

/*
 * An outage is told of once, and waited through.
 *
 * OK: lock is held as after lock_acquire. BUSY: until has passed. AGAIN: wait a
 * moment and call again. After anything but OK nothing is left on any server
 * that answers. ERROR with queue_is_deaf: the servers let nobody listen.
 */
enum lock_result queue_wait(struct queue *queue, struct deadline until,
			    struct error *error);

/* Whether so many servers refuse subscriptions that no quorum is left. */
bool queue_is_deaf(const struct queue *queue, const char **server,
		   const char **why);

#endif
