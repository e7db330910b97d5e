/*
 * REDLOCK_HELD: the locks that the processes above this one hold, the outermost
 * first: "KEY=TOKEN KEY=TOKEN". In KEY a blank, '%', '=' and control characters
 * are percent-encoded (RFC 3986); tokens have none of these (token.h).
 *
 * It says which locks were held when we were started. Whether they still are,
 * only the servers can say. A shell that has a lock from `acquire` cannot take the entry
 * back when it releases the lock. A second blank in front marks these entries, which
 * only this shell and what it starts have: the next one for KEY takes the place of the
 * last, and there are no more than fit.
 */
#ifndef RUN_ANCESTRY_H
#define RUN_ANCESTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "lock/lock.h"

#define ANCESTRY_BADGE (TOKEN_LONGEST + 64)

/* Appends an entry. */
void ancestry_append(struct buffer *held, const char *key, const char *token);

/* Entries for these locks after what this process has inherited. count 0: one without
 * a key, with the token of the first. No lock is held then, and no key has such an entry,
 * but processes that inherit it are recognised. */
void ancestry_extend(struct buffer *held, struct lock *const *locks,
		     size_t count);

/* The same for a shell that takes them by `acquire`: they are marked, and replace what
 * is marked and has their keys; of all others that are marked the newest stay, 16 KiB. */
void ancestry_extend_shell(struct buffer *held, struct lock *const *locks,
			   size_t count);

/* REDLOCK_FENCES, in the same format: "KEY=FENCE KEY=FENCE". */
void ancestry_print_fences(struct buffer *text, struct lock *const *locks,
			   size_t count);

/* The badge is the end of an entry, as much of it as fits. A process that has
 * inherited the entry is recognised by it, even if a user chose the token. */
void ancestry_badge(char badge[ANCESTRY_BADGE], const char *key,
		    const char *token);

/* The innermost entry for key: its token, in token of that size. False if there
 * is none, or none that makes sense; held may be NULL. */
bool ancestry_find(const char *held, const char *key, char *token, size_t size);

#endif
