#include "lock/slots.h"

#include "base/bounds.h"
#include "base/number.h"

bool slots_hear(struct ballot *ballot, size_t i, int64_t slot, const char *free)
{
	struct slots *slots = &ballot->slots[i];

	*slots = (struct slots){.own = slot};
	while (*free != '\0' && slots->count < SLOTS_FREE) {
		int64_t *next = &slots->free[slots->count];

		if (number_read(&free, 1, PERMITS_MOST, next) < 0 ||
		    (*free != ' ' && *free != '\0'))
			return false;
		slots->count++;
		free += *free == ' ';
	}
	return slot >= 0 && slot <= PERMITS_MOST;
}

/* The server's vote is one for a slot. */
static bool has_vote(const struct ballot *ballot, size_t i)
{
	return ballot->vote[i] == VOTE_YES || ballot->vote[i] == VOTE_ELSEWHERE;
}

static bool is_vote_for(const struct ballot *ballot, size_t i, int64_t slot)
{
	return has_vote(ballot, i) && !ballot->slots[i].contested &&
	       ballot->slots[i].own == slot;
}

static size_t count_votes(const struct ballot *ballot, int64_t slot)
{
	size_t count = 0;

	for (size_t i = 0; i < ballot->quorum->count; i++)
		count += is_vote_for(ballot, i, slot);
	return count;
}

static int64_t leading(const struct ballot *ballot)
{
	size_t most = 0;
	int64_t slot = 0;

	for (size_t i = 0; i < ballot->quorum->count; i++) {
		int64_t own = ballot->slots[i].own;
		size_t count = count_votes(ballot, own);

		if (!is_vote_for(ballot, i, own) || count < most ||
		    (count == most && own > slot))
			continue;
		most = count;
		slot = own;
	}
	return slot;
}

void slots_weigh(struct ballot *ballot)
{
	int64_t slot = ballot->wanted > 0 ? ballot->wanted : leading(ballot);

	for (size_t i = 0; i < ballot->quorum->count; i++)
		if (has_vote(ballot, i))
			ballot->vote[i] = is_vote_for(ballot, i, slot)
						  ? VOTE_YES
						  : VOTE_ELSEWHERE;
}

bool slots_are_split(const struct ballot *ballot)
{
	return !ballot_has_quorum(ballot) &&
	       ballot_count(ballot, VOTE_YES) +
			       ballot_count(ballot, VOTE_ELSEWHERE) >=
		       quorum_size(ballot->quorum);
}

size_t slots_most(const struct ballot *ballot, bool contested)
{
	size_t most = 0;

	for (size_t i = 0; i < ballot->quorum->count; i++) {
		size_t count = 0;

		for (size_t k = 0; k < ballot->quorum->count; k++)
			count += ballot_is_granted(ballot, i) &&
				 ballot_is_granted(ballot, k) &&
				 (contested || (!ballot->slots[i].contested &&
						!ballot->slots[k].contested)) &&
				 ballot->slots[i].own == ballot->slots[k].own;
		if (count > most)
			most = count;
	}
	return most;
}

/* Whether we have the slot there, or could have it, by the server's own word. */
static bool is_ours_or_free(const struct ballot *ballot, size_t i, int64_t slot)
{
	const struct slots *slots = &ballot->slots[i];

	if (!has_vote(ballot, i))
		return false;
	if (slots->own == slot)
		return !slots->contested;
	for (size_t n = 0; n < slots->count; n++)
		if (slots->free[n] == slot)
			return true;
	return false;
}

/* How many servers have the slot for us; among as many, where we have it already
 * counts. */
static size_t weight(const struct ballot *ballot, int64_t slot)
{
	size_t count = 0;

	for (size_t i = 0; i < ballot->quorum->count; i++)
		count += is_ours_or_free(ballot, i, slot);
	return count < quorum_size(ballot->quorum)
		       ? 0
		       : count * (SERVERS_MAX + 1) + count_votes(ballot, slot);
}

int64_t slots_target(const struct ballot *ballot, int moves)
{
	size_t most = 0;
	int64_t best = 0;

	for (size_t i = 0; moves < SLOTS_MOVES && i < ballot->quorum->count;
	     i++) {
		const struct slots *slots = &ballot->slots[i];

		for (size_t n = 0; has_vote(ballot, i) && n <= slots->count;
		     n++) {
			int64_t slot =
				n < slots->count ? slots->free[n] : slots->own;
			size_t is = weight(ballot, slot);

			if (is <= most)
				continue;
			most = is;
			best = slot;
		}
	}
	return best;
}

int64_t slots_settle(struct ballot *ballot)
{
	ballot->wanted = leading(ballot);
	return ballot->wanted;
}
