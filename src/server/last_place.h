/*
 * What the last process found: the addresses of servers behind Sentinels or
 * clusters (discovery.h), and whether two names are one server (alias.h). It
 * is kept in files for this user's next processes.
 *
 * A hint is used as a guess: it may be old, garbage, or never written. If it
 * cannot be kept, nobody is told.
 *
 * There is one file for each URL, or list of URLs, in the directory of
 * runtime.h. Nobody else can write there: a guess decides where a password is
 * sent. A guess is forgotten after two hours, as an address may belong to
 * another server by then. Each slot of a cluster has 128 bytes at a fixed
 * offset, written at once, so processes need no lock.
 */
#ifndef HINT_H
#define HINT_H

#include <stdbool.h>
#include <stdint.h>

#include "net/url.h"

struct hint {
	char path[URL_PATH_SIZE + 32]; /* "": there is nowhere to keep it */
	bool old;    /* what was read will soon be forgotten */
	int64_t age; /* s, of what was read */
};

/* what: a short word for the kind of file; name: what it is about. */
void hint_init(struct hint *hint, const char *what, const char *name);

/* Makes *place, which is released first, the one that is kept; -1 for none. */
int hint_read(struct hint *hint, unsigned slot, struct url *place);

void hint_write(struct hint *hint, unsigned slot, const struct url *place);

#define HINT_WORD 16 /* bytes, with the NUL */

/* The same with a word instead of a place. */
int hint_read_word(struct hint *hint, char word[HINT_WORD]);
void hint_write_word(struct hint *hint, const char *word);

#endif
