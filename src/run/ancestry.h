/*
 * REDLOCK_HELD: the locks that the processes above this one hold, the outermost
 * first: "KEY=TOKEN KEY=TOKEN". In KEY a blank, '%', '=' and control characters
 * are percent-encoded (RFC 3986); tokens have none of these (token.h).
 *
 * It says who is above us and what it held when it started us, not that it
 * still does: that is asked of the servers.
 */
#ifndef HELD_H
#define HELD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/output.h"
#include "lock/token.h"

#define HELD_MARK (TOKEN_LONGEST + 64)

/* Appends an entry. */
void held_append(struct buffer *held, const char *key, const char *token);

/* The end of an entry, as much of it as there is room for. A process that has
 * inherited the entry is recognised by it, even if the token was chosen by
 * somebody. */
void held_mark(char mark[HELD_MARK], const char *key, const char *token);

/* The innermost entry for key: its token, in token of that size. False where
 * there is none, or none that makes sense; held may be NULL. */
bool held_find(const char *held, const char *key, char *token, size_t size);

#endif
