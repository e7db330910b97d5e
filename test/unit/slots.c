/* Votes for numbered slots: which count together, and where they are moved. */
#include "lock/slots.h"

#include <string.h>

#include "check.h"

static struct server servers[5];
static struct quorum quorum = {.servers = servers, .count = 5};
static struct ballot ballot = {.quorum = &quorum};

/* Server i has granted this slot, and says that these are free. */
static void grants(size_t i, int64_t slot, const char *free)
{
	CHECK(slots_hear(&ballot, i, slot, free), "%s", free);
	ballot.vote[i] = VOTE_YES;
}

static void begin(size_t count)
{
	quorum.count = count;
	ballot.wanted = 0;
	memset(ballot.vote, 0, sizeof(ballot.vote));
	memset(ballot.slots, 0, sizeof(ballot.slots));
}

static void check_reading(void)
{
	static const char *const nonsense[] = {"x",   "0",     "1,2",
					       "1 x", "10001", "-1"};

	begin(5);
	CHECK(slots_hear(&ballot, 0, 3, "4 5 1"), "%zu", ballot.slots[0].count);
	CHECK(ballot.slots[0].own == 3 && ballot.slots[0].count == 3 &&
		      ballot.slots[0].free[2] == 1,
	      "%zu", ballot.slots[0].count);
	CHECK(slots_hear(&ballot, 0, 0, "") && ballot.slots[0].count == 0,
	      "%zu", ballot.slots[0].count);
	for (size_t n = 0; n < sizeof(nonsense) / sizeof(nonsense[0]); n++)
		CHECK(!slots_hear(&ballot, 0, 1, nonsense[n]), "%s",
		      nonsense[n]);
	CHECK(!slots_hear(&ballot, 0, 10001, "") &&
		      !slots_hear(&ballot, 0, -1, ""),
	      "%s", "a slot out of range");
}

static void check_counting(void)
{
	begin(5);
	grants(0, 2, "");
	grants(1, 1, "");
	grants(2, 3, "");
	slots_weigh(&ballot);
	CHECK(ballot_count(&ballot, VOTE_YES) == 1 &&
		      ballot.vote[1] == VOTE_YES &&
		      ballot_count(&ballot, VOTE_ELSEWHERE) == 2,
	      "%s", "the lowest of as many");
	CHECK(slots_are_split(&ballot) && !ballot_has_quorum(&ballot), "%s",
	      "three slots are no quorum");
	grants(3, 2, "");
	slots_weigh(&ballot);
	CHECK(ballot.vote[0] == VOTE_YES && ballot.vote[3] == VOTE_YES &&
		      ballot.vote[1] == VOTE_ELSEWHERE,
	      "%s", "the one with most");
	grants(4, 2, "");
	slots_weigh(&ballot);
	CHECK(ballot_has_quorum(&ballot) && !slots_are_split(&ballot), "%s",
	      "three votes for one slot");
	CHECK(slots_settle(&ballot) == 2, "%s", "its number");
	for (size_t i = 0; i < 5; i++)
		grants(i, 1, "");
	slots_weigh(&ballot);
	CHECK(ballot_count(&ballot, VOTE_ELSEWHERE) == 5, "%s",
	      "once there was a quorum, no other slot counts");
}

static void check_targets(void)
{
	begin(3);
	grants(0, 1, "3 4");
	grants(1, 2, "4 3");
	slots_weigh(&ballot);
	CHECK(slots_target(&ballot, 0) == 3, "%s", "free on two of three");
	grants(1, 2, "4 1");
	CHECK(slots_target(&ballot, 0) == 1, "%s",
	      "ours counts more than free");
	grants(1, 2, "");
	CHECK(slots_target(&ballot, 0) == 0, "%s",
	      "there is none for a quorum");
	grants(1, 2, "2 1");
	ballot.slots[0].contested = true;
	slots_weigh(&ballot);
	CHECK(ballot.vote[0] == VOTE_ELSEWHERE && slots_target(&ballot, 0) == 0,
	      "%s", "what another may have is no vote, and no target");
	grants(1, 2, "2 4");
	CHECK(slots_target(&ballot, 0) == 4, "%s", "but another slot is");
	grants(0, 1, "3 4");
	grants(1, 2, "1");
	ballot.vote[0] = VOTE_HELD;
	CHECK(slots_target(&ballot, 0) == 0, "%s",
	      "what a server said before it refused does not count");
}

int main(void)
{
	check_reading();
	check_counting();
	check_targets();
	return check_result();
}
