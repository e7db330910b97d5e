/*
 * Which servers have been silent recently, and how long to wait for the others.
 *
 * If the votes alone cannot be relied on, the server that knows the holder may
 * be the one that answers last (trust.h). Nobody can tell a slow server from a
 * dead one, but a dead one should not delay each acquisition. The same holds if
 * others try at the same time, and the votes that are in make a quorum for
 * nobody: a silent server's vote could be the one that is missing. So a server gets
 * a while to answer: 200 ms, or three times what it took recently, but no
 * longer than half of the ttl or the time of a round (attempt.c). If it does
 * not answer in that time, this is remembered for a minute (last_place.h), and
 * in that minute no process of this user on this machine waits for it again. So
 * a dead server delays one acquisition in a minute, and only if the records of
 * its KEY are young or others try, too.
 *
 * What is remembered can only make us hear less than we might: we do not wait
 * for a slow server that was silent within the minute. If nothing can be
 * remembered, each acquisition waits.
 */
#ifndef LOCK_SILENCE_H
#define LOCK_SILENCE_H

#include "server/quorum.h"

/* What is remembered, during an attempt. */
struct silence {
	bool read;
	uint32_t servers; /* a bit for each that has been silent */
};

/* Until when to wait for a server that was asked at `since` (ms); passed if it
 * has been silent recently. */
struct deadline silence_end(struct silence *silence,
			    const struct quorum *quorum, size_t server,
			    int64_t since);

/* It has not answered until then. */
void silence_note(struct silence *silence, const struct quorum *quorum,
		  size_t server);

#endif
