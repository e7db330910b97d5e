#include "show/batch.h"

#include <stddef.h>
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
	for (size_t n = 0; n < batch->count; n++) {
		free((char *)batch->names[n].key.data);
		names_release(&batch->names[n]);
	}
	batch->count = 0;
}

void batch_add(struct batch *batch, struct argument key)
{
	names_init_bytes(&batch->names[batch->count++], key);
}

/* "later protocol": what a newer redlock does with it is not known. */
static int read_later(struct listed *listed, const char *text)
{
	listed->kind = KIND_NONE;
	listed->holders = 1;
	listed->waiting = listed->oldest_wait = -1;
	listed->first.who.held = listed->first.who.left = -1;
	return number_read(&text, 1, INT64_MAX,
			   &listed->first.who.holder.protocol);
}

/* "type permits holders ", and what seen_read_holder reads; or "" */
static int read_holding(struct listed *listed, const char *text, size_t length)
{
	const char *end = text + length;
	char type[8];
	size_t name = strcspn(text, " ");

	listed->kind = KIND_NONE;
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
	/* -1: another program's */
	listed->kind =
		holders_kind(type, listed->permits < 0 ? 0 : listed->permits);
	if (seen_read_holder(&listed->first, text, (size_t)(end - text)) < 0)
		return -1;
	listed->first.who.is_hash = listed->kind == KIND_REENTRANT;
	return 0;
}

/* A number of at least `least`, and the byte that ends it. */
static int read_number(const char **at, char end, int64_t least,
		       int64_t *number)
{
	return number_read(at, least, INT64_MAX, number) < 0 || *(*at)++ != end
		       ? -1
		       : 0;
}

/* "known waiting oldest longest\n", and what read_holding reads. */
static int read_listed(struct listed *listed, const char *text, size_t length)
{
	const char *at = text;
	int64_t known, longest;

	*listed = (struct listed){0};
	if (read_number(&at, ' ', 0, &known) < 0 ||
	    read_number(&at, ' ', 0, &listed->waiting) < 0 ||
	    read_number(&at, ' ', 0, &listed->oldest_wait) < 0 ||
	    read_number(&at, '\n', -1, &longest) < 0 ||
	    read_holding(listed, at, length - (size_t)(at - text)) < 0)
		return -1;
	listed->known = known > 0 || listed->holders > 0;
	listed->longest = longest > listed->first.who.held
				  ? longest
				  : listed->first.who.held;
	return 0;
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

/* One that makes no sense is passed over. */
static void read_run(struct past_run *run, const struct reply *reply, size_t n)
{
	struct value item = reply_item(reply, 3, n);

	if (item.text == NULL ||
	    run_read(run, item.text, item.length, reply->value[2].number) < 0)
		*run = (struct past_run){0};
}

static void read_runs(struct batch *batch, size_t i, const struct reply *reply)
{
	if (!batch->runs || reply->count < 4 || reply->value[2].text != NULL ||
	    reply_item_count(reply, 3) != 2 * batch->count)
		return;
	for (size_t n = 0; n < batch->count; n++) {
		struct listed *listed = &batch->answer[i][n];

		read_run(&listed->last, reply, 2 * n);
		read_run(&listed->success, reply, 2 * n + 1);
	}
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
	read_runs(batch, i, reply);
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
			script_batch(quorum, i, batch->names, batch->count,
				     batch->runs);
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
		if (count >= quorum_size(quorum))
			most = holders;
	}
	return most;
}

/* One of the numbers of the n-th lock, by its place in struct listed: the largest that
 * a quorum has at least; or else `least`. */
static int64_t agree(const struct batch *batch, size_t n, size_t field,
		     int64_t least)
{
	const struct quorum *quorum = batch->ballot.quorum;
	int64_t most = least, said[SERVERS_MAX];

	for (size_t i = 0; i < quorum->count; i++) {
		said[i] = least;
		if (batch->answered[i])
			memcpy(&said[i],
			       (const char *)&batch->answer[i][n] + field,
			       sizeof(said[i]));
	}
	for (size_t i = 0; i < quorum->count; i++) {
		size_t count = 0;

		for (size_t k = 0; k < quorum->count && said[i] > most; k++)
			count += said[k] >= said[i];
		if (count >= quorum_size(quorum))
			most = said[i];
	}
	return most;
}

/* The lock as one of the servers has it whose holders a quorum has, too. */
static bool find_holders(const struct batch *batch, size_t n,
			 struct listed *listed)
{
	for (size_t i = 0; i < batch->ballot.quorum->count; i++) {
		if (!batch->answered[i] || batch->answer[i][n].holders == 0)
			continue;
		*listed = batch->answer[i][n];
		listed->holders = count_holders(batch, n, i);
		if (listed->holders > 0)
			return true;
	}
	*listed = (struct listed){.kind = KIND_NONE, .longest = -1};
	return false;
}

static void find_runs(const struct batch *batch, size_t n,
		      struct listed *listed)
{
	struct history history = {.ballot = batch->ballot};
	const struct past_run *last, *success;

	for (size_t i = 0; i < batch->ballot.quorum->count; i++) {
		if (!batch->answered[i])
			continue;
		history_add(&history, i, &batch->answer[i][n].last);
		history_add(&history, i, &batch->answer[i][n].success);
	}
	history_merge(&history);
	last = history_last(&history);
	success = history_success(&history);
	listed->last = last != NULL ? *last : (struct past_run){0};
	listed->success = success != NULL ? *success : (struct past_run){0};
	history_release(&history);
}

bool batch_tell(const struct batch *batch, size_t n, struct listed *listed)
{
	bool held = find_holders(batch, n, listed);

	listed->key = batch->names[n].key;
	for (size_t i = 0; i < batch->ballot.quorum->count; i++)
		listed->known |=
			batch->answered[i] && batch->answer[i][n].known;
	if (batch->runs)
		find_runs(batch, n, listed);
	if (listed->waiting < 0)
		return held;
	listed->waiting = agree(batch, n, offsetof(struct listed, waiting), 0);
	listed->oldest_wait =
		agree(batch, n, offsetof(struct listed, oldest_wait), 0);
	if (held)
		listed->longest =
			agree(batch, n, offsetof(struct listed, longest), -1);
	return held;
}
