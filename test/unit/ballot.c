/* What a round that has failed is worth. */
#include "../../src/lock/ballot.h"

#include <string.h>

#include "check.h"

static void blame_for(struct server *server, enum cause cause)
{
	snprintf(server->why, sizeof(server->why), "why");
	server->cause = cause;
}

int main(void)
{
	struct server servers[3] = {{.url = {.name = (char *)"a"}},
				    {.url = {.name = (char *)"b"}},
				    {.url = {.name = (char *)"c"}}};
	struct quorum quorum = {.servers = servers, .count = 3, .permits = 1};
	struct lock lock = {.quorum = &quorum,
			    .vote = {VOTE_FAILED, VOTE_FAILED, VOTE_YES}};
	struct error error;

	/* one whose answer is not waited for decides nothing */
	blame_for(&servers[1], CAUSE_REPLICA);
	ballot_explain_failure(&lock, &error);
	CHECK(error.code == EXIT_UNREACHED && error.passing &&
		      !ballot_is_hopeless(&lock),
	      "%d", error.code);

	blame_for(&servers[0], CAUSE_RIGHTS);
	ballot_explain_failure(&lock, &error);
	CHECK(error.code == EXIT_REFUSED && !error.passing &&
		      ballot_is_hopeless(&lock),
	      "%d", error.code);

	blame_for(&servers[0], CAUSE_LOADING);
	ballot_explain_failure(&lock, &error);
	CHECK(error.code == EXIT_UNREACHED && error.passing, "%d", error.code);

	/* another kind of lock is no matter of a quorum */
	blame_for(&servers[0], CAUSE_KIND);
	blame_for(&servers[1], CAUSE_KIND);
	ballot_explain_failure(&lock, &error);
	CHECK(error.code == EXIT_MISUSED &&
		      strncmp(error.text, "a: why: use the same", 20) == 0,
	      "%d: %s", error.code, error.text);

	/* what is to be done stands once, after the last that it is for */
	blame_for(&servers[0], CAUSE_MEMORY);
	blame_for(&servers[1], CAUSE_MEMORY);
	ballot_explain_failure(&lock, &error);
	CHECK(strstr(error.text, ": a: why; b: why: raise maxmemory") != NULL,
	      "%s", error.text);
	return check_result();
}
