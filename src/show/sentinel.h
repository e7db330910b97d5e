/*
 * What Sentinels (discovery.h) say of the master that they watch. Only doctor asks
 * them for this.
 */
#ifndef SHOW_SENTINEL_H
#define SHOW_SENTINEL_H

#include <stdint.h>

#include "base/buffer.h"
#include "net/url.h"

/* What they say, or do not. */
struct sentinels {
	/* How long they wait for a silent master before they make another one,
	 * in ms: the longest time that any of them names. -1: none answers. */
	int64_t down_after;
	size_t failed, count; /* that do not answer, or refuse; of how many */
	struct buffer why;    /* owned; which of them, and why */
};

/* Asks the Sentinels of a URL_SENTINEL, for no longer than timeout (ms). */
void sentinels_ask(struct sentinels *sentinels, const struct url *url,
		   int64_t timeout);
void sentinels_release(struct sentinels *sentinels);

/* Adds a warning (warning.h) if a run with this ttl (ms) would be over before there
 * is another master, and one if a Sentinel has failed: the others may still be a
 * majority, so nothing else tells. */
void sentinels_advise(struct buffer *warnings,
		      const struct sentinels *sentinels, int64_t ttl);

#endif
