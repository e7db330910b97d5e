/* Which hold a release gives back that knows only the token, and whose it was. */
#include "lock/pick.h"

#include <string.h>

#include "check.h"

static struct server servers[5];
static struct quorum quorum = {.servers = servers};
static struct ballot ballot = {.quorum = &quorum};
static struct pick pick;
static char hold[HOLD_SIZE];

static void begin(size_t count, bool untracked)
{
	quorum.count = count;
	memset(ballot.vote, 0, sizeof(ballot.vote));
	pick_init(&pick, untracked);
	strcpy(pick.draw, "11111111");
	pick_open(&pick);
}

/* Server i counts `lost` holds that it cannot name, and has these: "hold age ...". */
static bool tells(size_t i, int64_t lost, const char *text)
{
	struct reply reply = {.count = 3};

	reply.value[1].number = lost;
	reply.value[2].text = text;
	ballot.vote[i] = VOTE_YES;
	return pick_hear(&pick, i, &reply);
}

static bool is_clear(void)
{
	return pick_is_clear(&pick, &ballot);
}

static const char *choice(void)
{
	strcpy(hold, "none");
	pick_choose(&pick, quorum_size(&quorum), hold);
	return hold;
}

#define PICKS(name) CHECK(strcmp(choice(), name) == 0, "%s", hold)

static void check_order(void)
{
	/* the script's own, though others are older and on more servers */
	begin(3, false);
	tells(0, 0, "+22 900 aa 999");
	tells(1, 0, "+22 900 +111111115 1 aa 999");
	tells(2, 0, "");
	PICKS("+111111115");

	/* then one without a keeper: the one on most servers, then the oldest */
	begin(3, false);
	tells(0, 0, "aa 999 +22 900 +33 990");
	tells(1, 0, "aa 999 +22 5 +44 8");
	tells(2, 0, "aa 999 +44 7");
	PICKS("+44"); /* 7 ms old where it is youngest; +22 is 5 */

	/* then any, if any is wanted */
	begin(3, false);
	tells(0, 0, "aa 1 bb 2");
	PICKS("bb");
	begin(3, true);
	tells(0, 0, "aa 1 bb 2");
	PICKS("none");
}

static void check_clear(void)
{
	/* it may be one that only the first has kept */
	begin(3, false);
	tells(0, 0, "+22 900 +33 5");
	tells(1, 0, "+33 5");
	CHECK(is_clear(), "%s", "+33 is on two of three");
	begin(3, false);
	tells(0, 0, "+22 900");
	tells(1, 0, "+33 5");
	CHECK(!is_clear(), "%s", "the third has not answered");
	tells(2, 0, "+33 5");
	CHECK(is_clear(), "%s", "all have answered");
	PICKS("+33");

	/* what they cannot name may be untracked, unless a quorum can name all */
	begin(3, true);
	tells(0, 0, "aa 5");
	tells(1, 1, "");
	CHECK(!is_clear(), "%s", "one of two has lost its record");
	tells(2, 0, "aa 5");
	PICKS("none");
	begin(3, true);
	tells(0, 1, "");
	tells(1, 1, "");
	tells(2, 0, "aa 5");
	CHECK(choice()[0] == '*', "%s", hold);
}

static void check_nonsense(void)
{
	static const char *const texts[] = {
		"+a", "+a x", "+a -1", "* 1",
		"+aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 1"};

	for (size_t n = 0; n < sizeof(texts) / sizeof(texts[0]); n++) {
		begin(3, false);
		CHECK(!tells(0, 0, texts[n]) && !pick_was_told(&pick), "%s",
		      texts[n]);
	}
}

/* Server i says that this release was the first ("": none was), or its answer is lost. */
static void says(size_t i, const char *taker, bool heard, bool sure)
{
	struct reply reply = {.count = *taker != '\0' ? 3 : 2};

	reply.value[2].text = *taker != '\0' ? taker : NULL;
	ballot.vote[i] = heard ? VOTE_YES : VOTE_FAILED;
	if (heard)
		pick_hear_taker(&pick, i, &reply, sure);
}

