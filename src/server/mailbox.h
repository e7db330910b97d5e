/*
 * What servers send unasked: a subscription to one channel on each of them, on
 * connections of its own (a connection that is subscribed takes no other
 * requests), which are opened when they are needed.
 *
 *	mailbox_init(&mailbox, servers, count, timeout, &listener);
 *	mailbox_subscribe(&mailbox, channel);
 *	quorum.mailbox = &mailbox;            polled with the servers from here
 *	...
 *	quorum.mailbox = NULL;
 *	mailbox_release(&mailbox);
 *
 * opened is called for each server once it has confirmed the subscription:
 * what is published from then on arrives, unless the connection breaks. It is
 * then opened again, after a pause, and opened is called once more. Nothing is
 * known of what was published in between. failed is called when a subscription
 * could not be had or broke.
 *
 * A message may be late, may come twice or be forged: it is up to the listener
 * to believe it.
 */
#ifndef MAILBOX_H
#define MAILBOX_H

#include "server/server.h"

struct listener {
	void *context;
	void (*opened)(void *context, size_t server);
	void (*failed)(void *context, size_t server);
	void (*message)(void *context, size_t server, const char *text,
			size_t length);
};

struct mailbox {
	const struct listener *listener;
	const struct server *servers;
	struct server *ears; /* owned */
	size_t count;
	struct argument channel;
	uint64_t ticket;
	int64_t timeout;
	struct {
		enum { EAR_SHUT, EAR_ASKED, EAR_OPEN, EAR_REFUSED } state;
		struct deadline due; /* the next try, or the end of this one */
		unsigned failures;
		bool unsharded; /* a cluster's node that knows no SSUBSCRIBE */
		size_t polled;  /* its first descriptor */
	} ear[SERVERS_MAX];
};

void mailbox_init(struct mailbox *mailbox, const struct server *servers,
		  size_t count, int64_t timeout,
		  const struct listener *listener);
void mailbox_release(struct mailbox *mailbox);

/* Listens to this channel, and to no earlier one any more. The name must live
 * until the next call. */
void mailbox_subscribe(struct mailbox *mailbox, struct argument channel);

bool mailbox_is_open(const struct mailbox *mailbox, size_t server);

/* The connection whose failure is why there is no subscription; NULL if there
 * is one, or it is not known yet. */
const struct server *mailbox_failure(const struct mailbox *mailbox,
				     size_t server);

/* How many refuse subscriptions for good; *ear is the connection to one of
 * them. */
size_t mailbox_refused(const struct mailbox *mailbox,
		       const struct server **ear);

/* For quorum.c, as server_prepare and server_pump. */
size_t mailbox_prepare(struct mailbox *mailbox, struct pollfd *polled,
		       struct deadline *until);
void mailbox_pump(struct mailbox *mailbox, const struct pollfd *polled);

#endif
