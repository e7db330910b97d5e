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

static void read_memory(struct silence *silence, const struct quorum *quorum)
{
	char word[LAST_PLACE_WORD];
	struct last_place last;

	silence->read = true;
	silence->servers = 0;
	quorum_last_place(quorum, "silent", &last);
	if (last_place_read_word(&last, word) == 0 && last.age < REMEMBERED)
		silence->servers = (uint32_t)strtoul(word, NULL, 16);
}

static bool has_been_silent(struct silence *silence,
			    const struct quorum *quorum, size_t i)
{
	if (!silence->read)
		read_memory(silence, quorum);
	return (silence->servers & bit(i)) != 0;
}

struct deadline silence_end(struct silence *silence,
			    const struct quorum *quorum, size_t i,
			    int64_t since)
{
	int64_t due = DISTANCES * quorum->servers[i].conn.distance;

	if (has_been_silent(silence, quorum, i))
		return deadline_at(0);
	return deadline_at(since + (due > WHILE ? due : WHILE));
}

void silence_note(struct silence *silence, const struct quorum *quorum,
		  size_t i)
{
	char word[LAST_PLACE_WORD];
	struct last_place last;

	if (has_been_silent(silence, quorum, i))
		return;
	silence->servers |= bit(i);
	snprintf(word, sizeof(word), "%" PRIx32, silence->servers);
	quorum_last_place(quorum, "silent", &last);
	if (last.path[0] != '\0')
		last_place_write_word(&last, word);
}
