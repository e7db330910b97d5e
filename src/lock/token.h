/*
 * Who owns a lock: 128 random bits in hex, drawn anew for every attempt and
 * never used for two. Draw in a process that has no second thread yet: a
 * child of a threaded process may find arc4random's mutex held for ever.
 */
#ifndef TOKEN_H
#define TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#define TOKEN_SIZE 33     /* with the NUL */
#define TOKEN_LONGEST 256 /* bytes, of tokens that other programs made */

void token_make(char token[TOKEN_SIZE]);

/* Whether a token that a user chose can stand wherever tokens do: 1 to 256
 * printable ASCII characters but '%' and '='. */
bool token_is_plain(const char *token);

/* A random number from 0 to limit, for a pause with full jitter. */
int64_t token_jitter(int64_t limit);

#endif
