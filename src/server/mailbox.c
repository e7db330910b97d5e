#include "server/mailbox.h"

#include <stdlib.h>
#include <string.h>

#include "server/discovery.h"
#include "base/alloc.h"
#include "base/log.h"
#include "lock/token.h"

#define RETRY_PAUSE 50 /* ms, doubled each time */
#define RETRY_LONGEST 2000

void mailbox_init(struct mailbox *mailbox, const struct server *servers,
		  size_t count, int64_t timeout,
		  const struct listener *listener)
{
	*mailbox = (struct mailbox){
		.listener = listener,
		.servers = servers,
		.ears = heap_get(count, sizeof(struct server)),
		.count = count,
		.timeout = timeout,
	};
	for (size_t i = 0; i < count; i++) {
		struct url url = url_copy(&servers[i].url);

		server_init(&mailbox->ears[i], &url, false);
		mailbox->ears[i].listens = true;
		mailbox->ears[i].stream.keep_alive = true;
	}
}

void mailbox_release(struct mailbox *mailbox)
{
	for (size_t i = 0; i < mailbox->count; i++)
		server_release(&mailbox->ears[i]);
	free(mailbox->ears);
	*mailbox = (struct mailbox){0};
}

static void shut(struct mailbox *mailbox, size_t i)
{
	unsigned failures = mailbox->ear[i].failures;
	int64_t pause = RETRY_PAUSE << (failures < 6 ? failures : 6);

	log_step("%s: no subscription: %s", mailbox->ears[i].url.name,
		 mailbox->ears[i].why);
	server_cut(&mailbox->ears[i]);
	mailbox->ear[i].state = EAR_SHUT;
	mailbox->ear[i].failures++;
	mailbox->ear[i].due = deadline_in(
		token_jitter(pause < RETRY_LONGEST ? pause : RETRY_LONGEST));
	mailbox->listener->failed(mailbox->listener->context, i);
}

static void give_up(struct mailbox *mailbox, size_t i)
{
	mailbox->ear[i].state = EAR_REFUSED;
	mailbox->ear[i].failures++;
	server_cut(&mailbox->ears[i]);
	mailbox->listener->failed(mailbox->listener->context, i);
}

static void ask(struct mailbox *mailbox, size_t i)
{
	struct server *ear = &mailbox->ears[i];
	/* a cluster's node tells no others what is said in a slot, since Redis 7 */
	int plain = ear->url.kind != URL_CLUSTER || mailbox->ear[i].unsharded;
	const struct argument unsubscribe = {&"SUNSUBSCRIBE"[plain],
					     (size_t)(12 - plain)};
	const struct argument subscribe[] = {
		{&"SSUBSCRIBE"[plain], (size_t)(10 - plain)},
		mailbox->channel,
	};

	if (mailbox->ear[i].state == EAR_REFUSED)
		return;
	server_aim(ear, mailbox->channel);
	mailbox->ear[i].state = EAR_ASKED;
	mailbox->ear[i].due = deadline_in(2 * mailbox->timeout);
	if (server_is_up(ear))
		server_ask(ear, 0, false, &unsubscribe, 1);
	server_ask(ear, mailbox->ticket, false, subscribe, 2);
}

void mailbox_subscribe(struct mailbox *mailbox, struct argument channel)
{
	mailbox->channel = channel;
	mailbox->ticket++;
	for (size_t i = 0; i < mailbox->count; i++)
		ask(mailbox, i);
}

bool mailbox_is_open(const struct mailbox *mailbox, size_t i)
{
	return mailbox->ear[i].state == EAR_OPEN;
}

const struct server *mailbox_failure(const struct mailbox *mailbox, size_t i)
{
	const struct server *ear = &mailbox->ears[i];

	/* no why while it is asked */
	return mailbox->ear[i].state != EAR_OPEN && ear->why[0] != '\0' ? ear
									: NULL;
}

