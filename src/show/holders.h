/*
 * Who holds a lock and who waits for it, as all its servers tell it together.
 *
 * A holder is the same one on two servers where it has the same token. Tokens
 * are as good as the lock: servers send marks (SHA-1) of them, never
 * themselves. What a view tells is what servers and holders said: nothing in
 * it is relied on for safety.
 *
 * lock_inspect.h fills it.
 */
#ifndef VIEW_H
#define VIEW_H

#include "lock/lock.h"

#define SHOWN_MOST 1000 /* holders and waiters that a view keeps */
#define MARK_SIZE 41
#define PERMITS_LARGEST 1000000000 /* that is believed */

/* A holder, or a waiter. */
struct seen {
	char mark[MARK_SIZE];
	struct busy who;  /* a waiter's held: how long it has waited */
	int64_t count;    /* a holder's: how often it holds KEY */
	int64_t permits;  /* a waiter's */
	enum kind wants;  /* a waiter's */
	bool wish_known;  /* a waiter's: wants and permits are filled */
	uint32_t servers; /* a bit for each that has it */
	size_t order;     /* in which it was first heard of */
};

struct crowd {
	struct seen *seen; /* owned */
	size_t count;
	int64_t total; /* with those that seen has no room for */
};

enum standing {
	STANDING_UNKNOWN, /* no answer: lock.vote is not VOTE_YES */
	STANDING_FREE,
	STANDING_HELD,
	STANDING_MISUSED, /* KEY is no lock */
	STANDING_CHANGED, /* lock_break: others hold it by now */
};

struct view {
	struct lock lock; /* VOTE_YES: has answered */
	struct crowd holders, waiters;
	enum standing standing[SERVERS_MAX];
	char type[SERVERS_MAX][16]; /* Redis type of KEY */
	int64_t permits[SERVERS_MAX], fences[SERVERS_MAX];
	size_t told_holders[SERVERS_MAX], told_waiters[SERVERS_MAX];
	bool complete[SERVERS_MAX]; /* has told all */
	bool replica[SERVERS_MAX];  /* says that it is one: it grants nothing */
	bool hasty;                 /* until it is known whether KEY is held */
};

/* key must outlive the view. */
void view_init(struct view *view, struct quorum *quorum, const char *key);
void view_release(struct view *view);

/* For a struct judge, of a struct view: takes a server's answer. */
void view_hear(void *view, size_t server, const struct reply *reply);

/* Forgets holders and waiters. */
void view_forget(struct view *view);

/* How many servers stand so. */
size_t view_count(const struct view *view, enum standing standing);

/* A server that says of KEY what most say; the number of servers where none
 * says that it is in use. */
size_t view_speaker(const struct view *view);

/* KIND_NONE where a key of this Redis type is no lock. permits: -1 for none. */
enum kind view_kind(const char *type, int64_t permits);

/* "exclusive", "reentrant", "shared", "permits", "none" */
const char *view_kind_name(enum kind kind);

/* The largest fence, 0 for none. */
int64_t view_fence(const struct view *view);

/* The servers that make a lock with so many permits (0 or 1 without -P). */
size_t view_quorum(const struct quorum *quorum, int64_t permits);

/* How many servers have it, and whether those are too few for a lock. */
size_t seen_count(const struct seen *seen);
bool view_is_partial(const struct view *view, const struct seen *holder);

/* Reads "mark left held count\n" and the description. -1 where it is none. */
int seen_read_holder(struct seen *seen, const char *text, size_t length);

#endif
