#include "show/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lock/ballot.h"
#include "server/cluster.h"
#include "base/glob.h"
#include "base/alloc.h"
#include "base/keyset.h"
#include "server/nodes.h"

#define RECORD_SUFFIX "redlock" /* after a ":", or a bare hash tag */
#define CURSOR_SIZE 24
#define NAMES 4 /* where they stand in the answer */

/* A page is of 10,000 keys that have been looked at, or of 250 names. */
#define PAGE_NAMES 250
#define PAGE_WORK 10000
#define WORK_MOST 20000000 /* in a table that is nearly empty */
#define KEYS_MOST 1000000000

struct listing {
	const char *pattern;
	const struct lister *lister;
	struct look look;
	struct keyset listed;
	size_t scanned;         /* the server that is scanned now */
	struct nodes nodes;     /* of a cluster */
	size_t node;            /* that is scanned now */
	bool done[SERVERS_MAX]; /* has been scanned to its end */
	size_t at_once; /* locks to look at: one, as a cluster has slots */
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
	return !listing->stopped && look_has_quorum(&listing->look);
}

/* --- from a record's name to KEY ------------------------------------------ */

static void look(struct listing *listing)
{
	struct listed listed;

	if (listing->look.count == 0)
		return;
	look_round(&listing->look);
	for (size_t n = 0; n < listing->look.count && goes_on(listing); n++)
		if (look_tell(&listing->look, n, &listed) &&
		    keyset_add(&listing->listed, listed.key.data,
			       listed.key.length) &&
		    !listing->lister->found(listing->lister->context, &listed))
			listing->stopped = true;
	look_clear(&listing->look);
}

static void add_pair(struct listing *listing, struct argument key,
		     struct argument record)
{
	struct argument name;

	if (key.length == 0 || key.length > KEY_LONGEST ||
	    (listing->pattern != NULL &&
	     !glob_matches(listing->pattern, key.data, key.length)))
		return;
	name = script_record_name(key);
	if (name.length != record.length ||
	    memcmp(name.data, record.data, name.length) != 0) {
		free((char *)name.data);
		return;
	}
	look_add(&listing->look, script_name(key, ""), name);
	if (listing->look.count == listing->at_once)
		look(listing);
}

/* The KEYs that may have a record of this name; add_pair takes the one that
 * has. */
static void add_record(struct listing *listing, struct argument record)
{
	size_t suffix = sizeof(RECORD_SUFFIX) - 1;
	struct argument base = {record.data, record.length - suffix};

	if (record.length <= suffix ||
	    memcmp(record.data + base.length, RECORD_SUFFIX, suffix) != 0)
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
	listing->names = heap_get(count + 1, sizeof(*listing->names));
	for (size_t n = 0; n < count; n++) {
		struct value item = reply_item(reply, NAMES, n);

		if (item.text == NULL)
			continue;
		listing->names[listing->name_count++] = script_name(
			(struct argument){item.text, item.length}, "");
	}
}

static void on_scan(void *context, size_t i, const struct reply *reply)
{
	struct listing *listing = context;
	struct lock *lock = &listing->look.lock;
	const struct value *said;
	int64_t answer = 0;

	if (!ballot_read(lock, i, reply, 1, &answer))
		return;
	said = reply->value;
	if (reply->count <= NAMES || said[1].text == NULL ||
	    said[1].length == 0 || said[1].length >= CURSOR_SIZE ||
	    said[2].number < 0 || said[3].text != NULL || said[3].number < -1) {
		ballot_reject(lock, i);
		return;
	}
	lock->vote[i] = VOTE_YES;
	snprintf(listing->cursor, CURSOR_SIZE, "%s", said[1].text);
	listing->looked_at += (uint64_t)said[2].number;
	listing->keys = said[3].number;
	keep_names(listing, reply);
}

static bool never(void *context)
{
	(void)context;
	return false;
}

