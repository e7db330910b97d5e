/* What a round that has failed is worth. */
#include "../../src/ballot.h"

#include "check.h"

static void blame(struct server *server, const char *why, int code,
		  bool passing)
{
	snprintf(server->why, sizeof(server->why), "%s", why);
	server->why_code = code;
	server->why_passing = passing;
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
	blame(&servers[1], "READONLY", EXIT_UNREACHED, false);
	ballot_explain_failure(&lock, &error);
	CHECK(error.code == EXIT_UNREACHED && error.passing &&
		      !ballot_is_hopeless(&lock),
	      "%d", error.code);

	blame(&servers[0], "NOPERM", EXIT_REFUSED, false);
	ballot_explain_failure(&lock, &error);
	CHECK(error.code == EXIT_REFUSED && !error.passing &&
		      ballot_is_hopeless(&lock),
	      "%d", error.code);

	blame(&servers[0], "LOADING", EXIT_UNREACHED, true);
	ballot_explain_failure(&lock, &error);
	CHECK(error.code == EXIT_UNREACHED && error.passing, "%d", error.code);
	return check_result();
}
