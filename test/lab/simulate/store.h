/*
 * What a Redis server remembers, and the commands that redlock's scripts use: strings,
 * hashes, sorted sets, lists, expiry, and scripts in the real Lua 5.1.
 *
 * It behaves as Redis 7 does, which `make simulate-differential` compares. A command
 * that it does not have ends the program with its name: nothing is answered that was
 * not thought of. To add one, write a function in store.c and name it in the table there.
 *
 * Nothing here looks at a clock: each command is executed at a time that it is given,
 * which stands still while a script runs.
 */
#ifndef STORE_H
#define STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

struct word {
	const char *data;
	size_t length;
};

/* What a store needs from its server. */
struct store_host {
	void *context;
	/* returns how many subscribers got it */
	size_t (*publish)(void *context, struct word channel,
			  struct word message);
	size_t (*subscribers)(void *context, struct word channel);
};

struct store;

struct store *store_new(const struct store_host *host);
void store_free(struct store *store);

/* The data only: a server that was restarted knows no scripts. */
struct store *store_copy(const struct store *store);
void store_clear(struct store *store);

/* Appends the answer, as Redis sends it. now: us since 1970. */
void store_execute(struct store *store, int64_t now, const struct word *words,
		   size_t count, struct buffer *answer);

/* How many commands were executed, those of scripts not counted. */
uint64_t store_executed(const struct store *store);

/* Whether there is a key of this name at this time (ms), and its type. */
const char *store_type(struct store *store, int64_t now, struct word key);

/* A field of a hash, as a number; 0 if there is none. */
int64_t store_field(struct store *store, int64_t now, struct word key,
		    const char *field);

/* Whether the other store has the same value of the key, or the names of all its items. */
bool store_is_covered(struct store *store, int64_t now, struct word key,
		      struct store *other, int64_t others_now);
/* The value of a hash's field, and the last element of a list that begins with this; data
 * is NULL if there is none. */
struct word store_value(struct store *store, int64_t now, struct word key,
			const char *field);
struct word store_element(struct store *store, int64_t now, struct word key,
			  const char *beginning);

/* Whether the key is a string, and equal to text. */
bool store_holds(struct store *store, int64_t now, struct word key,
		 const char *text);

/* Until when (ms) the token has the lock: it is the string, an item of the hash, or one of the
 * sorted set, whose score it is then. -1: it has none, or one without end. */
int64_t store_lease(struct store *store, int64_t now, struct word key,
		    const char *token);

/* The tokens that have the lock now; at most so many. Returns how many. */
size_t store_tokens(struct store *store, int64_t now, struct word key,
		    struct word *tokens, size_t most);

/* How many items the key has; 0 if there is none. */
size_t store_size(struct store *store, int64_t now, struct word key);

/* What a run's process has compiled costs the next ones nothing, if it ends by the first of
 * these, and the process that starts them reads that by the second. */
void scripts_hand_on(int fd);
void scripts_inherit(int fd);

/* In hexadecimal digits. */
void store_sha1(char sha1[41], struct word text);

/* --- between store.c and script.c ------------------------------------------ */

/* A command that a script has called. */
void store_call(struct store *store, const struct word *words, size_t count,
		struct buffer *answer);

/* Whether the command can have this number of words, its name among them. */
bool store_takes(struct word name, size_t count);

void store_eval(struct store *store, const struct word *words, size_t count,
		struct buffer *answer);

bool *store_scripts(struct store *store); /* that it knows, by their number */

#define SCRIPTS_MOST 64

bool word_is(struct word word, const char *text); /* in any case */

/* Its digits, in front of end. Returns where they begin. */
char *write_integer(char *end, int64_t number);

/* As Redis sends them. */
void answer_error(struct buffer *answer, const char *text);
void answer_number(struct buffer *answer, char sign, int64_t number);
void answer_word(struct buffer *answer, struct word word);

#endif
