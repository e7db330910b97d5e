#include "show/scan.h"

#include <fnmatch.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lock/alias.h"
#include "lock/explain.h"
#include "server/cluster.h"
#include "base/alloc.h"

#define CURSOR_SIZE 24
#define NAMES 4 /* their place in the answer */

/* A page is of 10,000 keys that have been looked at, or of 250 names. */
#define PAGE_NAMES 250
#define PAGE_WORK 10000
#define WORK_MOST 20000000 /* in a nearly empty table */
#define KEYS_MOST 1000000000

struct listing {
	const char *pattern;
	const struct lister *lister;
	struct batch batch;
	void *listed; /* owned; KEYs, as a tree of tsearch(3) */
	uint64_t listed_count;
	size_t scanned;         /* the server that is scanned now */
	struct nodes nodes;     /* of a cluster */
	size_t node;            /* that is scanned now */
	bool done[SERVERS_MAX]; /* has been scanned to its end */
	size_t at_once; /* locks to look at: one, as a cluster has hash slots */
	char cursor[CURSOR_SIZE];
	char passed[CURSOR_SIZE]; /* a cursor that must not come again */
	uint64_t pages, passed_at;
	int64_t keys; /* that are on the server, as it says; -1: it does not */
	int64_t work; /* at least; what scanning took so far */
	struct argument *names; /* owned; the page's records */
	size_t name_count;
	uint64_t looked_at;
	bool stopped;
};

static bool goes_on(const struct listing *listing)
{
	return !listing->stopped && batch_has_quorum(&listing->batch);
}

/* --- from a record's name to KEY ------------------------------------------ */

static int by_bytes(const void *a, const void *b)
{
	const struct argument *one = a, *other = b;

	if (one->length != other->length)
		return one->length < other->length ? -1 : 1;
	return memcmp(one->data, other->data, one->length);
}

/* False if KEY has been listed before. */
static bool note_listed(struct listing *listing, struct argument key)
{
	struct argument *noted = xcalloc(1, sizeof(*noted) + key.length);
	struct argument **known;

	*noted = (struct argument){memcpy(noted + 1, key.data, key.length),
				   key.length};
	known = tsearch(noted, &listing->listed, by_bytes);
	if (known != NULL && *known == noted) {
		listing->listed_count++;
		return true;
	}
	if (known == NULL)
		memory_exhausted();
	free(noted);
	return false;
}

/* A server has mostly the locks of the one that was scanned before it. */
static bool is_listed(const struct listing *listing, struct argument key)
{
	return listing->scanned > 0 &&
	       tfind(&key, &listing->listed, by_bytes) != NULL;
}

/* fnmatch(3) takes no byte 0: another control character stands for it. */
static bool matches(const char *pattern, struct argument key)
{
	char text[KEY_LONGEST + 1];

	memcpy(text, key.data, key.length);
	for (size_t i = 0; i < key.length; i++)
		if (text[i] == '\0')
			text[i] = '\1';
	text[key.length] = '\0';
	return fnmatch(pattern, text, 0) == 0;
}

static void ask_batch(struct listing *listing)
{
	struct listed listed;

	if (listing->batch.count == 0)
		return;
	batch_round(&listing->batch);
	for (size_t n = 0; n < listing->batch.count && goes_on(listing); n++)
		if ((batch_tell(&listing->batch, n, &listed) ||
		     (listing->lister->all && listed.known)) &&
		    note_listed(listing, listed.key) &&
		    !listing->lister->found(listing->lister->context, &listed))
			listing->stopped = true;
	batch_clear(&listing->batch);
}

static struct argument copy(struct argument name)
{
	char *data = xcalloc(name.length + 1, 1);

	memcpy(data, name.data, name.length);
	return (struct argument){data, name.length};
}

static void add_pair(struct listing *listing, struct argument key,
		     struct argument record)
{
	struct argument name;
	bool same;

	if (key.length == 0 || key.length > KEY_LONGEST ||
	    (listing->pattern != NULL && !matches(listing->pattern, key)) ||
	    is_listed(listing, key))
		return;
	name = names_record(key);
	same = name.length == record.length &&
	       memcmp(name.data, record.data, name.length) == 0;
	free((char *)name.data);
	if (!same)
		return;
	batch_add(&listing->batch, copy(key));
	if (listing->batch.count == listing->at_once)
		ask_batch(listing);
}

/* Tries the KEYs that may have a record of this name: add_pair takes the one that
 * has. */
