#include "show/holders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lock/alias.h"
#include "base/alloc.h"
#include "base/number.h"

#define KEPT_MOST ((size_t)4 * SHOWN_MOST) /* until all servers have told */
#define SPOILT_MOST 4 /* beside KEY: its record, queue, wishes, waits */

void holders_init_bytes(struct holders *holders, struct quorum *quorum,
			struct argument key)
{
	*holders = (struct holders){0};
	names_init_bytes(&holders->names, key);
	ballot_init(&holders->ballot, quorum, 0, 0);
}

void holders_init(struct holders *holders, struct quorum *quorum,
		  const char *key)
{
	holders_init_bytes(holders, quorum,
			   (struct argument){key, strlen(key)});
}

static void forget(struct crowd *crowd)
{
	free(crowd->seen);
	*crowd = (struct crowd){0};
}

void holders_forget(struct holders *holders)
{
	forget(&holders->holding);
	forget(&holders->waiting);
}

void holders_release(struct holders *holders)
{
	names_release(&holders->names);
	holders_forget(holders);
}

/* --- what the servers have told ------------------------------------------- */

size_t holders_servers(const struct holders *holders, enum standing standing)
{
	size_t count = 0;

	for (size_t i = 0; i < holders->ballot.quorum->count; i++)
		count += holders->standing[i] == standing;
	return count;
}

bool holders_is_misused(const struct holders *holders, size_t server)
{
	return holders->standing[server] == STANDING_MISUSED ||
	       (holders->standing[server] != STANDING_UNKNOWN &&
		holders->spoilt[server] > 0);
}

size_t holders_misused(const struct holders *holders)
{
	size_t count = 0;

	for (size_t i = 0; i < holders->ballot.quorum->count; i++)
		count += holders_is_misused(holders, i);
	return count;
}

void holders_print_spoilt(struct buffer *text, const struct holders *holders,
			  size_t server)
{
	const struct names *names = &holders->names;
	const struct argument *const beside[SPOILT_MOST] = {
		&names->record, &names->queue, &names->wishes, &names->waits};

	buffer_print(text, "%s is a %s",
		     beside[holders->spoilt[server] - 1]->data,
		     holders->spoilt_type[server]);
}

static bool says_something(const struct holders *holders, size_t i)
{
	return holders->standing[i] == STANDING_HELD ||
	       holders->standing[i] == STANDING_MISUSED;
}

size_t holders_speaker(const struct holders *holders)
{
	size_t count = holders->ballot.quorum->count, best = count, most = 0;

	for (size_t i = 0; i < count; i++) {
		size_t same = 0;

		if (!says_something(holders, i))
			continue;
		for (size_t k = 0; k < count; k++)
			same += says_something(holders, k) &&
				holders->permits[k] == holders->permits[i] &&
				strcmp(holders->type[k], holders->type[i]) == 0;
		if (same > most) {
			most = same;
			best = i;
		}
	}
	return best;
}

int64_t holders_permits(const struct holders *holders)
{
	size_t speaker = holders_speaker(holders);

	return speaker < holders->ballot.quorum->count
		       ? holders->permits[speaker]
		       : -1;
}

enum kind holders_kind(const char *type, int64_t permits)
{
	if (strcmp(type, "string") == 0)
		return KIND_EXCLUSIVE;
	if (strcmp(type, "hash") == 0)
		return KIND_REENTRANT;
	if (strcmp(type, "zset") == 0 && permits >= 0)
		return permits == 0 ? KIND_SHARED : KIND_PERMITS;
	return KIND_NONE;
}

const char *holders_kind_name(enum kind kind)
{
	static const char *const names[] = {
		[KIND_EXCLUSIVE] = "exclusive", [KIND_REENTRANT] = "reentrant",
		[KIND_SHARED] = "shared",       [KIND_PERMITS] = "permits",
		[KIND_NONE] = "none",
	};

	return names[kind];
}

