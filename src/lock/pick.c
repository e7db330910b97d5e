#include "lock/pick.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"

void pick_init(struct pick *pick, bool untracked)
{
	*pick = (struct pick){.untracked = untracked};
	token_make_near(pick->draw);
}

void pick_open(struct pick *pick)
{
	pick->gives = false;
	pick->count = pick->lost = 0;
	memset(pick->told, 0, sizeof(pick->told));
}

void pick_claim(struct pick *pick)
{
	pick->gives = true;
	memset(pick->taker, 0, sizeof(pick->taker));
	memset(pick->heard, 0, sizeof(pick->heard));
}

/* Ours, those that nobody keeps, others. */
static int rank(const struct pick *pick, const char *hold)
{
	if (hold[0] != '+')
		return 0;
	return strncmp(hold + 1, pick->draw, TOKEN_NEAR) == 0 ? 2 : 1;
}

static void add(struct pick *pick, const char *hold, size_t length, int64_t age)
{
	struct candidate *each = pick->candidates;
	struct candidate *end = each + pick->count;

	while (each < end && (strncmp(each->hold, hold, length) != 0 ||
			      each->hold[length] != '\0'))
		each++;
	if (each == end) {
		if (pick->count == PICK_HOLDS)
			return;
		pick->count++;
		*each = (struct candidate){.age = age};
		memcpy(each->hold, hold, length);
		each->rank = rank(pick, each->hold);
	}
	each->servers++;
	if (age < each->age)
		each->age = age;
}

/* "-2, lost, 'hold age hold age ...'" (release.lua). */
bool pick_hear(struct pick *pick, size_t i, const struct reply *reply)
{
	const char *text = reply->count >= 3 ? reply->value[2].text : NULL;
	size_t length;
	int64_t age;

	if (text == NULL || reply->value[1].text != NULL)
		return false;
	for (; *text != '\0'; text += strspn(text, " ")) {
		const char *hold = text;

		length = strcspn(text, " ");
		text += length;
		text += strspn(text, " ");
		if (length == 0 || length >= HOLD_SIZE || *hold == '*' ||
		    number_read(&text, 0, INT64_MAX, &age) != 0)
			return false;
		if (!pick->untracked || *hold == '+')
			add(pick, hold, length, age);
	}
	pick->lost += reply->value[1].number > 0;
	pick->told[i] = true;
	return true;
}

static size_t count_told(const struct pick *pick)
{
	size_t count = 0;

	for (size_t i = 0; i < SERVERS_MAX; i++)
		count += pick->told[i];
	return count;
}

bool pick_was_told(const struct pick *pick)
{
	return count_told(pick) > 0;
}

/* Names break ties. */
static int compare(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;

	if (left->rank != right->rank)
		return left->rank > right->rank ? -1 : 1;
	if (left->servers != right->servers)
		return left->servers > right->servers ? -1 : 1;
	if (left->age != right->age)
		return left->age > right->age ? -1 : 1;
	return strcmp(left->hold, right->hold);
}

/* How many take part in the draw: after n losses, the first 2^n that are equally good. */
static size_t lots(const struct pick *pick)
{
	const struct candidate *first = pick->candidates;
	size_t most = pick->tries < 7 ? (size_t)1 << pick->tries : PICK_HOLDS;
	size_t n = 1;

	while (n < pick->count && n < most &&
	       first[n].servers == first->servers &&
	       first[n].rank == first->rank)
		n++;
	return n;
}

/* Whether an untracked hold may be among those that servers cannot name: not if a quorum
 * can name all the holds that it counts. */
static bool may_be_lost(const struct pick *pick, size_t quorum)
{
	return pick->lost > 0 && count_told(pick) - pick->lost < quorum;
}

static bool may_pick_any(const struct pick *pick, size_t quorum)
{
	return (pick->count == 0 || pick->candidates->rank == 0) &&
	       may_be_lost(pick, quorum);
}

bool pick_is_clear(struct pick *pick, const struct ballot *ballot)
{
	size_t quorum = quorum_size(ballot->quorum);

	if (ballot_is_complete(ballot) || !pick_was_told(pick))
		return true;
	qsort(pick->candidates, pick->count, sizeof(*pick->candidates),
	      compare);
	if (pick->count == 0)
		return pick->lost == 0;
	return pick->candidates->servers >= quorum &&
	       !may_pick_any(pick, quorum);
}

bool pick_choose(struct pick *pick, size_t quorum, char hold[HOLD_SIZE])
{
	struct candidate *first = pick->candidates;
	char random[TOKEN_SIZE];
	unsigned long lot;

	token_make(random);
	qsort(first, pick->count, sizeof(*first), compare);
	if (may_pick_any(pick, quorum)) {
		hold[0] = '*';
		memcpy(hold + 1, random, sizeof(random));
		return true;
	}
	if (pick->count == 0)
		return false;
	random[8] = '\0';
	lot = strtoul(random, NULL, 16) % lots(pick);
	memcpy(hold, first[lot].hold, HOLD_SIZE);
	pick->tries++;
	return true;
}

void pick_hear_taker(struct pick *pick, size_t i, const struct reply *reply,
		     bool sure)
{
	const char *taker = reply->count >= 3 ? reply->value[2].text : NULL;

	if (taker != NULL && strlen(taker) < TOKEN_SIZE)
		memcpy(pick->taker[i], taker, strlen(taker) + 1);
	pick->heard[i] = taker != NULL || sure;
}

static size_t count_takes(const struct pick *pick, const char *taker)
{
	size_t count = 0;

	for (size_t i = 0; i < SERVERS_MAX; i++)
		count += strcmp(pick->taker[i], taker) == 0;
	return count;
}

/* Who was first on most servers, as far as they were heard; the smallest number of
 * several; "" for nobody. */
static const char *find_first(const struct pick *pick, size_t *takes)
{
	const char *first = "";

	*takes = 0;
	for (size_t i = 0; i < SERVERS_MAX; i++) {
		const char *taker = pick->taker[i];
		size_t count = *taker != '\0' ? count_takes(pick, taker) : 0;

		if (count > *takes || (count > 0 && count == *takes &&
				       strcmp(taker, first) < 0)) {
			first = taker;
			*takes = count;
		}
	}
	return first;
}

bool pick_is_known(const struct pick *pick, const struct ballot *ballot)
{
	size_t takes;

	find_first(pick, &takes);
	return takes >= quorum_size(ballot->quorum) ||
	       ballot_is_complete(ballot);
}

bool pick_is_others(const struct pick *pick, const struct ballot *ballot)
{
	const char *first;
	size_t takes;
	bool all = true, unsure = false;

	first = find_first(pick, &takes);
	if (takes > 0 && strcmp(first, pick->draw) == 0)
		return false;
	if (takes >= quorum_size(ballot->quorum))
		return true;
	for (size_t i = 0; i < ballot->quorum->count; i++) {
		all &= pick->heard[i];
		unsure |= ballot->vote[i] == VOTE_YES && !pick->heard[i];
	}
	return takes > 0 ? all : !unsure;
}
