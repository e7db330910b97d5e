/* What a round that has failed is worth. */
#include "lock/explain.h"

#include <string.h>

#include "check.h"

static void blame_for(struct server *server, enum cause cause)
{
	server->conn.refusal = (struct refusal){cause, "why"};
}

int main(void)
{
	struct server servers[3] = {{.url = {.name = (char *)"a"}},
				    {.url = {.name = (char *)"b"}},
				    {.url = {.name = (char *)"c"}}};
	struct quorum quorum = {.servers = servers, .count = 3};
	struct ballot ballot = {.quorum = &quorum,
				.vote = {VOTE_FAILED, VOTE_FAILED, VOTE_YES}};
	struct error error;

	/* one whose answer is not waited for decides nothing */
	blame_for(&servers[1], CAUSE_REPLICA);
	explain_failure(&ballot, &error);
	CHECK(error.code == EXIT_UNREACHED && error.transient &&
		      !ballot_is_hopeless(&ballot),
	      "%d", error.code);

	blame_for(&servers[0], CAUSE_RIGHTS);
	explain_failure(&ballot, &error);
	CHECK(error.code == EXIT_REFUSED && !error.transient &&
		      ballot_is_hopeless(&ballot),
	      "%d", error.code);

	blame_for(&servers[0], CAUSE_LOADING);
	explain_failure(&ballot, &error);
	CHECK(error.code == EXIT_UNREACHED && error.transient, "%d",
	      error.code);

	/* another kind of lock is no matter of a quorum */
	blame_for(&servers[0], CAUSE_KIND);
	blame_for(&servers[1], CAUSE_KIND);
	explain_failure(&ballot, &error);
	CHECK(error.code == EXIT_MISUSED &&
		      strncmp(error.text, "a: why: use the same", 20) == 0,
	      "%d: %s", error.code, error.text);

	/* what is to be done stands once, after the last that it is for */
	blame_for(&servers[0], CAUSE_MEMORY);
	blame_for(&servers[1], CAUSE_MEMORY);
	explain_failure(&ballot, &error);
	CHECK(strstr(error.text, ": a: why; b: why: raise maxmemory") != NULL,
	      "%s", error.text);
	return check_result();
}
