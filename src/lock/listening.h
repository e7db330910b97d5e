/*
 * A holder that has waited goes on listening, so that whoever breaks the lock need not
 * wait for its next renewal.
 *
 * ask.lua and break.lua publish on the holder's channel (listening.lua). The channel is
 * that of its wait, and the connections of the wait are kept (mailbox.h). The message
 * names request 0 and means only that a renewal is worthwhile now: the answers to that
 * renewal say whether there was a break, and by whom. So a message that is late, forged
 * or lost changes nothing but the time of a renewal (watchdog.c bounds how often). A
 * connection that breaks is not opened again, as the holder is told at its next renewal
 * anyway. A holder that has not waited opens none: that would cost each run a connection
 * to each server.
 *
 * A grant that arrives now is passed over: its server has been given the lock with the
 * others that were not needed, or is given it at the next renewal.
 */
#ifndef LOCK_LISTENING_H
#define LOCK_LISTENING_H

#include "server/quorum.h"

struct listening {
	struct mailbox mailbox;
	struct listener listener;
	struct argument channel; /* owned */
	bool open;
	bool news; /* there was a message */
};

/* Takes over a mailbox and its channel, and the quorum polls it from here. */
void listening_begin(struct listening *listening, struct quorum *quorum,
		     struct mailbox *mailbox, struct argument *channel);

/* Ends it; nothing, if it has not begun. */
void listening_end(struct listening *listening, struct quorum *quorum);

#endif
