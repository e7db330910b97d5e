#include "show/holders.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lock/ballot.h"
#include "base/alloc.h"

void view_init(struct view *view, struct quorum *quorum, const char *key)
{
	*view = (struct view){0};
	lock_init(&view->lock, quorum, key, 0, 0);
}

static void forget(struct crowd *crowd)
{
	free(crowd->seen);
	*crowd = (struct crowd){0};
}

void view_forget(struct view *view)
{
	forget(&view->holders);
	forget(&view->waiters);
}

void view_release(struct view *view)
{
	lock_release_memory(&view->lock);
	view_forget(view);
}

size_t view_quorum(const struct quorum *quorum, int64_t permits)
{
	size_t n = permits > 1 ? (size_t)permits : 1;

	return quorum->count * n / (n + 1) + 1;
}

/* --- what a view tells -------------------------------------------------- */

size_t view_count(const struct view *view, enum standing standing)
{
	size_t count = 0;

	for (size_t i = 0; i < view->lock.quorum->count; i++)
		count += view->standing[i] == standing;
	return count;
}

static bool says_something(const struct view *view, size_t i)
{
	return view->standing[i] == STANDING_HELD ||
	       view->standing[i] == STANDING_MISUSED;
}

size_t view_speaker(const struct view *view)
{
	size_t count = view->lock.quorum->count, best = count, most = 0;

	for (size_t i = 0; i < count; i++) {
		size_t same = 0;

		if (!says_something(view, i))
			continue;
		for (size_t k = 0; k < count; k++)
			same += says_something(view, k) &&
				view->permits[k] == view->permits[i] &&
				strcmp(view->type[k], view->type[i]) == 0;
		if (same > most) {
			most = same;
			best = i;
		}
	}
	return best;
}

enum kind view_kind(const char *type, int64_t permits)
{
	if (strcmp(type, "string") == 0)
		return KIND_EXCLUSIVE;
	if (strcmp(type, "hash") == 0)
		return KIND_REENTRANT;
	if (strcmp(type, "zset") == 0 && permits >= 0)
		return permits == 0 ? KIND_SHARED : KIND_PERMITS;
	return KIND_NONE;
}

const char *view_kind_name(enum kind kind)
{
	static const char *const names[] = {
		[KIND_EXCLUSIVE] = "exclusive", [KIND_REENTRANT] = "reentrant",
		[KIND_SHARED] = "shared",       [KIND_PERMITS] = "permits",
		[KIND_NONE] = "none",
	};

	return names[kind];
}

int64_t view_fence(const struct view *view)
{
	int64_t fence = 0;

	for (size_t i = 0; i < view->lock.quorum->count; i++)
		if (view->standing[i] != STANDING_UNKNOWN &&
		    view->fences[i] > fence)
			fence = view->fences[i];
	return fence;
}

size_t seen_count(const struct seen *seen)
{
	return (size_t)__builtin_popcount(seen->servers);
}

bool view_is_partial(const struct view *view, const struct seen *holder)
{
	const struct quorum *quorum = view->lock.quorum;
	size_t i = view_speaker(view);

	return seen_count(holder) <
	       view_quorum(quorum, i < quorum->count ? view->permits[i] : 0);
}

/* --- reading what servers say ------------------------------------------- */

/* A number from least to most, and the byte that ends it. */
static int read_number(const char **at, char end, int64_t least, int64_t most,
		       int64_t *number)
{
	char *behind;

	errno = 0;
	*number = strtoll(*at, &behind, 10);
	if (errno != 0 || behind == *at || *behind != end || *number < least ||
	    *number > most)
		return -1;
	*at = behind + 1;
	return 0;
}

static int read_mark(struct seen *seen, const char **at)
{
	if (strspn(*at, "0123456789abcdef") != MARK_SIZE - 1 ||
	    (*at)[MARK_SIZE - 1] != ' ')
		return -1;
	memcpy(seen->mark, *at, MARK_SIZE - 1);
	*at += MARK_SIZE;
	return 0;
}

static void read_description(struct seen *seen, const char *text, size_t length)
{
	seen->who.told = true;
	seen->who.known = length > 0;
	record_parse(&seen->who.holder, text, length);
}

int seen_read_holder(struct seen *seen, const char *text, size_t length)
{
	const char *at = text;

	*seen = (struct seen){0};
	if (read_mark(seen, &at) < 0 ||
	    read_number(&at, ' ', -1, INT64_MAX, &seen->who.left) < 0 ||
	    read_number(&at, ' ', -1, INT64_MAX, &seen->who.held) < 0 ||
	    read_number(&at, '\n', 1, INT64_MAX, &seen->count) < 0)
		return -1;
	read_description(seen, at, length - (size_t)(at - text));
	return 0;
}

