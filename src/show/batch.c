#include "show/batch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lock/ballot.h"

void look_init(struct look *look, struct quorum *quorum)
{
	*look = (struct look){0};
	lock_init(&look->lock, quorum, "", 0, 0);
}

void look_clear(struct look *look)
{
	for (size_t k = 0; k < 2 * look->count; k++)
		free((char *)look->pairs[k].data);
	look->count = 0;
}

void look_release(struct look *look)
{
	look_clear(look);
	lock_release_memory(&look->lock);
}

void look_add(struct look *look, struct argument key, struct argument record)
{
	look->pairs[2 * look->count] = key;
	look->pairs[2 * look->count + 1] = record;
	look->count++;
}

/* "type permits holders " in front of what seen_read_holder reads. */
static int read_listed(struct listed *listed, const char *text, size_t length)
{
	char type[8] = "";
	int taken = 0;

	*listed = (struct listed){0};
	if (length == 0)
		return 0;
	if (sscanf(text, "%7[a-z] %18" SCNd64 " %18" SCNd64 "%n", /* NOLINT */
		   type, &listed->permits, &listed->holders, &taken) != 3 ||
	    text[taken] != ' ' || listed->holders < 1 || listed->permits < -1 ||
	    listed->permits > PERMITS_LARGEST)
		return -1;
	listed->kind = view_kind(type, listed->permits);
	taken++;
	return seen_read_holder(&listed->first, text + taken,
				length - (size_t)taken);
}

static bool read_all(struct look *look, size_t i, const struct reply *reply)
{
	if (reply_item_count(reply, 1) != look->count)
		return false;
	for (size_t n = 0; n < look->count; n++) {
		struct value item = reply_item(reply, 1, n);

		if (item.text == NULL ||
		    read_listed(&look->answer[i][n], item.text, item.length) <
			    0)
			return false;
	}
	return true;
}

static void on_look(void *context, size_t i, const struct reply *reply)
{
	struct look *look = context;
	int64_t answer = 0;

	look->answered[i] = false;
	if (!ballot_read(&look->lock, i, reply, 1, &answer))
		return;
	if (!read_all(look, i, reply)) {
		ballot_reject(&look->lock, i);
		return;
	}
	look->lock.vote[i] = VOTE_YES;
	look->answered[i] = true;
}

static bool never(void *context)
{
	(void)context;
	return false;
}

void look_round(struct look *look)
{
	struct judge judge = {look, on_look, never};
	struct quorum *quorum = look->lock.quorum;

	ballot_open(&look->lock);
	for (size_t i = 0; i < quorum->count; i++) {
		look->answered[i] = false;
		if (look->lost[i])
			look->lock.vote[i] = VOTE_FAILED;
		else
			script_look(&look->lock, i, look->pairs, look->count);
	}
	quorum_gather(quorum, deadline_in(quorum->timeout), &judge);
	for (size_t i = 0; i < quorum->count; i++)
		look->lost[i] = look->lock.vote[i] != VOTE_YES;
}

size_t look_alive(const struct look *look)
{
	size_t count = 0;

	for (size_t i = 0; i < look->lock.quorum->count; i++)
		count += !look->lost[i];
	return count;
}

bool look_has_quorum(const struct look *look)
{
	return !look->lock.alias &&
	       look_alive(look) >= quorum_size(look->lock.quorum);
}

static bool has_one_holder(enum kind kind)
{
	return kind == KIND_EXCLUSIVE || kind == KIND_REENTRANT;
}

/* Whether server k has the n-th as server i has it, with so many holders. */
static bool agrees(const struct look *look, size_t n, size_t i, size_t k,
		   int64_t holders)
{
	const struct listed *said = &look->answer[i][n];
	const struct listed *other = &look->answer[k][n];

	return look->answered[k] && other->holders >= holders &&
	       other->kind == said->kind && other->permits == said->permits &&
	       (!has_one_holder(said->kind) ||
		strcmp(other->first.mark, said->first.mark) == 0);
}

/* The largest number of holders that a quorum has at least, as server i has
 * them. */
static int64_t count_holders(const struct look *look, size_t n, size_t i)
{
	const struct quorum *quorum = look->lock.quorum;
	int64_t most = 0;

	for (size_t j = 0; j < quorum->count; j++) {
		int64_t holders =
			look->answered[j] ? look->answer[j][n].holders : 0;
		size_t count = 0;

		for (size_t k = 0; k < quorum->count && holders > most; k++)
			count += agrees(look, n, i, k, holders);
		if (count >= view_quorum(quorum, look->answer[i][n].permits))
			most = holders;
	}
	return most;
}

bool look_tell(const struct look *look, size_t n, struct listed *listed)
{
	for (size_t i = 0; i < look->lock.quorum->count; i++) {
		if (!look->answered[i] || look->answer[i][n].holders == 0)
			continue;
		*listed = look->answer[i][n];
		listed->holders = count_holders(look, n, i);
		listed->key = look->pairs[2 * n];
		if (listed->holders > 0)
			return true;
	}
	return false;
}
