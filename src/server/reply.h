/*
 * RESP, the protocol of Redis: a request as it is sent, and what servers say,
 * within bounds, as a server is not trusted to be sane.
 *
 * hiredis takes arrays of any size and depth (thirteen bytes make it spin for
 * half a minute, or use up the stack); the reader made here refuses what no
 * script of ours returns.
 *
 * https://redis.io/docs/latest/develop/reference/protocol-spec/
 */
#ifndef SERVER_REPLY_H
#define SERVER_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "server/cause.h"

#define ARGUMENTS_MAX 256 /* of a command */

struct argument {
	const char *data;
	size_t length;
};

/* Appends an array of bulk strings, straight to where it is sent from: each
 * further copy of a script would be pages that a short run has to touch. An
 * argument without data is put together from those after it, as many as its
 * length says. */
void request_format(struct buffer *to, const struct argument *arguments,
		    size_t count);

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

/* Bytes of a reply, at most; a line has no more than one that lists nothing. */
static inline size_t reply_longest(bool wide)
{
	return wide ? 4 << 20 : 64 << 10;
}

struct redisReader;
struct redisReply;

/* Freed by redisReaderFree; bounds must outlive it. */
struct redisReader *reply_reader_new(struct reply_bounds *bounds);

/* Appends the path of the hiredis that was loaded, as it does not say its version, and
 * the version that we were built with. */
void reply_describe_reader(struct buffer *text);

/* The texts belong to `from`. */
void reply_flatten(struct reply *reply, const struct redisReply *from);

/* Whether it is a number, and nothing else. */
bool reply_is_number(const struct reply *reply);

/* Whether it is something published, rather than an answer. */
bool reply_is_message(const struct reply *reply);

/* For a value of the reply that is an array: how many items it has, and one of
 * them. */
size_t reply_item_count(const struct reply *reply, size_t value);
struct value reply_item(const struct reply *reply, size_t value, size_t n);

/* The value of this name in an array of names and values in turn; its text is
 * NULL if there is none. */
struct value reply_pair(const struct reply *reply, const char *name);

#endif
