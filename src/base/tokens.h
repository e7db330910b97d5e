/*
 * The tokens of several locks as one text, which `acquire` prints, and `release` and
 * `extend` take apart: "TOKEN=TOKEN=TOKEN", in the bytewise order of the keys, so that it
 * does not matter in which order these are named. No token of redlock has a '='
 * (bounds.h); a token of another program may, but is never in such a text, and its parts are
 * not all 32 hex digits. If all are equal, as an owner (-r) may have one token for all, the
 * text is that token: a text without a '=' is each key's.
 */
#ifndef BASE_TOKENS_H
#define BASE_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bounds.h"
#include "base/buffer.h"

/* Bytes of the longest text. */
#define TOKENS_LONGEST (LOCKS_MOST * (TOKEN_LONGEST + 1))

void tokens_join(struct buffer *text, const char *const *tokens, size_t count);

/* How many tokens a text given with count keys has: 1 if it is every key's, or if count is
 * 1 and the token is another program's. */
size_t tokens_count(const char *text, size_t count);

/* The token of the i-th of count keys. False if the text is for another number of keys,
 * or this token is empty or too long. */
bool tokens_pick(const char *text, size_t count, size_t i,
		 char token[TOKEN_LONGEST + 1]);

#endif
