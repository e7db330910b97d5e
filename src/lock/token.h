/*
 * The owner of a lock: 128 random bits in hex, drawn anew for every attempt and
 * never used for two. Draw in a process that has no second thread yet: a
 * child of a threaded process may find arc4random's mutex held for ever.
 */
#ifndef LOCK_TOKEN_H
#define LOCK_TOKEN_H

#include "base/bounds.h"

#define TOKEN_SIZE (TOKEN_DIGITS + 1) /* with the NUL */

/* Bytes of a token's beginning, by which servers name its holder, with the NUL:
 * "*" for several holders, "" for none. */
#define TOKEN_PREFIX_SIZE 17

void token_make(char token[TOKEN_SIZE]);

/* The same, but the first digits are a hash of the host's name and of the parent process. So
 * acquire and release of one script share them, if the script itself starts both. */
#define TOKEN_NEAR 8
void token_make_near(char token[TOKEN_SIZE]);

#endif
