/*
 * A waiter's requests for a place in each server's queue, one after the other,
 * and the answers: a reply, and later perhaps a message, which is the late
 * answer to the request whose number it bears (queue.h says why it may be
 * believed). Votes are counted in lock->vote and lock->fences.
 *
 * A server is asked once it listens to us, and one request at a time. It is
 * asked again when the lease ends of which it told, and at least every
 * heartbeat (5 s, ttl/3 if that is less). If KEY belongs to another program,
 * which does not tell when it is done, the head of the queue looks every 50 to
 * 500 ms, for all. Two requests to a server are at least 10 ms apart, whatever
 * it answers and however often its connection breaks.
 */
#ifndef REQUESTS_H
#define REQUESTS_H

#include "lock/ballot.h"
#include "server/mailbox.h"

#define REQUESTS_RECENT 4 /* whose time of sending is remembered */

/* The lease (ms) of a grant by message, until we renew it (settle.lua). */
int64_t requests_first_lease(const struct lock *lock);

struct requests {
	struct lock *lock;
	struct busy *busy;
	struct mailbox *mailbox;
	int64_t began;     /* when the waiting did, as others shall see it */
	bool news;         /* something is to be done before going to sleep */
	bool by_message;   /* some vote came so */
	int64_t listening; /* since when the channel is subscribed to */
	char mark[SERVERS_MAX][HOLDER_MARK]; /* the holders', as told last */
	struct standing {
		uint64_t sent;    /* number of the last request */
		uint64_t refused; /* number of the last that was */
		uint64_t oldest;  /* that may still be answered by a message */
		int64_t sent_at[REQUESTS_RECENT];
		struct deadline valid; /* of its vote */
		struct deadline due;   /* the next request */
		int64_t place;         /* in its queue, from 0 */
		int64_t pause;         /* ms, doubled with each try */
		bool giving_back;
	} at[SERVERS_MAX];
};

void requests_ask_due(struct requests *requests);

/* When somebody is to be asked next, or has been silent for too long. */
struct deadline requests_next(const struct requests *requests);

/* Servers that cannot be reached have failed: lock->vote, and their why. */
void requests_blame_silent(struct requests *requests);

/* Gives back what one server has granted, and our place there; it is asked
 * again after a while. */
void requests_give_back(struct requests *requests, size_t server);

/*
 * Until when to wait for the server's answer to this attempt, by its own
 * distance. A server that has never answered us may be dead, and is not waited
 * for.
 */
struct deadline requests_hope(const struct requests *requests, size_t server);

/* The longest distance (ms) of the servers that have answered this attempt. */
int64_t requests_farthest(const struct requests *requests);

/* Whether there may be a place of ours in the server's queue. */
bool requests_may_queue(const struct requests *requests, size_t server);

/* What has been granted and is over is no vote. */
void requests_drop_late(struct requests *requests);

/* For a struct judge and a struct listener, of struct requests. */
void requests_reply(void *requests, size_t server, const struct reply *reply);
bool requests_have_news(void *requests);
void requests_opened(void *requests, size_t server);
void requests_deaf(void *requests, size_t server);
void requests_message(void *requests, size_t server, const char *text,
		      size_t length);

#endif
