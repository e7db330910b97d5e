/*
 * A world without sockets and without waiting, for the fuzzers: it stands in
 * for stream.c, last_place.c, deadline.c, threads.c and watchdogs.c (and, by
 * -Dclock_gettime=world_gettime, for the clock). What servers say is the rest of the fuzzer's input; time passes only
 * when nobody has anything to say, and then at once.
 *
 * A server has the name /DIGIT of a Unix socket, or a port, counted round and
 * round. Of one that has to be looked for it is known that it may be at port 1.
 *
 * The input is cut into pieces at each byte 0x1e. A piece is for the server
 * whose digit (0 to 4) begins it, else for each of them. Each request of a
 * connection is answered by its server's next piece, which may begin with
 *	.	no answer, and no other any more
 *	!	the connection ends
 *	Mtext	text is published to whoever has subscribed there
 *	Ddigit	the rest comes digit * 100 ms later
 * and ends the connection behind itself where its last byte is 0x1f. When the
 * pieces have been used up, nothing is answered any more.
 *
 * An abort() is a finding: polling again and again without any progress,
 * waiting for ever, bytes sent that are no request.
 */
#ifndef WORLD_H
#define WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORLD_SERVERS 5
#define WORLD_INTERRUPT 999 /* a descriptor */

struct world_rules {
	bool greets;  /* only EVAL, CLUSTER NODES and messages may be odd */
	bool drips;   /* a few bytes at a time, both ways */
	bool hints;   /* it is known where a server was */
	uint8_t down; /* a bit for each server that nobody reaches */
	int64_t interrupts; /* ms; when WORLD_INTERRUPT is readable, 0: never */
};

void world_begin(struct world_rules rules, const uint8_t *data, size_t size);

/* Frees everything; a stream that is still open is a leak: abort(). */
void world_end(void);

/* ms since world_begin */
int64_t world_age(void);

/* How many servers have said something like "yes" to some request. */
size_t world_granted(void);

#endif
