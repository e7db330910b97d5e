/*
 * A waiter's requests for a place in each server's queue, one after the other,
 * and the answers: a reply, and later perhaps a message. The message is the
 * late answer to the request whose number it bears; queue.h says why it may be
 * believed. Votes and fences are counted in the lock's ballot.
 *
 * A server is asked after it has confirmed our subscription, and one request at
 * a time. If the subscription fails three times in a row, the server is asked all the
 * same, every 50 to 500 ms, until it can be subscribed to: perhaps requests get there and
 * subscriptions do not. A place without a listener keeps nobody waiting, but whoever asks
 * while it stands first in the line is granted KEY by the answer. The server is asked
 * again when the lease that it has told us of ends, and at least every heartbeat (5 s,
 * ttl/3 if that is less). If KEY belongs to another program, which does not say when it
 * is done, the first in the queue looks every 50 to 500 ms, for all. Redisson says so to
 * its own waiters: if KEY is a hash that another program holds, the first in the queue
 * listens to that channel, too, so that it asks when they do. If replicas must have a
 * grant, the first news of it is no vote: the server is asked again at once, and its
 * replicas with it (queue.h). Two requests to a server are at least 10 ms apart, whatever
 * it answers and however often its connection breaks.
 *
 * What servers have said of the holder may be as old as a heartbeat. Before it is told,
 * those that were not asked just now are asked once more: a look.
 */
#ifndef WAIT_REQUESTS_H
#define WAIT_REQUESTS_H

#include "lock/lock.h"
#include "server/mailbox.h"

#define REQUESTS_RECENT 4  /* whose time of sending is remembered */
#define REQUESTS_EARLIER 8 /* attempts that may have left a place */

struct requests {
	struct lock *lock;
	struct busy *busy;
	struct mailbox *mailbox;
	struct argument redisson; /* the channel of Redisson's waiters; owned */
	/* tokens of earlier attempts that may have left a place: a network that lost
	 * packets may have lost their release, or may deliver it late. A server that
	 * names one as the holder is told once more that it is given back. */
	struct {
		char token[TOKEN_SIZE], hold[TOKEN_SIZE + 2];
		uint32_t told; /* servers; a bit for each */
	} earlier[REQUESTS_EARLIER];
	unsigned attempts;
	int64_t began;     /* when we began to wait, as others shall see it */
	bool news;         /* something is to be done before going to sleep */
	bool by_message;   /* some vote came by message */
	int64_t listening; /* since when the channel is subscribed to */
	int64_t look; /* what was asked before is old news; 0: there is no look */
	struct contact {
		uint64_t sent;    /* number of the last request */
		uint64_t refused; /* number of the last that was refused */
		uint64_t
			oldest; /* number of the oldest that a message may answer */
		int64_t sent_at[REQUESTS_RECENT];
		int moves;             /* grant.moves when it was asked last */
		struct deadline valid; /* of its vote */
		struct deadline due;   /* the next request */
		int64_t place;         /* in its queue, from 0 */
		int64_t pause;         /* ms, doubled with each try */
		bool giving_back;
		int64_t gave_back; /* when */
		bool left; /* given back, and not asked since: no place of ours */
		/* if replicas are to have it: it was granted, and the last request
		 * asks them */
		bool granted, asks_replicas;
		unsigned unheard; /* failed subscriptions when it first answered
				   * without one; 0: it has not */
		bool looks;       /* for all, as another program holds KEY */
	} at[SERVERS_MAX];
};

/* Call when an attempt was taken back: remembers its token, if a place of it may be left. */
void requests_end(struct requests *requests);

void requests_ask_due(struct requests *requests);

/* Begins a look. */
void requests_look(struct requests *requests);

/* When a server that has not answered since has failed. */
struct deadline requests_end_of_look(const struct requests *requests);

/* How many have answered since. */
size_t requests_count_looks(const struct requests *requests);

/* All servers that have not answered since have failed. */
void requests_blame_unseen(struct requests *requests);

/* When a server is to be asked next, or has been silent for too long. */
struct deadline requests_next(const struct requests *requests);

/* Servers that cannot be reached have failed: their vote, and their refusal. */
void requests_blame_silent(struct requests *requests);

/* Moves the votes for different slots to this one. A server has no vote until it has
 * answered that. */
void requests_move(struct requests *requests, int64_t slot);

/* Gives back what one server has granted, and our place there; it is asked
 * again after a while, or when votes of others are there (queue.c). */
void requests_give_back(struct requests *requests, size_t server);

/*
 * Until when to wait for the server's answer to this attempt, by its own
 * distance. A server that has never answered us may be dead, and is not waited
 * for.
 */
struct deadline requests_hope(const struct requests *requests, size_t server);

/* Until when to wait for the server's replicas, as it has granted KEY. */
struct deadline requests_replicas(const struct requests *requests,
				  size_t server);

/* The longest distance (ms) of the servers that have answered this attempt. */
int64_t requests_farthest(const struct requests *requests);

/* Whether it answers, and cannot be subscribed to. */
bool requests_are_unheard(const struct requests *requests, size_t server);

/* Whether there may be a place of ours in the server's queue. */
bool requests_may_queue(const struct requests *requests, size_t server);

/* A grant whose time is over is no vote. */
void requests_drop_late(struct requests *requests);

/* For a struct reply_handler and a struct listener, of struct requests. */
void requests_reply(void *requests, size_t server, const struct reply *reply);
bool requests_have_news(void *requests);
void requests_opened(void *requests, size_t server);
void requests_deaf(void *requests, size_t server);
void requests_changed(void *requests, size_t server);
void requests_message(void *requests, size_t server, const char *text,
		      size_t length);

#endif
