#include "server/mailbox.h"

#include <stdlib.h>
#include <string.h>

#include "server/discovery.h"
#include "base/alloc.h"
#include "base/log.h"

#define RETRY_PAUSE 50 /* ms, doubled each time */
#define RETRY_LONGEST 2000
#define ALSO UINT64_MAX /* the ticket of the second channel */

void mailbox_init(struct mailbox *mailbox, const struct server *servers,
		  size_t count, int64_t timeout,
		  const struct listener *listener)
{
	*mailbox = (struct mailbox){
		.listener = listener,
		.servers = servers,
		.subscribers = xcalloc(count, sizeof(struct server)),
		.count = count,
		.timeout = timeout,
	};
	for (size_t i = 0; i < count; i++) {
		struct url url = url_copy(&servers[i].url);

		server_init(&mailbox->subscribers[i], &url, false, false);
		mailbox->subscribers[i].conn.listens = true;
	}
}

void mailbox_release(struct mailbox *mailbox)
{
	for (size_t i = 0; i < mailbox->count; i++)
		server_release(&mailbox->subscribers[i]);
	free(mailbox->subscribers);
	*mailbox = (struct mailbox){0};
}

static void shut(struct mailbox *mailbox, size_t i)
{
	unsigned failures = mailbox->per_server[i].failures;
	int64_t pause = RETRY_PAUSE << (failures < 6 ? failures : 6);

	log_step("%s: no subscription: %s", mailbox->subscribers[i].url.name,
		 mailbox->subscribers[i].conn.refusal.text);
	server_cut(&mailbox->subscribers[i]);
	/* one that was open is no failure before it cannot be opened again */
	if (!mailbox_is_open(mailbox, i))
		mailbox->per_server[i].failures++;
	mailbox->per_server[i].state = SUBSCRIPTION_SHUT;
	mailbox->per_server[i].due = deadline_in(
		deadline_jitter(pause < RETRY_LONGEST ? pause : RETRY_LONGEST));
	mailbox->listener->failed(mailbox->listener->context, i);
}

static void give_up(struct mailbox *mailbox, size_t i)
{
	mailbox->per_server[i].state = SUBSCRIPTION_REFUSED;
	mailbox->per_server[i].failures++;
	server_cut(&mailbox->subscribers[i]);
	mailbox->listener->failed(mailbox->listener->context, i);
}

/* A cluster's node tells no others what is said in a hash slot, since Redis 7. */
static bool is_sharded(const struct mailbox *mailbox, size_t i)
{
	return mailbox->subscribers[i].url.kind == URL_CLUSTER &&
	       !mailbox->per_server[i].unsharded;
}

static void ask(struct mailbox *mailbox, size_t i)
{
	struct server *subscriber = &mailbox->subscribers[i];
	int plain = !is_sharded(mailbox, i);
	const struct argument unsubscribe = {&"SUNSUBSCRIBE"[plain],
					     (size_t)(12 - plain)};
	const struct argument subscribe[] = {
		{&"SSUBSCRIBE"[plain], (size_t)(10 - plain)},
		mailbox->channel,
	};

	if (mailbox->per_server[i].state == SUBSCRIPTION_REFUSED)
		return;
	/* two channels would end with two answers */
	if (mailbox->per_server[i].also)
		server_cut(subscriber);
	mailbox->per_server[i].also = false;
	server_aim(subscriber, mailbox->channel);
	mailbox->per_server[i].state = SUBSCRIPTION_ASKED;
	mailbox->per_server[i].due = deadline_in(2 * mailbox->timeout);
	if (server_is_up(subscriber))
		server_ask(subscriber, 0, ASK_PLAINLY, &unsubscribe, 1);
	server_ask(subscriber, mailbox->ticket, ASK_PLAINLY, subscribe, 2);
}

void mailbox_subscribe(struct mailbox *mailbox, struct argument channel)
{
	mailbox->channel = channel;
	mailbox->ticket++;
	for (size_t i = 0; i < mailbox->count; i++)
		ask(mailbox, i);
}

/* It is not asked again by itself: server.last is the first channel. */
static void ask_also(struct server *subscriber, const char *command,
		     struct argument channel)
{
	const struct argument words[] = {{command, strlen(command)}, channel};
	struct buffer request = {0};

	request_format(&request, words, 2);
	conn_ask(&subscriber->conn, (struct owed){.ticket = ALSO}, &request);
	buffer_release(&request);
}

void mailbox_listen_also(struct mailbox *mailbox, size_t i,
			 struct argument channel)
{
	struct server *subscriber = &mailbox->subscribers[i];

	if (mailbox->per_server[i].also || !mailbox_is_open(mailbox, i) ||
	    !server_is_up(subscriber))
		return;
	mailbox->also = channel;
	mailbox->per_server[i].also = true;
	ask_also(subscriber, "SUBSCRIBE", channel);
	if (is_sharded(mailbox, i) && server_is_up(subscriber))
		ask_also(subscriber, "SSUBSCRIBE", channel);
}

bool mailbox_settle(struct mailbox *mailbox, const struct listener *listener)
{
	bool any = false;

	mailbox->listener = listener;
	mailbox->settled = true;
	for (size_t i = 0; i < mailbox->count; i++) {
		mailbox->per_server[i].also = false;
		if (mailbox_is_open(mailbox, i))
			any = true;
		else
			give_up(mailbox, i);
	}
	return any;
}

bool mailbox_is_open(const struct mailbox *mailbox, size_t i)
{
	return mailbox->per_server[i].state == SUBSCRIPTION_OPEN;
}

