/* Records that are missing, and for how long. */
#include "lock/trust.h"

#include "check.h"

#define HOUR INT64_C(3600000)

/* Each says again how old its record is, the first that it is older than this
 * machine is up; then which of the grants count. */
static void answer(struct ballot *ballot, bool begins, int64_t age)
{
	for (size_t i = 0; i < ballot->quorum->count; i++) {
		ballot->report[i].asked = clock_ms();
		trust_hear(ballot, i, begins, i == 0 ? clock_ms() + HOUR : age,
			   "");
		ballot->vote[i] = VOTE_YES;
	}
	trust_weigh(ballot);
}

static void pass_time(int64_t ms)
{
	struct deadline end = deadline_in(ms);

	while (!deadline_passed(end))
		deadline_poll(NULL, 0, end);
}

/* Another has had the slot that a server gives us since before its record began; until
 * that other's server gives us the slot itself. */
static void check_slots(struct ballot *ballot)
{
	ballot->ttl = HOUR;
	trust_begin(ballot);
	for (size_t i = 0; i < 2; i++) {
		ballot->report[i].asked = clock_ms();
		trust_hear(ballot, i, true, 500, "");
	}
	trust_hear_tenants(ballot, 0, "1 5000 aaaa ", HOUR);
	ballot->vote[0] = VOTE_HELD;
	ballot->vote[1] = VOTE_YES;
	ballot->vote[2] = VOTE_PENDING;
	ballot->slots[1].own = 1;
	trust_weigh(ballot);
	CHECK(ballot->vote[1] == VOTE_ELSEWHERE, "%d", ballot->vote[1]);
	ballot->slots[1].own = 2;
	trust_weigh(ballot);
	CHECK(ballot->vote[1] == VOTE_YES, "%d", ballot->vote[1]);
	ballot->slots[0].own = ballot->slots[1].own = 1;
	ballot->vote[0] = VOTE_YES;
	trust_weigh(ballot);
	CHECK(ballot->vote[0] == VOTE_YES && ballot->vote[1] == VOTE_YES, "%d",
	      ballot->vote[1]);
}

int main(void)
{
	struct server servers[3] = {{.url = {.name = (char *)"a"}},
				    {.url = {.name = (char *)"b"}},
				    {.url = {.name = (char *)"c"}}};
	struct quorum quorum = {.servers = servers, .count = 3};
	struct ballot ballot = {.quorum = &quorum, .ttl = 20};

	/* one that takes KEY begins a record: if it is missing again it was lost
	 * again */
	trust_begin(&ballot);
	answer(&ballot, true, 0);
	CHECK(ballot.vote[0] == VOTE_YES && ballot.vote[1] == VOTE_QUARANTINED,
	      "%d", ballot.vote[1]);
	pass_time(2 * ballot.ttl);
	answer(&ballot, true, 0);
	CHECK(ballot.vote[1] == VOTE_QUARANTINED, "%d", ballot.vote[1]);
	answer(&ballot, true, 2 * ballot.ttl);
	CHECK(ballot.vote[1] == VOTE_YES, "%d", ballot.vote[1]);

	/* one that only waits begins none, and waits no longer than others */
	trust_begin(&ballot);
	answer(&ballot, false, 0);
	CHECK(ballot.vote[1] == VOTE_QUARANTINED, "%d", ballot.vote[1]);
	pass_time(2 * ballot.ttl);
	answer(&ballot, false, 0);
	CHECK(ballot.vote[0] == VOTE_YES && ballot.vote[1] == VOTE_YES, "%d",
	      ballot.vote[1]);
	check_slots(&ballot);
	return check_result();
}
