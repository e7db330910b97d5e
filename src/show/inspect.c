#include "show/inspect.h"

#include <stdio.h>

#include "lock/explain.h"
#include "lock/script.h"

#define PAGES_MOST 100 /* SHOWN_MOST of each take half of that at most */

/* Whether what is still out can change nothing. */
static bool is_known(void *context)
{
	const struct holders *holders = context;
	const struct ballot *ballot = &holders->ballot;
	size_t out = 0;
	int held;

	for (size_t i = 0; i < ballot->quorum->count; i++)
		out += ballot->vote[i] == VOTE_PENDING ||
		       (ballot->vote[i] == VOTE_YES && !holders->complete[i]);
	if (!holders->hasty)
		return out == 0;
	held = holders_is_held(holders);
	return held > 0 || (held == 0 && ballot_has_quorum(ballot));
}

static bool gather(struct holders *holders)
{
	struct reply_handler handler = {holders, holders_hear, is_known};
	struct quorum *quorum = holders->ballot.quorum;

	return quorum_gather(quorum, wait_until(deadline_in(quorum->timeout)),
			     &handler) == GATHER_OVER;
}

static bool ask_next_page(struct holders *holders)
{
	struct ballot *ballot = &holders->ballot;
	bool asked = false;

	quorum_round(ballot->quorum);
	for (size_t i = 0; i < ballot->quorum->count && !ballot->alias; i++) {
		if (ballot->vote[i] != VOTE_YES || holders->complete[i])
			continue;
		/* if it is silent from here on, it has not answered */
		ballot->vote[i] = VOTE_PENDING;
		holders->standing[i] = STANDING_UNKNOWN;
		script_inspect(ballot->quorum, i, &holders->names,
			       holders->token, holders->place[i],
			       holders->told_waiters[i]);
		asked = true;
	}
	return asked;
}

/* What came of the answers; a vote is an answer here. */
static int conclude(struct holders *holders, struct error *error)
{
	holders_sort(&holders->holding);
	holders_sort(&holders->waiting);
	if (ballot_has_quorum(&holders->ballot) && !holders->ballot.alias)
		return 0;
	explain_failure(&holders->ballot, error);
	return -1;
}

static bool owes_answer(const struct ballot *ballot, size_t i)
{
	return ballot->quorum->servers[i].conn.owed_count > 0;
}

/* Whether it was waited for in vain, or may have been. */
static bool is_hung(const struct holders *holders, size_t i)
{
	const struct server *server = &holders->ballot.quorum->servers[i];

	if (holders->lost != NULL && holders->lost[i])
		return true;
	return server_is_silent(server) &&
	       (!holders->owing || server->conn.refusal.text[0] != '\0');
}

int inspect_lock(struct holders *holders, struct error *error)
{
	struct ballot *ballot = &holders->ballot;
	unsigned pages = 1;
	bool going;

	ballot_open(ballot, NULL);
	for (size_t i = 0; i < ballot->quorum->count; i++) {
		if (is_hung(holders, i))
			ballot->vote[i] = VOTE_FAILED;
		else
			script_inspect(ballot->quorum, i, &holders->names,
				       holders->token, "", 0);
	}
	going = gather(holders);
	while (going && pages++ < PAGES_MOST && ask_next_page(holders))
		going = gather(holders);
	return conclude(holders, error);
}

int inspect_is_held(struct holders *holders, const char *token,
		    struct error *error)
{
	int held;

	holders->hasty = holders->owing = true;
	if (token != NULL)
		snprintf(holders->token, sizeof(holders->token), "%s", token);
	if (inspect_lock(holders, error) < 0)
		return -1;
	held = holders_is_held(holders);
	if (held < 0) {
		explain_silence(&holders->ballot, error);
		error_prepend(error, token != NULL
					     ? "perhaps held by this token: "
					     : "perhaps held: ");
	}
	return held;
}

/* After answers that say with -1 that others hold KEY. */
static int conclude_break(struct holders *holders, struct error *error)
{
	for (size_t i = 0; i < holders->ballot.quorum->count; i++)
		if (holders->standing[i] == STANDING_MISUSED)
			holders->standing[i] = STANDING_CHANGED;
	return conclude(holders, error);
}

int inspect_break(struct holders *holders, bool foreign, const char *why,
		  struct error *error)
{
	struct ballot *ballot = &holders->ballot;
	struct buffer digests = {0};

	for (size_t n = 0; n < holders->holding.count; n++)
		buffer_print(&digests, "%s ", holders->holding.seen[n].digest);
	buffer_append(&digests, "", 0);
	holders_forget(holders);
	token_make(holders->token); /* names this request */
	ballot_open(ballot, NULL);
	for (size_t i = 0; i < ballot->quorum->count; i++) {
		bool silent = owes_answer(ballot, i);

		holders->standing[i] = STANDING_UNKNOWN;
		script_break(ballot->quorum, i, &holders->names, holders->token,
			     digests.data, foreign, why);
		if (silent) /* it was waited for already */
			ballot->vote[i] = VOTE_FAILED;
	}
	gather(holders);
	buffer_release(&digests);
	return conclude_break(holders, error);
}

bool inspect_is_waiting(const struct holders *holders)
{
	const struct quorum *quorum = holders->ballot.quorum;

	for (size_t i = 0; i < quorum->count; i++)
		if (quorum_is_waiting(quorum, i))
			return true;
	return false;
}

int inspect_ask(struct holders *holders, const char *digests, const char *why,
		struct error *error)
{
	struct ballot *ballot = &holders->ballot;

	holders_forget(holders);
	ballot_open(ballot, NULL);
	for (size_t i = 0; i < ballot->quorum->count; i++) {
		holders->standing[i] = STANDING_UNKNOWN;
		if (owes_answer(ballot, i))
			ballot->vote[i] = VOTE_FAILED;
		else
			script_ask(ballot->quorum, i, &holders->names, digests,
				   why);
	}
	gather(holders);
	return conclude_break(holders, error);
}
