/*
 * What the last process found: the addresses of servers that Sentinels or
 * cluster nodes name (discovery.h), whether two names are one server, and which
 * servers were silent. It is kept in files for this user's next processes.
 *
 * It is used as a guess: it may be old, garbage, or never written. A failure to
 * keep it is not reported.
 *
 * There is one file for each URL, or list of URLs, in the directory of
 * runtime.h. Only this user can write there: a guess decides which host gets a
 * password. A guess is dropped after two hours, as an address may belong to
 * another server by then. Each hash slot of a cluster has 128 bytes at a fixed
 * offset, written at once, so processes need no lock.
 */
#ifndef SERVER_LAST_PLACE_H
#define SERVER_LAST_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/url.h"

struct last_place {
	char path[URL_PATH_SIZE + 32]; /* "": there is nowhere to keep it */
	bool old;    /* what was read will soon be forgotten */
	int64_t age; /* s, of what was read */
};

/* what: a short word for the kind of file; name: what it is about. */
void last_place_init(struct last_place *last, const char *what,
		     const char *name);

/* Releases *endpoint, and makes it the remembered one; -1: there is none. */
int last_place_read(struct last_place *last, unsigned hash_slot,
		    struct endpoint *endpoint);

void last_place_write(struct last_place *last, unsigned hash_slot,
		      const struct endpoint *endpoint);

#define LAST_PLACE_WORD 16 /* bytes, with the NUL */

/* The same with a word instead of a place. */
int last_place_read_word(struct last_place *last, char word[LAST_PLACE_WORD]);
void last_place_write_word(struct last_place *last, const char *word);

#endif
