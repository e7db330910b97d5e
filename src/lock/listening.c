#include "lock/listening.h"

#include <stdlib.h>
#include <string.h>

static void ignore(void *context, size_t i)
{
	(void)context;
	(void)i;
}

static void on_message(void *context, size_t i, const char *text, size_t length)
{
	struct listening *listening = context;

	(void)i;
	listening->news |= length > 1 && memcmp(text, "0 ", 2) == 0;
}

void listening_begin(struct listening *listening, struct quorum *quorum,
		     struct mailbox *mailbox, struct argument *channel)
{
	listening_end(listening, quorum);
	*listening = (struct listening){
		.mailbox = *mailbox,
		.listener = {listening, ignore, ignore, on_message, ignore},
		.channel = *channel,
		.open = true,
	};
	*mailbox = (struct mailbox){0};
	*channel = (struct argument){0};
	quorum->mailbox = &listening->mailbox;
	if (!mailbox_settle(&listening->mailbox, &listening->listener))
		listening_end(listening, quorum);
}

void listening_end(struct listening *listening, struct quorum *quorum)
{
	if (!listening->open)
		return;
	quorum->mailbox = NULL;
	mailbox_release(&listening->mailbox);
	free((char *)listening->channel.data);
	*listening = (struct listening){0};
}
