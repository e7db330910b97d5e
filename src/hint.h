/*
 * What the last process found: where servers are that others have to be asked for
 * (discovery.h), and whether names are of one server (alias.h); kept in
 * a file for this user's next processes. It is a guess and is used as one: what it
 * says may be old, garbage, or never written; nobody is told where it cannot be
 * kept.
 *
 * One file for each URL or list of them, in the directory of runtime.h, of which nobody else can
 * write: a guess decides where a password is sent. A guess is forgotten after two
 * hours, as an address may be another's by then. Each slot of a cluster has 128
 * bytes at a place of its own, written at once, so processes need no lock.
 */
#ifndef HINT_H
#define HINT_H

#include <stdbool.h>

#include "url.h"

struct hint {
	char path[URL_PATH_SIZE + 32]; /* "": there is nowhere to keep it */
	bool old; /* what was read will soon be forgotten */
};

/* what: the kind of file, in a short word; name: what it is about. */
void hint_init(struct hint *hint, const char *what, const char *name);

/* Makes *place, which is released first, the one that is kept; -1 for none. */
int hint_read(struct hint *hint, unsigned slot, struct url *place);

void hint_write(struct hint *hint, unsigned slot, const struct url *place);

#define HINT_WORD 16 /* bytes, with the NUL */

/* The same with a word instead of a place. */
int hint_read_word(struct hint *hint, char word[HINT_WORD]);
void hint_write_word(struct hint *hint, const char *word);

#endif
