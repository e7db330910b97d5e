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
	pick->count = pick->lost = 0;
	pick->unsure = false;
	memset(pick->told, 0, sizeof(pick->told));
	memset(pick->taker, 0, sizeof(pick->taker));
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

/* The last word have their names: everybody has the same order. */
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

/* Of how many the lots are drawn: of the first, after n losses of 2^n that are as good. */
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
 * has named all of its own. */
static bool may_be_lost(const struct pick *pick, size_t quorum)
{
	return pick->lost > 0 && count_told(pick) - pick->lost < quorum;
}

bool pick_choose(struct pick *pick, size_t quorum, char hold[HOLD_SIZE])
{
	struct candidate *first = pick->candidates;
	char random[TOKEN_SIZE];
	unsigned long lot;

	token_make(random);
	qsort(first, pick->count, sizeof(*first), compare);
	if ((pick->count == 0 || first->rank == 0) &&
	    may_be_lost(pick, quorum)) {
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

void pick_hear_taker(struct pick *pick, size_t i, const struct reply *reply)
{
	const char *taker = reply->count >= 3 ? reply->value[2].text : NULL;

	if (taker != NULL && strlen(taker) < TOKEN_SIZE)
		memcpy(pick->taker[i], taker, strlen(taker) + 1);
}

static size_t count_takes(const struct pick *pick, const char *taker)
{
	size_t count = 0;

	for (size_t i = 0; i < SERVERS_MAX; i++)
		count += strcmp(pick->taker[i], taker) == 0;
	return count;
}

bool pick_is_known(const struct pick *pick, const struct ballot *ballot)
{
	size_t mine = count_takes(pick, pick->draw), others = 0;

	for (size_t i = 0; i < ballot->quorum->count; i++) {
		const char *taker = pick->taker[i];

		if (*taker == '\0')
			continue;
		if (count_takes(pick, taker) >= quorum_size(ballot->quorum))
			return true;
		others += strcmp(taker, pick->draw) != 0;
	}
	return (mine > 0 && others == 0) || ballot_is_complete(ballot);
}

bool pick_is_others(const struct pick *pick, const struct ballot *ballot)
{
	size_t mine = count_takes(pick, pick->draw), others = 0;

	for (size_t i = 0; i < ballot->quorum->count; i++) {
		const char *taker = pick->taker[i];
		size_t takes = *taker != '\0' ? count_takes(pick, taker) : 0;

		if (takes > mine || (takes == mine && takes > 0 &&
				     strcmp(taker, pick->draw) < 0))
			return true;
		others += takes > 0 && strcmp(taker, pick->draw) != 0;
	}
	return mine == 0 && others == 0 && !pick->unsure;
}
