/*
 * Where a server is that only others know: the master that Sentinels watch, or
 * the node of a cluster that has KEY's slot. The URL names such others, its
 * seeds.
 *
 *	server_aim(server, key);
 *	discovery_start(discovery);
 *	... discovery_prepare, poll(2), discovery_pump, until it stops seeking
 *
 * All seeds are asked at once, and the place is what a majority of them says:
 * a minority that is dead costs no time, and one that is cut off together with
 * an old master misleads nobody. (A Sentinel's word alone is not enough for a
 * lock: Redis' guidelines for clients take the first that answers.) A seed of
 * a cluster that has the slot itself goes by its host as the URL names it, and
 * by its address.
 *
 * The last place, of this process or of an earlier one (hint.h), is there
 * before they answer: the server is asked there at the same time. Why that is
 * safe: it is only a guess, and what is said there is not read before the
 * seeds have confirmed it, who were asked later than it was made. Where they
 * name another place the request is sent there anew, and what the wrong one
 * was asked ends with its lease. So what counts is as new as an answer that
 * was waited for.
 *
 * A connection that stays is checked again: with each request, but not twice
 * in a second, the seeds are asked as well. It does not wait for them, but a
 * majority that names another place ends it. So a holder can follow a stale
 * master for one lease at most: at the next renewal the new master either
 * confirms the lock, or the lock is lost.
 *
 * A master that was replaced may go on for a while, and then forget what it was
 * told; a replica may lack what was told last. Fences are for that (see
 * redlock-protocol(7)).
 *
 * https://redis.io/docs/latest/develop/reference/sentinel-clients/ and
 * https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/
 */
#ifndef DISCOVERY_H
#define DISCOVERY_H

#include "server/last_place.h"
#include "server/server.h"

#define DISCOVERY_WHY WHY_SIZE

struct discovery {
	const struct url *url; /* the server's */
	struct server *seeds;  /* owned */
	bool seeking;          /* no answer counts before the seeds' */
	bool checking; /* the place that is used; their silence says nothing */
	bool pinned;   /* server_visit: place is not asked for */
	bool found;    /* place is no guess */
	struct deadline next_check;
	uint64_t ticket;
	struct buffer key; /* owned; its slot is looked for */
	struct url place;  /* the last one; without host where none is known */
	unsigned place_slot;
	struct hint hint;
	struct {
		bool waiting;
		struct url names[2]; /* of the place that it says */
	} said[SEEDS_MAX];
};

enum discovered {
	DISCOVERY_UNDECIDED, /* or nothing that a check would change */
	DISCOVERY_CONFIRMED, /* place is right */
	DISCOVERY_CHANGED,   /* place is right now, and was not */
	DISCOVERY_FAILED,    /* see discovery_explain */
};

/* NULL for a URL that says itself where the server is. The URL must outlive
 * it. */
struct discovery *discovery_new(const struct url *url);
void discovery_free(struct discovery *discovery);

/* Asks the seeds, unless they have yet to answer. */
void discovery_start(struct discovery *discovery);

/* Asks them whether the place is still right. */
void discovery_check(struct discovery *discovery);
void discovery_stop(struct discovery *discovery);

static inline bool discovery_is_busy(const struct discovery *discovery)
{
	return discovery->seeking || discovery->checking;
}

/* The place was no good: it is not guessed again. */
void discovery_forget(struct discovery *discovery);

/* As server_prepare and server_pump. */
size_t discovery_prepare(struct discovery *discovery, struct pollfd *polled,
			 struct deadline *until);
enum discovered discovery_pump(struct discovery *discovery,
			       const struct pollfd *polled);

/* Why there is no place, and the seed whose failure that is, or NULL. */
const struct server *discovery_explain(const struct discovery *discovery,
				       char why[DISCOVERY_WHY]);

/* What an error reply says of the place. */
enum moved {
	MOVED_NOT,
	MOVED_AWAY, /* this is not, or no longer, the one looked for */
	MOVING,     /* a slot is on its way to another node: soon */
};

enum moved discovery_sort(enum cause cause);

#endif