size_t mailbox_refused(const struct mailbox *mailbox, const struct server **ear)
{
	size_t refused = 0;

	for (size_t i = 0; i < mailbox->count; i++) {
		if (mailbox->ear[i].state != EAR_REFUSED)
			continue;
		refused++;
		*ear = &mailbox->ears[i];
	}
	return refused;
}

static void take_message(struct mailbox *mailbox, size_t i,
			 const struct reply *reply)
{
	const struct value *channel = &reply->value[1];
	const struct value *text = &reply->value[2];

	if (channel->text != NULL && text->text != NULL &&
	    channel->length == mailbox->channel.length &&
	    memcmp(channel->text, mailbox->channel.data, channel->length) == 0)
		mailbox->listener->message(mailbox->listener->context, i,
					   text->text, text->length);
}

static void got(void *context, struct server *ear, uint64_t ticket,
		const struct reply *reply)
{
	struct mailbox *mailbox = context;
	size_t i = (size_t)(ear - mailbox->ears);

	if (ticket == 0 && reply->failure == NULL && reply->count == 3 &&
	    reply->value[2].text != NULL) {
		take_message(mailbox, i, reply);
	} else if (ticket != mailbox->ticket) {
		return; /* of an earlier channel */
	} else if (reply->failure == NULL) {
		mailbox->ear[i].state = EAR_OPEN;
		mailbox->ear[i].failures = 0;
		mailbox->listener->opened(mailbox->listener->context, i);
	} else if (cause_is_passing(ear->cause)) {
		shut(mailbox, i);
	} else if (!mailbox->ear[i].unsharded && ear->url.kind == URL_CLUSTER &&
		   ear->cause == CAUSE_COMMAND) {
		mailbox->ear[i].unsharded = true;
		ask(mailbox, i);
	} else {
		give_up(mailbox, i);
	}
}

/* The server is no longer where it is listened to. */
static bool is_elsewhere(const struct mailbox *mailbox, size_t i)
{
	const struct discovery *now = mailbox->servers[i].discovery;
	const struct discovery *then = mailbox->ears[i].discovery;

	return now != NULL && !now->seeking && now->place.name != NULL &&
	       then->place.name != NULL &&
	       strcasecmp(now->place.name, then->place.name) != 0;
}

/* One that has failed, has taken too long, or is to be tried again. */
static void look_after(struct mailbox *mailbox, size_t i)
{
	bool due = deadline_passed(mailbox->ear[i].due);

	switch (mailbox->ear[i].state) {
	case EAR_SHUT:
		if (due)
			ask(mailbox, i);
		break;
	case EAR_ASKED:
		if (due)
			server_blame_silence(&mailbox->ears[i],
					     2 * mailbox->timeout);
		if (due || server_is_down(&mailbox->ears[i]))
			shut(mailbox, i);
		break;
	case EAR_OPEN:
		if (server_is_down(&mailbox->ears[i]) ||
		    is_elsewhere(mailbox, i))
			shut(mailbox, i);
		break;
	case EAR_REFUSED:
		break;
	}
}

size_t mailbox_prepare(struct mailbox *mailbox, struct pollfd *polled,
		       struct deadline *until)
{
	size_t count = 0;

	for (size_t i = 0; i < mailbox->count; i++) {
		struct server *ear = &mailbox->ears[i];

		look_after(mailbox, i);
		mailbox->ear[i].polled = count;
		count += server_prepare(ear, polled + count, until);
		if (mailbox->ear[i].state == EAR_SHUT ||
		    mailbox->ear[i].state == EAR_ASKED)
			*until = deadline_earlier(*until, mailbox->ear[i].due);
	}
	return count;
}

void mailbox_pump(struct mailbox *mailbox, const struct pollfd *polled)
{
	/* one that fails here is down, which mailbox_prepare finds; but one whom
	 * TLS refuses, or who refuses us, is not to be asked again */
	for (size_t i = 0; i < mailbox->count; i++)
		if (server_pump(&mailbox->ears[i],
				polled + mailbox->ear[i].polled, got,
				mailbox) < 0 &&
		    mailbox->ears[i].stream.failure.refused)
			give_up(mailbox, i);
}
