#include "show/stopping.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/deadline.h"
#include "show/inspect.h"

#define SOON 2000 /* ms; many holders have stopped by then */
#define OFTEN 100 /* ms between rounds until then */
#define SELDOM 500
#define GRACE 1000 /* ms after the end of a lease, for servers to say so */

static struct deadline end_of(const struct seen *seen)
{
	return deadline_in(seen->who.left > 0 ? seen->who.left : 0);
}

/* What most servers have reported of it in this round; NULL: nothing. */
static const struct seen *find(const struct crowd *crowd, const char *digest)
{
	const struct seen *found = NULL;

	for (size_t n = 0; n < crowd->count; n++) {
		const struct seen *seen = &crowd->seen[n];

		if (strcmp(seen->digest, digest) == 0 &&
		    (found == NULL || seen_count(seen) > seen_count(found)))
			found = seen;
	}
	return found;
}

/* It has votes of too few servers, and a place in the queue of others. */
static bool is_waiter(const struct holders *holders, const struct seen *seen)
{
	return holders_is_partial(holders, seen) &&
	       find(&holders->waiting, seen->digest) != NULL;
}

static bool are_all_waiters(const struct holders *holders)
{
	for (size_t n = 0; n < holders->holding.count; n++)
		if (!is_waiter(holders, &holders->holding.seen[n]))
			return false;
	return true;
}

/* Whether the server may have forgotten what it knew. */
static bool has_changed(const struct memory *before, const struct memory *now,
			const struct identity *identity)
{
	bool restarted = before->run_id[0] != '\0' && now->run_id[0] != '\0' &&
			 strcmp(before->run_id, now->run_id) != 0;

	return before->known &&
	       (now->fence < before->fence ||
		(restarted && !identity->durable) ||
		(before->began >= 0 && now->began != before->began));
}

/* Notes what servers have told in a round. Returns a bit for each server that may have
 * forgotten what it had told before. */
static uint32_t note_memories(struct stopping *stopping)
{
	const struct holders *holders = stopping->holders;
	const struct quorum *quorum = holders->ballot.quorum;
	uint32_t changed = 0;

	for (size_t i = 0; i < quorum->count; i++) {
		const struct identity *identity =
			&quorum->servers[i].conn.identity;
		struct memory now = {
			.known = true,
			.fence = holders->fences[i],
			.began = holders->began[i],
		};

		if (holders->ballot.vote[i] != VOTE_YES)
			continue;
		if (identity->known)
			strlcpy(now.run_id, identity->run_id,
				sizeof(now.run_id));
		if (has_changed(&stopping->memory[i], &now, identity))
			changed |= UINT32_C(1) << i;
		stopping->memory[i] = now;
	}
	return changed;
}

void stopping_init(struct stopping *stopping, struct holders *holders,
		   const char *why)
{
	bool all = are_all_waiters(holders);

	*stopping = (struct stopping){
		.holders = holders,
		.why = why,
		.more = holders->holding.total -
			(int64_t)holders->holding.count,
	};
	for (size_t i = 0; i < holders->ballot.quorum->count; i++)
		holders->ballot.quorum->servers[i].conn.bounds.wide = true;
	stopping->asked =
		xcalloc(holders->holding.count + 1, sizeof(*stopping->asked));
	(void)note_memories(stopping);
	for (size_t n = 0; n < holders->holding.count; n++) {
		const struct seen *seen = &holders->holding.seen[n];

		if (all || !is_waiter(holders, seen))
			stopping->asked[stopping->count++] = (struct asked){
				.seen = *seen, .ends = end_of(seen)};
	}
}

void stopping_release(struct stopping *stopping)
{
	free(stopping->asked);
	buffer_release(&stopping->digests);
}

/* How many servers say that they do not have it: until its lease is over, only those that
 * still know what they knew. others: that are not counted. */
static size_t count_without(const struct stopping *stopping,
			    const struct asked *asked, uint32_t others)
{
	const struct ballot *ballot = &stopping->holders->ballot;
	bool over = deadline_passed(asked->ends);
	size_t count = 0;

	for (size_t i = 0; i < ballot->quorum->count; i++)
		count += ballot->vote[i] == VOTE_YES &&
			 (others >> i & 1) == 0 &&
			 (over || (asked->forgotten >> i & 1) == 0);
	return count;
}

