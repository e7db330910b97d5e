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
 * opened is called for each server once it has confirmed the subscription. What
 * is published from then on arrives, unless the connection breaks. Then it is
 * opened again after a pause, and opened is called once more; what was
 * published in between is lost. failed is called when a subscription is refused
 * or breaks.
 *
 * mailbox_listen_also adds a second channel on one server, for as long as the
 * subscription lasts: another program publishes there that something has changed.
 * changed is called when it is confirmed, and at each message, whatever that says.
 * If the server refuses it, there is none: the listener has to look by itself.
 *
 * mailbox_settle is for a listener that can do without what it would miss: what is
 * open stays open, and nothing is opened any more.
 *
 * A message may be late, come twice or be forged: the listener decides whether
 * to believe it.
 */
#ifndef SERVER_MAILBOX_H
#define SERVER_MAILBOX_H

#include "server/server.h"

struct listener {
	void *context;
	void (*opened)(void *context, size_t server);
	void (*failed)(void *context, size_t server);
	void (*message)(void *context, size_t server, const char *text,
			size_t length);
	void (*changed)(void *context, size_t server);
};

struct mailbox {
	const struct listener *listener;
	const struct server *servers;
	struct server *subscribers; /* owned */
	size_t count;
	struct argument channel, also;
	uint64_t ticket;
	int64_t timeout;
	bool settled;
	struct {
		enum {
			SUBSCRIPTION_SHUT,
			SUBSCRIPTION_ASKED,
			SUBSCRIPTION_OPEN,
			SUBSCRIPTION_REFUSED
		} state;
		struct deadline due; /* the next try, or the end of this one */
		unsigned failures;
		bool unsharded; /* a cluster's node that knows no SSUBSCRIBE */
		bool also;      /* it was asked for the second channel */
		size_t polled;  /* its first descriptor */
	} per_server[SERVERS_MAX];
};

void mailbox_init(struct mailbox *mailbox, const struct server *servers,
		  size_t count, int64_t timeout,
		  const struct listener *listener);
void mailbox_release(struct mailbox *mailbox);

/* Listens to this channel, and to no earlier one any more. The name must live
 * until the next call. */
void mailbox_subscribe(struct mailbox *mailbox, struct argument channel);

/* Also listens to this channel on a server that is open, unless it has been asked
 * for that. It is the same for all servers, and must outlive the mailbox. */
void mailbox_listen_also(struct mailbox *mailbox, size_t server,
			 struct argument channel);

/* Another listener takes the mailbox over. A subscription that is not open, or breaks
 * later, ends, and `failed` is called, here too. False if none is open. */
bool mailbox_settle(struct mailbox *mailbox, const struct listener *listener);

bool mailbox_is_open(const struct mailbox *mailbox, size_t server);

/* How often in a row it could not be opened, for reasons that may pass. */
unsigned mailbox_failures(const struct mailbox *mailbox, size_t server);

/* The connection whose refusal tells why there is no subscription. NULL if there is one,
 * if it is still asked for, or if it has only just broken. */
const struct server *mailbox_failure(const struct mailbox *mailbox,
				     size_t server);

/* How many servers refuse subscriptions permanently; *subscriber is the
 * connection to one of them. */
size_t mailbox_refused(const struct mailbox *mailbox,
		       const struct server **subscriber);

/* For quorum.c, as server_prepare and server_pump. */
size_t mailbox_prepare(struct mailbox *mailbox, struct pollfd *polled,
		       struct deadline *until);
void mailbox_pump(struct mailbox *mailbox, const struct pollfd *polled);

#endif