static void add_record(struct listing *listing, struct argument record)
{
	size_t suffix = sizeof(NAMES_SUFFIX) - 1;
	struct argument base = {record.data, record.length - suffix};

	if (record.length <= suffix ||
	    memcmp(record.data + base.length, NAMES_SUFFIX, suffix) != 0)
		return;
	add_pair(listing, base, record); /* "{x}" */
	if (base.data[--base.length] != ':')
		return;
	add_pair(listing, base, record);
	if (base.length > 2 && base.data[0] == '{')
		add_pair(listing,
			 (struct argument){base.data + 1, base.length - 2},
			 record);
}

/* --- looking for records --------------------------------------------------- */

static void forget_names(struct listing *listing)
{
	for (size_t n = 0; n < listing->name_count; n++)
		free((char *)listing->names[n].data);
	free(listing->names);
	listing->names = NULL;
	listing->name_count = 0;
}

static void keep_names(struct listing *listing, const struct reply *reply)
{
	size_t count = reply_item_count(reply, NAMES);

	forget_names(listing);
	listing->names = xcalloc(count + 1, sizeof(*listing->names));
	for (size_t n = 0; n < count; n++) {
		struct value item = reply_item(reply, NAMES, n);

		if (item.text == NULL)
			continue;
		listing->names[listing->name_count++] =
			copy((struct argument){item.text, item.length});
	}
}

static void on_scan(void *context, size_t i, const struct reply *reply)
{
	struct listing *listing = context;
	struct ballot *ballot = &listing->batch.ballot;
	const struct value *said;
	int64_t answer = 0;

	if (!alias_read(ballot, i, reply, 1, &answer))
		return;
	said = reply->value;
	if (reply->count <= NAMES || said[1].text == NULL ||
	    said[1].length == 0 || said[1].length >= CURSOR_SIZE ||
	    said[2].number < 0 || said[3].text != NULL || said[3].number < -1) {
		ballot_reject(ballot, i);
		return;
	}
	ballot->vote[i] = VOTE_YES;
	snprintf(listing->cursor, CURSOR_SIZE, "%s", said[1].text);
	listing->looked_at += (uint64_t)said[2].number;
	listing->keys = said[3].number;
	keep_names(listing, reply);
}

/* One page of the scanned server's names; false if the server is lost. */
static bool scan_page(struct listing *listing, const char *pattern)
{
	struct reply_handler handler = {listing, on_scan, NULL};
	struct ballot *ballot = &listing->batch.ballot;
	struct quorum *quorum = ballot->quorum;
	size_t i = listing->scanned;

	quorum_round(quorum);
	ballot->vote[i] = VOTE_PENDING;
	if (listing->nodes.count > 0)
		server_visit(&quorum->servers[i],
			     &listing->nodes.list[listing->node]);
	script_scan(quorum, i, listing->cursor, pattern);
	quorum_gather(quorum, wait_until(deadline_in(quorum->timeout)),
		      &handler);
	listing->batch.lost[i] = ballot->vote[i] != VOTE_YES;
	return !listing->batch.lost[i];
}

/*
 * Whether SCAN can still come to its end: it never tells a cursor twice, and looks
 * at each key a few times at most. Each cursor is compared with one that came
 * before, which is another one after 1, 2, 4 ... pages: so a circle of any length
 * is found.
 */
static bool may_end(struct listing *listing)
{
	int64_t keys = listing->keys;

	if (keys < 0 || keys > KEYS_MOST)
		keys = KEYS_MOST;
	listing->work += listing->name_count >= PAGE_NAMES
				 ? (int64_t)listing->name_count
				 : PAGE_WORK;
	if (strcmp(listing->cursor, listing->passed) == 0 ||
	    listing->work > WORK_MOST + 4 * keys)
		return false;
	if (++listing->pages >= 2 * listing->passed_at) {
		memcpy(listing->passed, listing->cursor, CURSOR_SIZE);
		listing->passed_at = listing->pages;
	}
	return true;
}

static void begin_scan(struct listing *listing)
{
	snprintf(listing->cursor, CURSOR_SIZE, "0");
	listing->passed[0] = '\0';
	listing->pages = listing->passed_at = 0;
	listing->work = 0;
}

static bool lose_endless(struct listing *listing)
{
	size_t i = listing->scanned;

	conn_blame(&listing->batch.ballot.quorum->servers[i].conn,
		   CAUSE_NONSENSE, "its SCAN does not end");
	listing->batch.ballot.vote[i] = VOTE_FAILED;
	listing->batch.lost[i] = true;
	return false;
}