/* Whether the release with this number goes on, if these are the first and it hears from
 * those of the bits. */
static bool goes_on(const char *number, const char *const *takers,
		    unsigned heard)
{
	strcpy(pick.draw, number);
	pick_claim(&pick);
	for (size_t i = 0; i < quorum.count; i++)
		says(i, takers[i], heard >> i & 1, true);
	return pick_is_others(&pick, &ballot);
}

static void check_some(void)
{
	static const char *const none[] = {"", "", ""};
	static const char *const tie[] = {"2", "1", ""};
	static const char *const other_way[] = {"", "1", "2"};

	begin(3, false);
	CHECK(goes_on("1", none, 7), "%s", "it was not there any more");
	CHECK(!goes_on("1", tie, 7) && goes_on("2", tie, 7) &&
		      !goes_on("1", other_way, 7) && goes_on("2", other_way, 7),
	      "%s", "in whatever order the servers were named");
	goes_on("1", none, 7);
	says(2, "", true, false);
	CHECK(!pick_is_others(&pick, &ballot), "%s",
	      "a lost answer: it may have been ours");
	pick_claim(&pick);
	says(0, "1", true, true);
	ballot.vote[1] = ballot.vote[2] = VOTE_PENDING;
	CHECK(!pick_is_known(&pick, &ballot), "%s", "others may be first");
	says(1, "1", true, true);
	CHECK(pick_is_known(&pick, &ballot), "%s", "not on most");
}

static bool is_quorum(unsigned heard)
{
	return (size_t)__builtin_popcount(heard) >= quorum_size(&quorum);
}

/* On how many servers the hold may have been: not where nobody has given it back, as somebody
 * heard. */
static size_t count_places(const char *const *takers, unsigned heard)
{
	size_t count = 0;

	for (size_t i = 0; i < quorum.count; i++)
		count += *takers[i] != '\0' || (heard >> i & 1) == 0;
	return count;
}

static void check_views(const char *const *takers, size_t releases,
			unsigned views)
{
	static const char *const numbers[] = {"1", "2", "3"};
	const unsigned all = (1U << quorum.count) - 1;
	unsigned heard[3], any = 0;
	size_t own = 0, whole = 0;

	for (size_t n = 0; n < releases; n++, views >>= quorum.count) {
		heard[n] = views & all;
		any |= heard[n];
		whole += heard[n] == all;
		if (!is_quorum(heard[n]))
			return; /* it has failed, and says so */
	}
	if (count_places(takers, any) < quorum_size(&quorum))
		return; /* nobody has had it */
	for (size_t n = 0; n < releases; n++)
		own += !goes_on(numbers[n], takers, heard[n]);
	CHECK(own >= 1 && (whole < releases || own == 1),
	      "%zu of %zu releases, first \"%s\" \"%s\" \"%s\", heard %x %x",
	      own, releases, takers[0], takers[1], takers[2], heard[0],
	      heard[1]);
}

/* Whoever is first where, and whichever answers are lost: of those that have picked the same
 * hold one at least takes it for its own. Else they would give back one more than they are.
 * If no answer is lost, exactly one does. */
static void check_all(size_t count, size_t releases)
{
	static const char *const numbers[] = {"", "1", "2", "3"};
	const char *takers[5] = {NULL};
	size_t ways = 1;

	begin(count, false);
	for (size_t i = 0; i < count; i++)
		ways *= releases + 1;
	for (size_t way = 1; way < ways && check_failures < 20; way++) {
		size_t rest = way;

		for (size_t i = 0; i < count; i++, rest /= releases + 1)
			takers[i] = numbers[rest % (releases + 1)];
		for (unsigned views = 0; views < 1U << (count * releases);
		     views++)
			check_views(takers, releases, views);
	}
}

int main(void)
{
	check_order();
	check_clear();
	check_nonsense();
	check_some();
	check_all(3, 2);
	check_all(5, 2);
	check_all(3, 3);
	return check_result();
}
