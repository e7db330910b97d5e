/*
 * Whether a keeper has the servers that a release names: as sets, since neither the order
 * of a list nor the spelling of a URL, as far as url_is_same looks at it, makes other
 * servers of them.
 */
#ifndef RUN_NEARNESS_H
#define RUN_NEARNESS_H

#include "base/buffer.h"
#include "server/quorum.h"

enum nearness {
	NEAR_NONE,    /* no server is in both */
	NEAR_UNKNOWN, /* what it has is not said */
	NEAR_SOME,    /* some are */
	NEAR_ALL,     /* all are */
};

/* A line for each server. */
void nearness_print(struct buffer *text, const struct quorum *quorum);

/* How near what was printed, which is changed, is to this quorum. */
enum nearness nearness_read(char *text, const struct quorum *quorum);

#endif
