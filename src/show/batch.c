#include "show/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "lock/alias.h"

void batch_init(struct batch *batch, struct quorum *quorum)
{
	*batch = (struct batch){0};
	ballot_init(&batch->ballot, quorum, 0, 0);
}

void batch_clear(struct batch *batch)
{
	for (size_t k = 0; k < 2 * batch->count; k++)
		free((char *)batch->pairs[k].data);
	batch->count = 0;
}

void batch_add(struct batch *batch, struct argument key, struct argument record)
{
	batch->pairs[2 * batch->count] = key;
	batch->pairs[2 * batch->count + 1] = record;
	batch->count++;
}

/* "later protocol": what a newer redlock does with it is not known. */
static int read_later(struct listed *listed, const char *text)
{
	listed->kind = KIND_NONE;
	listed->holders = 1;
	listed->first.who.held = listed->first.who.left = -1;
	return number_read(&text, 1, INT64_MAX,
			   &listed->first.who.holder.protocol);
}

/* "type permits holders ", and what seen_read_holder reads. */
static int read_listed(struct listed *listed, const char *text, size_t length)
{
	const char *end = text + length;
	char type[8];
	size_t name = strcspn(text, " ");

	*listed = (struct listed){0};
	if (length == 0)
		return 0;
	if (name >= sizeof(type) || text[name] != ' ')
		return -1;
	memcpy(type, text, name);
	type[name] = '\0';
	text += name + 1;
	if (strcmp(type, "later") == 0)
		return read_later(listed, text);
	if (number_read(&text, -1, PERMITS_LARGEST, &listed->permits) < 0 ||
	    *text++ != ' ' ||
	    number_read(&text, 1, INT64_MAX, &listed->holders) < 0 ||
	    *text++ != ' ')
		return -1;
	listed->kind = holders_kind(type, listed->permits);
	return seen_read_holder(&listed->first, text, (size_t)(end - text));
}

static bool read_all(struct batch *batch, size_t i, const struct reply *reply)
{
	if (reply_item_count(reply, 1) != batch->count)
		return false;
	for (size_t n = 0; n < batch->count; n++) {
		struct value item = reply_item(reply, 1, n);

		if (item.text == NULL ||
		    read_listed(&batch->answer[i][n], item.text, item.length) <
			    0)
			return false;
	}
	return true;
}

static void on_batch(void *context, size_t i, const struct reply *reply)
{
	struct batch *batch = context;
	int64_t answer = 0;

	batch->answered[i] = false;
	if (!alias_read(&batch->ballot, i, reply, 1, &answer))
		return;
	if (!read_all(batch, i, reply)) {
		ballot_reject(&batch->ballot, i);
		return;
	}
	batch->ballot.vote[i] = VOTE_YES;
	batch->answered[i] = true;
}

void batch_round(struct batch *batch)
{
	struct reply_handler handler = {batch, on_batch, NULL};
	struct quorum *quorum = batch->ballot.quorum;

	ballot_open(&batch->ballot, NULL);
	for (size_t i = 0; i < quorum->count; i++) {
		batch->answered[i] = false;
		if (batch->lost[i])
			batch->ballot.vote[i] = VOTE_FAILED;
		else
			script_batch(quorum, i, batch->pairs, batch->count);
	}
	quorum_gather(quorum, wait_until(deadline_in(quorum->timeout)),
		      &handler);
	for (size_t i = 0; i < quorum->count; i++)
		batch->lost[i] = batch->ballot.vote[i] != VOTE_YES;
}

static size_t count_alive(const struct batch *batch)
{
	size_t count = 0;

	for (size_t i = 0; i < batch->ballot.quorum->count; i++)
		count += !batch->lost[i];
	return count;
}

bool batch_has_quorum(const struct batch *batch)
{
	return !batch->ballot.alias &&
	       count_alive(batch) >= quorum_size(batch->ballot.quorum);
}

static bool has_one_holder(enum kind kind)
{
	return kind == KIND_EXCLUSIVE || kind == KIND_REENTRANT;
}

/* Whether server k has the n-th lock as server i has it, with at least this number
 * of holders. */
static bool agrees(const struct batch *batch, size_t n, size_t i, size_t k,
		   int64_t holders)
{
	const struct listed *said = &batch->answer[i][n];
	const struct listed *other = &batch->answer[k][n];

	return batch->answered[k] && other->holders >= holders &&
	       other->kind == said->kind && other->permits == said->permits &&
	       (!has_one_holder(said->kind) ||
		strcmp(other->first.digest, said->first.digest) == 0);
}

/* The largest number of holders that a quorum has at least, as server i has
 * them. */
static int64_t count_holders(const struct batch *batch, size_t n, size_t i)
{
	const struct quorum *quorum = batch->ballot.quorum;
	int64_t most = 0;

	for (size_t j = 0; j < quorum->count; j++) {
		int64_t holders =
			batch->answered[j] ? batch->answer[j][n].holders : 0;
		size_t count = 0;

		for (size_t k = 0; k < quorum->count && holders > most; k++)
			count += agrees(batch, n, i, k, holders);
		if (count >=
		    quorum_size_for(quorum, batch->answer[i][n].permits))
			most = holders;
	}
	return most;
}

bool batch_tell(const struct batch *batch, size_t n, struct listed *listed)
{
	for (size_t i = 0; i < batch->ballot.quorum->count; i++) {
		if (!batch->answered[i] || batch->answer[i][n].holders == 0)
			continue;
		*listed = batch->answer[i][n];
		listed->holders = count_holders(batch, n, i);
		listed->key = batch->pairs[2 * n];
		if (listed->holders > 0)
			return true;
	}
	return false;
}