static void read_wish(struct seen *seen, const char *kind)
{
	bool taken = strcmp(kind, "none") != 0;

	seen->wants = view_kind(kind, seen->permits);
	seen->wish_known = !taken || seen->wants != KIND_NONE;
}

static int read_waiter(struct seen *seen, const char *text, size_t length)
{
	const char *at = text, *blank;
	char kind[9];

	*seen = (struct seen){.who.left = -1};
	if (read_mark(seen, &at) < 0 ||
	    read_number(&at, ' ', 0, INT64_MAX, &seen->who.held) < 0)
		return -1;
	blank = strchr(at, ' ');
	if (blank == NULL || (size_t)(blank - at) >= sizeof(kind))
		return -1;
	memcpy(kind, at, (size_t)(blank - at));
	kind[blank - at] = '\0';
	at = blank + 1;
	if (read_number(&at, '\n', 0, INT64_MAX, &seen->permits) < 0)
		return -1;
	read_wish(seen, kind);
	read_description(seen, at, length - (size_t)(at - text));
	return 0;
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* One of a server's, merged with what others said of the same token. */
static void merge(struct crowd *crowd, const struct seen *seen, size_t server)
{
	struct seen *known = NULL;

	if (crowd->seen == NULL)
		crowd->seen = heap_get(SHOWN_MOST, sizeof(*crowd->seen));
	for (size_t i = 0; i < crowd->count && known == NULL; i++)
		if (strcmp(crowd->seen[i].mark, seen->mark) == 0)
			known = &crowd->seen[i];
	if (known == NULL) {
		if (crowd->count == SHOWN_MOST)
			return;
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
	if (!known->who.known && seen->who.known) {
		known->who.known = true;
		known->who.holder = seen->who.holder;
	}
	if (!known->wish_known && seen->wish_known) {
		known->wish_known = true;
		known->wants = seen->wants;
		known->permits = seen->permits;
	}
}

typedef int read_item(struct seen *seen, const char *text, size_t length);

static int read_page(struct crowd *crowd, size_t *told, size_t server,
		     const struct reply *reply, size_t value, read_item *read)
{
	size_t count = reply_item_count(reply, value);
	struct seen seen;

	for (size_t n = 0; n < count; n++) {
		struct value item = reply_item(reply, value, n);

		if (item.text == NULL ||
		    read(&seen, item.text, item.length) < 0)
			return -1;
		merge(crowd, &seen, server);
	}
	*told += count;
	return 0;
}

/* Whether this page has brought all that there is, or that is shown. */
static bool is_told(size_t told, size_t page, int64_t total)
{
	return page == 0 || told >= SHOWN_MOST || (int64_t)told >= total;
}

static int read_pages(struct view *view, size_t i, const struct reply *reply)
{
	const struct value *said = reply->value;
	int64_t holders = said[4].number, waiters = said[5].number;

	if (read_page(&view->holders, &view->told_holders[i], i, reply, 6,
		      seen_read_holder) < 0 ||
	    read_page(&view->waiters, &view->told_waiters[i], i, reply, 7,
		      read_waiter) < 0)
		return -1;
	view->holders.total = larger(view->holders.total, holders);
	view->waiters.total = larger(view->waiters.total, waiters);
	view->complete[i] =
		is_told(view->told_holders[i], reply_item_count(reply, 6),
			holders) &&
		(view->hasty || is_told(view->told_waiters[i],
					reply_item_count(reply, 7), waiters));
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

void view_hear(void *context, size_t i, const struct reply *reply)
{
	struct view *view = context;
	const struct value *said;
	int64_t answer = 0, fence;

	view->standing[i] = STANDING_UNKNOWN;
	if (!ballot_read(&view->lock, i, reply, -1, &answer))
		return;
	said = reply->value;
	if (!makes_sense(reply) || read_pages(view, i, reply) < 0) {
		ballot_reject(&view->lock, i);
		return;
	}
	fence = said[3].number;
	view->fences[i] = fence > 0 && fence <= FENCE_LARGEST ? fence : 0;
	view->permits[i] = said[2].number;
	snprintf(view->type[i], sizeof(view->type[i]), "%s", said[1].text);
	view->replica[i] =
		reply->count > 8 && said[8].text == NULL && said[8].number == 1;
	view->lock.vote[i] = VOTE_YES;
	view->standing[i] = answer == 1   ? STANDING_HELD
			    : answer == 0 ? STANDING_FREE
					  : STANDING_MISUSED;
}
