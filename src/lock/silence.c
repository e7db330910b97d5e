#include "lock/silence.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/last_place.h"

#define WHILE 200     /* ms that a server is heard, at least */
#define DISTANCES 3   /* that one which has answered before is heard */
#define REMEMBERED 60 /* s */

static uint32_t bit(size_t i)
{
	return UINT32_C(1) << i;
}

static void read_memory(struct lock *lock)
{
	char word[HINT_WORD];
	struct hint hint;

	lock->silence.read = true;
	lock->silence.servers = 0;
	quorum_open_hint(lock->quorum, "silent", &hint);
	if (hint_read_word(&hint, word) == 0 && hint.age < REMEMBERED)
		lock->silence.servers = (uint32_t)strtoul(word, NULL, 16);
}

static bool has_been_silent(struct lock *lock, size_t i)
{
	if (!lock->silence.read)
		read_memory(lock);
	return (lock->silence.servers & bit(i)) != 0;
}

struct deadline silence_end(struct lock *lock, size_t i, int64_t since)
{
	int64_t due = DISTANCES * lock->quorum->servers[i].distance;

	if (has_been_silent(lock, i))
		return deadline_at(0);
	return deadline_at(since + (due > WHILE ? due : WHILE));
}

void silence_note(struct lock *lock, size_t i)
{
	char word[HINT_WORD];
	struct hint hint;

	if (has_been_silent(lock, i))
		return;
	lock->silence.servers |= bit(i);
	snprintf(word, sizeof(word), "%" PRIx32, lock->silence.servers);
	quorum_open_hint(lock->quorum, "silent", &hint);
	if (hint.path[0] != '\0')
		hint_write_word(&hint, word);
}
