#include "base/keyset.h"

#include <stdlib.h>

#include "base/alloc.h"

static uint64_t hash(const struct keyset *set, const char *key, size_t length)
{
	uint64_t value = set->seed;

	for (size_t i = 0; i < length; i++)
		value = (value ^ (unsigned char)key[i]) * 0x9e3779b97f4a7c15;
	value ^= value >> 32;
	return value != 0 ? value : 1;
}

static bool insert(uint64_t *hashes, size_t room, uint64_t value)
{
	size_t at = value & (room - 1);

	while (hashes[at] != 0 && hashes[at] != value)
		at = (at + 1) & (room - 1);
	if (hashes[at] == value)
		return false;
	hashes[at] = value;
	return true;
}

static void grow(struct keyset *set)
{
	size_t room = set->room > 0 ? 2 * set->room : 1024; /* a power of 2 */
	uint64_t *hashes = heap_get(room, sizeof(*hashes));

	if (set->room == 0)
		arc4random_buf(&set->seed, sizeof(set->seed));
	for (size_t i = 0; i < set->room; i++)
		if (set->hashes[i] != 0)
			insert(hashes, room, set->hashes[i]);
	free(set->hashes);
	set->hashes = hashes;
	set->room = room;
}

bool keyset_add(struct keyset *set, const char *key, size_t length)
{
	if (2 * set->count >= set->room)
		grow(set);
	if (!insert(set->hashes, set->room, hash(set, key, length)))
		return false;
	set->count++;
	return true;
}

void keyset_release(struct keyset *set)
{
	free(set->hashes);
	*set = (struct keyset){0};
}
