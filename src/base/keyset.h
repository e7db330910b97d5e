/*
 * Which KEYs have been seen: 16 bytes for each, as a hash stands for it (two of
 * a million are taken for one another once in 10^7 times; nobody can choose
 * which, as the hash is seeded). A zeroed set is empty.
 */
#ifndef KEYSET_H
#define KEYSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct keyset {
	uint64_t *hashes; /* owned; 0 where free */
	size_t count, room;
	uint64_t seed;
};

/* False where it was there already. No memory ends the process. */
bool keyset_add(struct keyset *set, const char *key, size_t length);
void keyset_release(struct keyset *set);

#endif