int64_t holders_fence(const struct holders *holders)
{
	int64_t fence = 0;

	for (size_t i = 0; i < holders->ballot.quorum->count; i++)
		if (holders->standing[i] != STANDING_UNKNOWN &&
		    holders->fences[i] > fence)
			fence = holders->fences[i];
	return fence;
}

size_t seen_count(const struct seen *seen)
{
	return (size_t)__builtin_popcount(seen->servers);
}

bool holders_is_partial(const struct holders *holders,
			const struct seen *holder)
{
	return seen_count(holder) < quorum_size(holders->ballot.quorum);
}

/* A bit for each server that has not answered, or not told all. */
static uint32_t find_lacking(const struct holders *holders)
{
	uint32_t lacking = 0;

	for (size_t i = 0; i < holders->ballot.quorum->count; i++)
		if (holders->ballot.vote[i] != VOTE_YES ||
		    !holders->complete[i])
			lacking |= UINT32_C(1) << i;
	return lacking;
}

int holders_has_lock(const struct holders *holders, const struct seen *holder)
{
	struct seen most = {.servers = holder->servers | find_lacking(holders)};

	if (!holders_is_partial(holders, holder))
		return 1;
	return holders_is_partial(holders, &most) ? 0 : -1;
}

int holders_is_held(const struct holders *holders)
{
	const struct crowd *holding = &holders->holding;
	struct seen somebody = {0}; /* of whom there is nothing to show */
	int held = 0;

	for (size_t i = 0; i < holders->ballot.quorum->count; i++)
		if (holding->count == 0 &&
		    holders->standing[i] == STANDING_HELD)
			somebody.servers |= UINT32_C(1) << i;
	if (holding->count == 0)
		return holders_has_lock(holders, &somebody);
	for (size_t n = 0; n < holding->count && held != 1; n++) {
		int has = holders_has_lock(holders, &holding->seen[n]);

		if (has != 0)
			held = has;
	}
	return held;
}

int64_t holders_count(const struct holders *holders)
{
	const struct crowd *holding = &holders->holding;
	int64_t whole = 0;

	if (holding->total > SHOWN_MOST)
		return holding->total;
	for (size_t n = 0; n < holding->count; n++)
		whole += holders_has_lock(holders, &holding->seen[n]) != 0;
	return whole > 0 ? whole + holding->total - (int64_t)holding->count
			 : holding->total;
}

const struct seen *holders_longest(const struct holders *holders, bool *unknown)
{
	const struct seen *longest = NULL;

	*unknown = false;
	for (size_t n = 0; n < holders->holding.count; n++) {
		const struct seen *seen = &holders->holding.seen[n];

		if (holders_has_lock(holders, seen) == 0)
			continue;
		*unknown |= seen->who.held < 0;
		if (longest == NULL || seen->who.held > longest->who.held)
			longest = seen;
	}
	return longest;
}

/* --- reading what servers say ------------------------------------------- */

/* A number of at least `least`, and the byte that ends it. */
static int read_number(const char **at, char end, int64_t least,
		       int64_t *number)
{
	return number_read(at, least, INT64_MAX, number) < 0 || *(*at)++ != end
		       ? -1
		       : 0;
}

static int read_digest(struct seen *seen, const char **at)
{
	if (strspn(*at, "0123456789abcdef") != DIGEST_SIZE - 1 ||
	    (*at)[DIGEST_SIZE - 1] != ' ')
		return -1;
	memcpy(seen->digest, *at, DIGEST_SIZE - 1);
	*at += DIGEST_SIZE;
	return 0;
}

static void read_description(struct seen *seen, const char *text, size_t length)
{
	seen->who.has_reply = true;
	seen->who.has_description = length > 0;
	record_parse(&seen->who.holder, text, length);
}