/* One page of the scanned server's names; false where that is lost. */
static bool scan_page(struct listing *listing, const char *pattern)
{
	struct judge judge = {listing, on_scan, never};
	struct lock *lock = &listing->look.lock;
	struct quorum *quorum = lock->quorum;
	size_t i = listing->scanned;

	quorum_round(quorum);
	lock->vote[i] = VOTE_PENDING;
	if (listing->nodes.count > 0)
		server_visit(&quorum->servers[i],
			     &listing->nodes.list[listing->node]);
	script_scan(lock, i, listing->cursor, pattern);
	quorum_gather(quorum, deadline_in(quorum->timeout), &judge);
	listing->look.lost[i] = lock->vote[i] != VOTE_YES;
	return !listing->look.lost[i];
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

	server_blame(&listing->look.lock.quorum->servers[i], CAUSE_NONSENSE,
		     "its SCAN does not end");
	listing->look.lock.vote[i] = VOTE_FAILED;
	listing->look.lost[i] = true;
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
			look(listing);
		if (lister->progress != NULL)
			lister->progress(lister->context, listing->looked_at,
					 listing->listed.count);
		if (!goes_on(listing) || listing->look.lost[listing->scanned])
			return false;
		if (strcmp(listing->cursor, "0") == 0)
			return true;
	} while (may_end(listing));
	return lose_endless(listing);
}

static bool find_nodes(struct listing *listing)
{
	struct lock *lock = &listing->look.lock;
	size_t i = listing->scanned;

	if (cluster_ask(&lock->quorum->servers[i], lock->quorum->timeout,
			&listing->nodes) == 0)
		return true;
	lock->vote[i] = VOTE_FAILED;
	listing->look.lost[i] = true;
	return false;
}

/* A cluster's server is all of its masters. */
static bool scan_server(struct listing *listing, const char *pattern)
{
	const struct quorum *quorum = listing->look.lock.quorum;
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

/* Whether those that have not been scanned are too few for a quorum. */
static bool is_scanned(const struct listing *listing)
{
	const struct quorum *quorum = listing->look.lock.quorum;
	size_t left = 0;

	for (size_t i = 0; i < quorum->count; i++)
		left += !listing->look.lost[i] && !listing->done[i];
	return left < quorum_size(quorum);
}

static void scan_servers(struct listing *listing, const char *pattern)
{
	for (size_t i = 0; i < listing->look.lock.quorum->count; i++) {
		if (!goes_on(listing) || is_scanned(listing))
			break;
		listing->scanned = i;
		if (!listing->look.lost[i])
			listing->done[i] = scan_server(listing, pattern);
	}
}

/* A pattern that the record of each KEY that the pattern matches matches. */
static void match_records(struct buffer *text, const char *pattern)
{
	if (pattern != NULL && strpbrk(pattern, "[\\") == NULL)
		buffer_print(text, "*%s", pattern);
	buffer_print(text, "*" RECORD_SUFFIX);
}

int lock_list(struct quorum *quorum, const char *pattern,
	      const struct lister *lister, struct error *error)
{
	struct listing *listing = heap_get(1, sizeof(*listing));
	struct buffer records = {0};
	int result = 0;

	listing->pattern = pattern;
	listing->lister = lister;
	listing->at_once = LOOK_MOST;
	for (size_t i = 0; i < quorum->count; i++) {
		quorum->servers[i].bounds.wide = true;
		if (quorum->servers[i].url.kind == URL_CLUSTER)
			listing->at_once = 1;
	}
	match_records(&records, pattern);
	look_init(&listing->look, quorum);
	look_round(&listing->look); /* who is there at all */
	scan_servers(listing, records.data);
	if (!look_has_quorum(&listing->look)) {
		ballot_explain_failure(&listing->look.lock, error);
		result = -1;
	}
	look_release(&listing->look);
	forget_names(listing);
	keyset_release(&listing->listed);
	buffer_release(&records);
	free(listing);
	return result;
}