/* Whether so many servers have it no more that it is no lock. What is on too few
 * servers from the beginning is none, and is waited for. If servers have forgotten
 * it, it is gone when its lease is over. */
static bool is_gone(const struct stopping *stopping, const struct asked *asked,
		    const struct seen *now)
{
	return count_without(stopping, asked, now != NULL ? now->servers : 0) >=
		       quorum_size(stopping->holders->ballot.quorum) &&
	       (now == NULL || asked->whole);
}

/* It is gone. ask.lua reports those as waiters that have lost KEY without a release: if the
 * other servers are no quorum, there was none. */
static enum fate fate_of(const struct stopping *stopping,
			 const struct asked *asked, const struct seen *now)
{
	const struct holders *holders = stopping->holders;
	const struct seen *lost = find(&holders->waiting, asked->seen.digest);
	uint32_t has = now != NULL ? now->servers : 0;
	int64_t left = deadline_left(asked->ends);
	bool released = lost == NULL ||
			count_without(stopping, asked, lost->servers | has) >=
				quorum_size(holders->ballot.quorum);

	if (!asked->met)
		return FATE_MISSED;
	if (released)
		return left > 0 ? FATE_RELEASED : FATE_ENDED;
	/* or it is over on a server, by its clock */
	return left > OFTEN && lost->who.held == 0 ? FATE_DELETED : FATE_ENDED;
}

/* changed: servers that may have forgotten what they knew before this round. */
static void follow(const struct stopping *stopping, struct asked *asked,
		   uint32_t changed)
{
	const struct holders *holders = stopping->holders;
	const struct seen *now = find(&holders->holding, asked->seen.digest);

	asked->forgotten |= changed;
	if (now != NULL)
		asked->forgotten &= ~now->servers;
	asked->met |= now != NULL;
	if (now != NULL && !holders_is_partial(holders, now))
		asked->whole = true;
	if (is_gone(stopping, asked, now)) {
		asked->after = clock_ms() - stopping->began;
		asked->fate = fate_of(stopping, asked, now);
	} else if (now != NULL) {
		asked->ends = end_of(now);
	}
}

/* After a round that a quorum has answered. */
static enum stopping_result follow_all(struct stopping *stopping, bool first)
{
	uint32_t changed = note_memories(stopping);
	bool going = false;

	for (size_t n = 0; n < stopping->count; n++) {
		struct asked *asked = &stopping->asked[n];

		if (asked->fate == FATE_HOLDS)
			follow(stopping, asked, changed);
		going |= asked->fate == FATE_HOLDS;
		if (first)
			stopping->end =
				deadline_later(stopping->end, asked->ends);
	}
	return going ? STOPPING_WAITS : STOPPING_DONE;
}

static bool is_over(const struct stopping *stopping)
{
	return clock_ms() > stopping->end.at + GRACE;
}

/* Those that still hold it: one that is gone may come back, as a waiter keeps its token. */
static const char *list_digests(struct stopping *stopping)
{
	stopping->digests.length = 0;
	buffer_append(&stopping->digests, "", 0);
	for (size_t n = 0; n < stopping->count; n++)
		if (stopping->asked[n].fate == FATE_HOLDS)
			buffer_print(&stopping->digests, "%s ",
				     stopping->asked[n].seen.digest);
	return stopping->digests.data;
}

enum stopping_result stopping_round(struct stopping *stopping,
				    struct error *error)
{
	struct holders *holders = stopping->holders;
	bool first = stopping->began == 0;
	enum stopping_result result;

	if (first)
		stopping->began = clock_ms();
	if (inspect_ask(holders, list_digests(stopping), stopping->why, error) <
	    0)
		return first || is_over(stopping) ? STOPPING_FAILED
						  : STOPPING_WAITS;
	if (first && holders_servers(holders, STANDING_HELD) == 0)
		return STOPPING_NOBODY;
	result = follow_all(stopping, first);
	return result == STOPPING_WAITS && is_over(stopping) ? STOPPING_OVER
							     : result;
}

int64_t stopping_pause(const struct stopping *stopping)
{
	return clock_ms() - stopping->began < SOON ? OFTEN : SELDOM;
}