unsigned mailbox_failures(const struct mailbox *mailbox, size_t i)
{
	return mailbox->per_server[i].state == SUBSCRIPTION_REFUSED
		       ? 0
		       : mailbox->per_server[i].failures;
}

const struct server *mailbox_failure(const struct mailbox *mailbox, size_t i)
{
	const struct server *subscriber = &mailbox->subscribers[i];

	/* no why while it is asked */
	return mailbox->per_server[i].failures > 0 &&
			       subscriber->conn.refusal.text[0] != '\0'
		       ? subscriber
		       : NULL;
}

size_t mailbox_refused(const struct mailbox *mailbox,
		       const struct server **subscriber)
{
	size_t refused = 0;

	for (size_t i = 0; i < mailbox->count; i++) {
		if (mailbox->per_server[i].state != SUBSCRIPTION_REFUSED)
			continue;
		refused++;
		*subscriber = &mailbox->subscribers[i];
	}
	return refused;
}

static bool is_from(const struct value *from, const struct argument *channel)
{
	return from->text != NULL && from->length == channel->length &&
	       memcmp(from->text, channel->data, from->length) == 0;
}

static void take_message(struct mailbox *mailbox, size_t i,
			 const struct reply *reply)
{
	const struct value *channel = &reply->value[1];
	const struct value *text = &reply->value[2];

	if (text->text != NULL && is_from(channel, &mailbox->channel))
		mailbox->listener->message(mailbox->listener->context, i,
					   text->text, text->length);
	else if (mailbox->per_server[i].also &&
		 is_from(channel, &mailbox->also))
		mailbox->listener->changed(mailbox->listener->context, i);
}

static void on_reply(void *context, struct server *subscriber, uint64_t ticket,
		     const struct reply *reply)
{
	struct mailbox *mailbox = context;
	size_t i = (size_t)(subscriber - mailbox->subscribers);

	if (ticket == 0 && reply->failure == NULL && reply->count == 3 &&
	    reply->value[2].text != NULL) {
		take_message(mailbox, i, reply);
	} else if (ticket == ALSO) {
		if (reply->failure == NULL)
			mailbox->listener->changed(mailbox->listener->context,
						   i);
		else
			log_step("%s: no subscription beside ours: %s",
				 subscriber->url.name, reply->failure);
	} else if (ticket != mailbox->ticket) {
		return; /* of an earlier channel */
	} else if (reply->failure == NULL) {
		mailbox->per_server[i].state = SUBSCRIPTION_OPEN;
		mailbox->per_server[i].failures = 0;
		mailbox->listener->opened(mailbox->listener->context, i);
	} else if (cause_is_transient(subscriber->conn.refusal.cause)) {
		shut(mailbox, i);
	} else if (!mailbox->per_server[i].unsharded &&
		   subscriber->url.kind == URL_CLUSTER &&
		   subscriber->conn.refusal.cause == CAUSE_COMMAND) {
		mailbox->per_server[i].unsharded = true;
		ask(mailbox, i);
	} else {
		give_up(mailbox, i);
	}
}

/* Discovery has found the server at another address since. */
static bool is_elsewhere(const struct mailbox *mailbox, size_t i)
{
	const struct discovery *now = mailbox->servers[i].discovery;
	const struct discovery *then = mailbox->subscribers[i].discovery;

	return now != NULL && !now->seeking && now->endpoint.host != NULL &&
	       then->endpoint.host != NULL &&
	       !endpoint_is_same(&now->endpoint, &then->endpoint);
}

/* One that has failed, has taken too long, or is to be tried again. */
static void look_after(struct mailbox *mailbox, size_t i)
{
	bool due = deadline_passed(mailbox->per_server[i].due);

	switch (mailbox->per_server[i].state) {
	case SUBSCRIPTION_SHUT:
		if (due)
			ask(mailbox, i);
		break;
	case SUBSCRIPTION_ASKED:
		if (due)
			server_blame_silence(&mailbox->subscribers[i],
					     2 * mailbox->timeout);
		if (due || server_is_down(&mailbox->subscribers[i]))
			shut(mailbox, i);
		break;
	case SUBSCRIPTION_OPEN:
		if (!server_is_down(&mailbox->subscribers[i]) &&
		    !is_elsewhere(mailbox, i))
			break;
		if (mailbox->settled) {
			log_step("%s: the subscription is over",
				 mailbox->subscribers[i].url.name);
			give_up(mailbox, i);
		} else {
			shut(mailbox, i);
		}
		break;
	case SUBSCRIPTION_REFUSED:
		break;
	}
}

size_t mailbox_prepare(struct mailbox *mailbox, struct pollfd *polled,
		       struct deadline *until)
{
	size_t count = 0;

	for (size_t i = 0; i < mailbox->count; i++) {
		struct server *subscriber = &mailbox->subscribers[i];

		look_after(mailbox, i);
		mailbox->per_server[i].polled = count;
		count += server_prepare(subscriber, polled + count, until);
		if (mailbox->per_server[i].state == SUBSCRIPTION_SHUT ||
		    mailbox->per_server[i].state == SUBSCRIPTION_ASKED)
			*until = deadline_earlier(*until,
						  mailbox->per_server[i].due);
	}
	return count;
}

void mailbox_pump(struct mailbox *mailbox, const struct pollfd *polled)
{
	/* mailbox_prepare finds those that have failed here; but if a
	 * certificate is refused the server is not asked again */
	for (size_t i = 0; i < mailbox->count; i++)
		if (server_pump(&mailbox->subscribers[i],
				polled + mailbox->per_server[i].polled,
				on_reply, mailbox) < 0 &&
		    mailbox->subscribers[i].conn.refusal.cause ==
			    CAUSE_CERTIFICATE)
			give_up(mailbox, i);
}
