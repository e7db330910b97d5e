/* Records that are missing, and for how long. */
#include "../../src/lock/trust.h"

#include "check.h"

#define HOUR INT64_C(3600000)

/* Each says again how old its record is; then which of the grants count. */
static void answer(struct lock *lock, int64_t age)
{
	for (size_t i = 0; i < lock->quorum->count; i++) {
		lock->told[i].asked = clock_ms();
		trust_hear(lock, i, i == 0 ? HOUR : age, "");
		lock->vote[i] = VOTE_YES;
	}
	trust_weigh(lock);
}

static void pass_time(int64_t ms)
{
	struct deadline end = deadline_in(ms);

	while (!deadline_passed(end))
		deadline_poll(NULL, 0, end);
}

int main(void)
{
	struct server servers[3] = {{.url = {.name = (char *)"a"}},
				    {.url = {.name = (char *)"b"}},
				    {.url = {.name = (char *)"c"}}};
	struct quorum quorum = {.servers = servers, .count = 3, .permits = 1};
	struct lock lock = {.quorum = &quorum, .ttl = 20};

	/* one that takes KEY begins a record: if it is missing again it was lost
	 * again */
	trust_begin(&lock);
	answer(&lock, 0);
	CHECK(lock.vote[0] == VOTE_YES && lock.vote[1] == VOTE_QUARANTINED,
	      "%d", lock.vote[1]);
	pass_time(2 * lock.ttl);
	answer(&lock, 0);
	CHECK(lock.vote[1] == VOTE_QUARANTINED, "%d", lock.vote[1]);
	answer(&lock, 2 * lock.ttl);
	CHECK(lock.vote[1] == VOTE_YES, "%d", lock.vote[1]);

	/* one that only waits begins none, and waits no longer than others */
	lock.kind = KIND_NONE;
	trust_begin(&lock);
	answer(&lock, 0);
	CHECK(lock.vote[1] == VOTE_QUARANTINED, "%d", lock.vote[1]);
	pass_time(2 * lock.ttl);
	answer(&lock, 0);
	CHECK(lock.vote[0] == VOTE_YES && lock.vote[1] == VOTE_YES, "%d",
	      lock.vote[1]);
	return check_result();
}
