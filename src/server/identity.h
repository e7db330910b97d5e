/*
 * Who a server is, as it says itself in the first exchange: whether two URLs
 * are one server, and whether it may have forgotten leases.
 */
#ifndef IDENTITY_H
#define IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "server/reply.h"

struct identity {
	bool known;
	char run_id[41];
	int64_t started; /* ms by our clock: it was up by then */
	bool appends;    /* to a file: it forgets what was not synced yet */
	bool durable; /* appends, synced at every write: it forgets nothing */
};

/* Reads the answer to INFO server. -1 where it is none. */
int identity_read_info(struct identity *identity, const struct reply *reply);

/* The value of "\nname:" in an INFO's text, and its length; NULL for none. */
const char *identity_find(const char *text, const char *name, size_t *length);

/* Reads the answer to CONFIG GET append*. A refusal is no failure: then there
 * is no such file as far as we know. */
void identity_read_config(struct identity *identity, const struct reply *reply);

#endif
