#include "show/batch.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "lock/alias.h"
#include "show/inspect.h"

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
	strlcpy(listed->crowd, "later", sizeof(listed->crowd));
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

static int read_crowd(struct listed *listed, const char **at)
{
	size_t length = strcspn(*at, "\n");

	if (length >= sizeof(listed->crowd) || (*at)[length] == '\0')
		return -1;
	memcpy(listed->crowd, *at, length);
	*at += length + 1;
	return 0;
}

/* "known waiting oldest longest crowd\n", and what read_holding reads. */
static int read_listed(struct listed *listed, const char *text, size_t length)
{
	const char *at = text;
	int64_t known, longest;

	*listed = (struct listed){0};
	if (read_number(&at, ' ', 0, &known) < 0 ||
	    read_number(&at, ' ', 0, &listed->waiting) < 0 ||
	    read_number(&at, ' ', 0, &listed->oldest_wait) < 0 ||
	    read_number(&at, ' ', -1, &longest) < 0 ||
	    read_crowd(listed, &at) < 0 ||
	    read_holding(listed, at, length - (size_t)(at - text)) < 0)
		return -1;
	if (strcmp(listed->crowd, "-") == 0)
		strlcpy(listed->crowd, listed->first.digest,
			sizeof(listed->crowd));
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

static void note_lost(struct batch *batch)
{
	for (size_t i = 0; i < batch->ballot.quorum->count; i++)
		batch->lost[i] = batch->ballot.vote[i] != VOTE_YES;
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
	note_lost(batch);
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

/* Whether server k has the n-th lock as server i has it. */
static bool agrees(const struct batch *batch, size_t n, size_t i, size_t k)
{
	const struct listed *said = &batch->answer[i][n];
	const struct listed *other = &batch->answer[k][n];

	return batch->answered[i] && batch->answered[k] &&
	       other->kind == said->kind && other->permits == said->permits &&
	       strcmp(other->crowd, said->crowd) == 0 &&
	       strcmp(said->crowd, "*") != 0;
}

/* A server that has the n-th lock, with `least` holders or more, as `need` servers have it.
 * The number of servers, if none has. */
static size_t find_speaker(const struct batch *batch, size_t n, size_t need,
			   int64_t least)
{
	size_t count = batch->ballot.quorum->count;

	for (size_t i = 0; i < count; i++) {
		size_t same = 0;

		for (size_t k = 0; k < count; k++)
			same += agrees(batch, n, i, k);
		if (same >= need && batch->answer[i][n].holders >= least)
			return i;
	}
	return count;
}

/* One of the numbers of the n-th lock, by its place in struct listed: the largest that
 * `need` servers have at least; or else `least`. */
static int64_t agree(const struct batch *batch, size_t n, size_t field,
		     int64_t least, size_t need)
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
		if (count >= need)
			most = said[i];
	}
	return most;
}

/* How many of the servers that have answered it takes, if the others say the same. */
static size_t count_needed(const struct batch *batch)
{
	size_t need = quorum_size(batch->ballot.quorum);

	for (size_t i = 0; i < batch->ballot.quorum->count && need > 1; i++)
		need -= !batch->answered[i];
	return need;
}

static bool is_shared(const struct batch *batch, size_t n)
{
	for (size_t i = 0; i < batch->ballot.quorum->count; i++)
		if (batch->answered[i] &&
		    (batch->answer[i][n].kind == KIND_SHARED ||
		     batch->answer[i][n].kind == KIND_PERMITS))
			return true;
	return false;
}

static void look_closer(struct batch *batch, size_t n, struct listed *listed)
{
	struct holders holders;
	struct error ignored; /* without a quorum the list ends, and says why */
	const struct seen *longest;
	int64_t permits;
	bool unknown;

	holders_init_bytes(&holders, batch->ballot.quorum, batch->names[n].key);
	holders.lost = batch->lost;
	(void)inspect_lock(&holders, &ignored);
	memcpy(batch->ballot.vote, holders.ballot.vote,
	       sizeof(batch->ballot.vote));
	note_lost(batch);
	longest = holders_longest(&holders, &unknown);
	permits = holders_permits(&holders);
	if (longest != NULL && permits >= 0) {
		listed->kind = permits > 0 ? KIND_PERMITS : KIND_SHARED;
		listed->permits = permits;
		listed->holders = holders_count(&holders);
		listed->first = *longest;
		listed->longest = longest->who.held;
		listed->perhaps = holders_is_held(&holders) < 0;
	}
	holders_release(&holders);
}

/* What a quorum says of those who hold the lock, or might; whether anybody does. */
static bool find_holders(struct batch *batch, size_t n, struct listed *listed)
{
	size_t quorum = quorum_size(batch->ballot.quorum), need = quorum;
	size_t none = batch->ballot.quorum->count;
	size_t speaker = find_speaker(batch, n, quorum, 0);

	*listed = (struct listed){.kind = KIND_NONE, .longest = -1};
	if (speaker == none && is_shared(batch, n)) {
		look_closer(batch, n, listed);
		return listed->holders > 0;
	}
	if (speaker == none) {
		need = count_needed(batch);
		speaker = find_speaker(batch, n, need, 1);
	}
	if (speaker == none || batch->answer[speaker][n].holders == 0)
		return false;
	*listed = batch->answer[speaker][n];
	listed->perhaps = need < quorum;
	listed->longest =
		agree(batch, n, offsetof(struct listed, longest), -1, need);
	return true;
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

bool batch_tell(struct batch *batch, size_t n, struct listed *listed)
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
	listed->waiting = agree(batch, n, offsetof(struct listed, waiting), 0,
				quorum_size(batch->ballot.quorum));
	listed->oldest_wait =
		agree(batch, n, offsetof(struct listed, oldest_wait), 0,
		      quorum_size(batch->ballot.quorum));
	return held;
}