int seen_read_holder(struct seen *seen, const char *text, size_t length)
{
	const char *at = text;

	*seen = (struct seen){0};
	if (read_digest(seen, &at) < 0 ||
	    read_number(&at, ' ', -1, &seen->who.left) < 0 ||
	    read_number(&at, ' ', -1, &seen->who.held) < 0 ||
	    read_number(&at, ' ', 1, &seen->count) < 0 ||
	    read_number(&at, '\n', 0, &seen->slot) < 0)
		return -1;
	read_description(seen, at, length - (size_t)(at - text));
	return 0;
}

static void read_wish(struct seen *seen, const char *kind)
{
	bool taken = strcmp(kind, "none") != 0;

	seen->wants = holders_kind(kind, seen->permits);
	seen->wish_known = !taken || seen->wants != KIND_NONE;
}

static int read_waiter(struct seen *seen, const char *text, size_t length)
{
	const char *at = text, *blank;
	char kind[9];

	*seen = (struct seen){.who.left = -1};
	if (read_digest(seen, &at) < 0 ||
	    read_number(&at, ' ', 0, &seen->who.held) < 0)
		return -1;
	blank = strchr(at, ' ');
	if (blank == NULL || (size_t)(blank - at) >= sizeof(kind))
		return -1;
	memcpy(kind, at, (size_t)(blank - at));
	kind[blank - at] = '\0';
	at = blank + 1;
	if (read_number(&at, '\n', 0, &seen->permits) < 0)
		return -1;
	read_wish(seen, kind);
	read_description(seen, at, length - (size_t)(at - text));
	return 0;
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int by_age(const void *a, const void *b)
{
	const struct seen *one = a, *other = b;

	if (one->who.held != other->who.held)
		return one->who.held > other->who.held ? -1 : 1;
	return one->order < other->order ? -1 : one->order > other->order;
}

void holders_sort(struct crowd *crowd)
{
	if (crowd->count > 1)
		qsort(crowd->seen, crowd->count, sizeof(*crowd->seen), by_age);
	if (crowd->total < (int64_t)crowd->count)
		crowd->total = (int64_t)crowd->count;
	if (crowd->count > SHOWN_MOST)
		crowd->count = SHOWN_MOST;
}

/* One of a server's, merged with what others said of the same token. */
static void merge(struct crowd *crowd, const struct seen *seen, size_t server)
{
	struct seen *known = NULL;

	if (crowd->seen == NULL)
		crowd->seen = xcalloc(KEPT_MOST, sizeof(*crowd->seen));
	for (size_t i = 0; i < crowd->count && known == NULL; i++)
		if (strcmp(crowd->seen[i].digest, seen->digest) == 0 &&
		    crowd->seen[i].slot == seen->slot)
			known = &crowd->seen[i];
	if (known == NULL) {
		if (crowd->count == KEPT_MOST)
			holders_sort(crowd);
		known = &crowd->seen[crowd->count];
		*known = *seen;
		known->order = crowd->count++;
	}
	known->servers |= UINT32_C(1) << server;
	known->count = larger(known->count, seen->count);
	if (known->who.left >= 0)
		known->who.left = seen->who.left < 0 ? -1
						     : larger(known->who.left,
							      seen->who.left);
	known->who.held = larger(known->who.held, seen->who.held);
	if (!known->who.has_description && seen->who.has_description) {
		known->who.has_description = true;
		known->who.holder = seen->who.holder;
	}
	if (known->who.holder.breaker.asked < 0)
		known->who.holder.breaker = seen->who.holder.breaker;
	if (!known->wish_known && seen->wish_known) {
		known->wish_known = true;
		known->wants = seen->wants;
		known->permits = seen->permits;
	}
}

typedef int read_item(struct seen *seen, const char *text, size_t length);

static int read_page(struct crowd *crowd, size_t server,
		     const struct reply *reply, size_t value, read_item *read)
{
	size_t count = reply_item_count(reply, value);
	struct seen seen;

	for (size_t n = 0; n < count; n++) {
		struct value item = reply_item(reply, value, n);

		if (item.text == NULL ||
		    read(&seen, item.text, item.length) < 0)
			return -1;
		seen.who.is_hash = strcmp(reply->value[1].text, "hash") == 0;
		merge(crowd, &seen, server);
	}
	return 0;
}

/* Whether it has told all holders, or else where it goes on. */
static bool are_holders_told(struct holders *holders, size_t i,
			     const struct reply *reply)
{
	const char *next = reply->count > 12 ? reply->value[12].text : NULL;

	if (next == NULL || strlen(next) >= sizeof(holders->place[i]))
		next = "-";
	snprintf(holders->place[i], sizeof(holders->place[i]), "%s", next);
	return strcmp(next, "-") == 0 || reply_item_count(reply, 6) == 0;
}

/* Whether it has told all waiters, or as many as are shown. */
static bool are_waiters_told(struct holders *holders, size_t i,
			     const struct reply *reply)
{
	size_t page = reply_item_count(reply, 7);
	size_t told = holders->told_waiters[i] += page;

	return page == 0 || told >= SHOWN_MOST ||
	       (int64_t)told >= reply->value[5].number;
}

static int read_pages(struct holders *holders, size_t i,
		      const struct reply *reply)
{
	const struct value *said = reply->value;
	bool told;

	if (read_page(&holders->holding, i, reply, 6, seen_read_holder) < 0 ||
	    read_page(&holders->waiting, i, reply, 7, read_waiter) < 0)
		return -1;
	holders->holding.total = larger(holders->holding.total, said[4].number);
	holders->waiting.total = larger(holders->waiting.total, said[5].number);
	told = are_holders_told(holders, i, reply);
	holders->complete[i] =
		(are_waiters_told(holders, i, reply) || holders->hasty) && told;
	return 0;
}

static bool makes_sense(const struct reply *reply)
{
	const struct value *said = reply->value;

	if (reply->count < 8 || said[1].text == NULL)
		return false;
	for (size_t i = 2; i < 6; i++)
		if (said[i].text != NULL)
			return false;
	return said[2].number >= -1 && said[2].number <= PERMITS_LARGEST &&
	       said[4].number >= 0 && said[5].number >= 0;
}

/* Where the answer has more than eight items. */
static void read_rest(struct holders *holders, size_t i,
		      const struct reply *reply)
{
	const struct value *said = reply->value;

	holders->began[i] =
		reply->count > 8 && said[8].text == NULL ? said[8].number : -1;
	holders->replica[i] =
		reply->count > 9 && said[9].text == NULL && said[9].number == 1;
	holders->spoilt[i] = 0;
	if (reply->count > 11 && said[10].text == NULL && said[10].number > 0 &&
	    said[10].number <= SPOILT_MOST && said[11].text != NULL) {
		holders->spoilt[i] = (int)said[10].number;
		snprintf(holders->spoilt_type[i],
			 sizeof(holders->spoilt_type[i]), "%s", said[11].text);
	}
}

void holders_hear(void *context, size_t i, const struct reply *reply)
{
	struct holders *holders = context;
	const struct value *said;
	int64_t answer = 0, fence;

	holders->standing[i] = STANDING_UNKNOWN;
	if (!alias_read(&holders->ballot, i, reply, -1, &answer))
		return;
	said = reply->value;
	if (!makes_sense(reply) || read_pages(holders, i, reply) < 0) {
		ballot_reject(&holders->ballot, i);
		return;
	}
	fence = said[3].number;
	holders->fences[i] = fence > 0 && fence <= FENCE_LARGEST ? fence : 0;
	holders->permits[i] = said[2].number;
	snprintf(holders->type[i], sizeof(holders->type[i]), "%s",
		 said[1].text);
	read_rest(holders, i, reply);
	holders->ballot.vote[i] = VOTE_YES;
	holders->standing[i] = answer == 1   ? STANDING_HELD
			       : answer == 0 ? STANDING_FREE
					     : STANDING_MISUSED;
}