/* Whether what is scanned now has been scanned to its end. */
static bool scan_node(struct listing *listing, const char *pattern)
{
	const struct lister *lister = listing->lister;

	begin_scan(listing);
	do {
		if (!scan_page(listing, pattern))
			return false;
		for (size_t n = 0; n < listing->name_count && goes_on(listing);
		     n++)
			add_record(listing, listing->names[n]);
		if (goes_on(listing))
			ask_batch(listing);
		if (lister->progress != NULL)
			lister->progress(lister->context, listing->looked_at,
					 listing->listed_count);
		if (!goes_on(listing) || listing->batch.lost[listing->scanned])
			return false;
		if (strcmp(listing->cursor, "0") == 0)
			return true;
	} while (may_end(listing));
	return lose_endless(listing);
}

static bool find_nodes(struct listing *listing)
{
	struct ballot *ballot = &listing->batch.ballot;
	size_t i = listing->scanned;

	if (cluster_ask(&ballot->quorum->servers[i], ballot->quorum->timeout,
			&listing->nodes) == 0)
		return true;
	ballot->vote[i] = VOTE_FAILED;
	listing->batch.lost[i] = true;
	return false;
}

/* A cluster's server is all of its masters. */
static bool scan_server(struct listing *listing, const char *pattern)
{
	const struct quorum *quorum = listing->batch.ballot.quorum;
	bool done;

	if (quorum->servers[listing->scanned].url.kind != URL_CLUSTER)
		return scan_node(listing, pattern);
	done = find_nodes(listing);
	for (listing->node = 0; done && listing->node < listing->nodes.count;
	     listing->node++)
		done = scan_node(listing, pattern);
	nodes_release(&listing->nodes);
	return done;
}

/* Whether those that have not been scanned, or are lost, are too few to know of more. */
static bool is_scanned(const struct listing *listing)
{
	const struct quorum *quorum = listing->batch.ballot.quorum;
	size_t left = 0, need = listing->lister->all ? 1 : quorum_size(quorum);

	for (size_t i = 0; i < quorum->count; i++)
		left += !listing->done[i];
	return left < need;
}

static void scan_servers(struct listing *listing, const char *pattern)
{
	for (size_t i = 0; i < listing->batch.ballot.quorum->count; i++) {
		if (!goes_on(listing) || is_scanned(listing))
			break;
		listing->scanned = i;
		if (!listing->batch.lost[i])
			listing->done[i] = scan_server(listing, pattern);
	}
}

/* A SCAN pattern that matches the record of every KEY matching `pattern`. */
static void match_records(struct buffer *text, const char *pattern)
{
	if (pattern != NULL && strpbrk(pattern, "[\\") == NULL)
		buffer_print(text, "*%s", pattern);
	buffer_print(text, "*" NAMES_SUFFIX);
}

/* To the shell, a backslash that ends a pattern is a byte like any other. With it
 * fnmatch(3) matches nothing. */
static void mend_pattern(struct buffer *text, const char *pattern)
{
	size_t end = strlen(pattern), at = end;

	while (at > 0 && pattern[at - 1] == '\\')
		at--;
	buffer_print(text, (end - at) % 2 == 1 ? "%s\\" : "%s", pattern);
}

int scan_locks(struct quorum *quorum, const char *pattern,
	       const struct lister *lister, struct error *error)
{
	struct listing *listing = xcalloc(1, sizeof(*listing));
	struct buffer records = {0}, mended = {0};
	int result = 0;

	if (pattern != NULL)
		mend_pattern(&mended, pattern);
	listing->pattern = mended.data;
	listing->lister = lister;
	listing->at_once = BATCH_MOST;
	for (size_t i = 0; i < quorum->count; i++) {
		quorum->servers[i].conn.bounds.wide = true;
		if (quorum->servers[i].url.kind == URL_CLUSTER)
			listing->at_once = 1;
	}
	match_records(&records, pattern);
	batch_init(&listing->batch, quorum);
	listing->batch.runs = lister->all;
	batch_round(&listing->batch); /* which servers answer at all */
	scan_servers(listing, records.data);
	if (!batch_has_quorum(&listing->batch)) {
		explain_failure(&listing->batch.ballot, error);
		result = -1;
	}
	batch_clear(&listing->batch);
	forget_names(listing);
	tdestroy(listing->listed, free);
	buffer_release(&records);
	buffer_release(&mended);
	free(listing);
	return result;
}
