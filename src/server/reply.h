/*
 * What servers say, within bounds: a server is not trusted to be sane.
 *
 * hiredis takes arrays of any size and depth (thirteen bytes make it spin for
 * half a minute, or use up the stack); the reader made here refuses what no
 * script of ours returns.
 */
#ifndef REPLY_H
#define REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/cause.h"

#define REPLY_VALUES 16 /* more are passed over */

struct reply {
	const char *failure; /* an error reply's text, else NULL */
	enum cause cause;    /* what that is */
	size_t count;        /* of an array's values; 1 for a single one */
	struct value {
		const char *text; /* NULL for an integer; NUL-terminated */
		size_t length;
		int64_t number;
	} value[REPLY_VALUES];
	const struct redisReply *whole;
};

/* What a reader takes. */
struct reply_bounds {
	bool wide;       /* a reply that lists */
	size_t elements; /* reply.c's: of the reply that is read */
};

/* Bytes of a reply, at most. */
static inline size_t reply_longest(bool wide)
{
	return wide ? 4 << 20 : 64 << 10;
}

struct redisReader;
struct redisReply;

/* Freed by redisReaderFree; bounds must outlive it. */
struct redisReader *reply_reader_new(struct reply_bounds *bounds);

/* The texts stay from's. */
void reply_flatten(struct reply *reply, const struct redisReply *from);

/* Something published, that nobody has asked for just now. */
bool reply_is_message(const struct reply *reply);

/* The array that is a value of the reply: its items' number, and one of them.
 * */
size_t reply_item_count(const struct reply *reply, size_t value);
struct value reply_item(const struct reply *reply, size_t value, size_t n);

/* The value of this name in an array of names and values in turn; its text is
 * NULL if there is none. */
struct value reply_pair(const struct reply *reply, const char *name);

#endif
