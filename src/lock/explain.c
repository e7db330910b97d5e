#include "lock/explain.h"

#include <string.h>

#include "lock/trust.h"

static const char *why_not(const struct ballot *ballot, size_t i,
			   char text[TRUST_TEXT])
{
	if (ballot->vote[i] == VOTE_GONE)
		return "KEY is gone";
	return ballot->vote[i] == VOTE_QUARANTINED
		       ? trust_explain(ballot, i, text)
		       : ballot->quorum->servers[i].conn.refusal.text;
}

/* If we stopped waiting for its answer, there is no refusal, and no failure. */
static bool has_failed(const struct ballot *ballot, size_t i)
{
	return ballot->vote[i] == VOTE_QUARANTINED ||
	       ballot->vote[i] == VOTE_GONE ||
	       ((ballot->vote[i] == VOTE_FAILED ||
		 ballot->vote[i] == VOTE_PENDING) &&
		ballot->quorum->servers[i].conn.refusal.text[0] != '\0');
}

/* The first server that has failed for good, if no quorum is left; else NULL. */
static const struct server *find_culprit(const struct ballot *ballot)
{
	if (!ballot_is_hopeless(ballot))
		return NULL;
	for (size_t i = 0; i < ballot->quorum->count; i++) {
		const struct server *server = &ballot->quorum->servers[i];

		if (ballot_failed_for_good(ballot, i) &&
		    cause_code(server->conn.refusal.cause) != EXIT_UNREACHED)
			return server;
	}
	return NULL;
}

static const char *remedy(const struct ballot *ballot, size_t i)
{
	return ballot->vote[i] == VOTE_QUARANTINED ||
			       ballot->vote[i] == VOTE_GONE
		       ? ""
		       : server_remedy(&ballot->quorum->servers[i]);
}

void explain_server(const struct ballot *ballot, size_t i, struct error *error)
{
	const char *what = remedy(ballot, i);
	char text[TRUST_TEXT];

	error_append(error, "%s%s%s", why_not(ballot, i, text),
		     *what != '\0' ? ": " : "", what);
}

/* A remedy is named once, after the last server that it is for. */
static bool is_last_of_its_kind(const struct ballot *ballot, size_t i)
{
	const char *what = remedy(ballot, i);

	for (size_t k = i + 1; k < ballot->quorum->count; k++)
		if (has_failed(ballot, k) &&
		    strcmp(remedy(ballot, k), what) == 0)
			return false;
	return *what != '\0';
}

static void explain_each(const struct ballot *ballot, struct error *error)
{
	const char *between = ": ";
	char text[TRUST_TEXT];

	for (size_t i = 0; i < ballot->quorum->count; i++) {
		if (!has_failed(ballot, i))
			continue;
		error_append(error, "%s%s: ", between,
			     ballot->quorum->servers[i].url.name);
		if (is_last_of_its_kind(ballot, i))
			explain_server(ballot, i, error);
		else
			error_append(error, "%s", why_not(ballot, i, text));
		between = "; ";
	}
}

void explain_failure(const struct ballot *ballot, struct error *error)
{
	const struct server *culprit = find_culprit(ballot);
	const struct server *servers = ballot->quorum->servers;
	size_t count = ballot->quorum->count, failed = 0, which = 0;

	if (ballot->alias) {
		*error = ballot->alias_error;
		return;
	}
	error_set(error, EXIT_UNREACHED, "%s", "");
	if (culprit != NULL) {
		error->code = cause_code(culprit->conn.refusal.cause);
		which = (size_t)(culprit - servers);
	}
	error->transient = !ballot_is_hopeless(ballot);
	/* KEY is no lock, or one of another kind, which is no matter of one server */
	if (count > 1 && error->code != EXIT_MISUSED) {
		for (size_t i = 0; i < count; i++)
			failed += has_failed(ballot, i);
		error_append(error,
			     "no quorum: %zu of %zu servers gave no vote, %zu "
			     "votes are needed",
			     failed, count, quorum_size(ballot->quorum));
		explain_each(ballot, error);
		return;
	}
	error_append(error, "%s: ", servers[which].url.name);
	explain_server(ballot, which, error);
}

void explain_silence(const struct ballot *ballot, struct error *error)
{
	size_t count = ballot->quorum->count;

	error_set(error, EXIT_UNREACHED, "%zu of %zu servers did not answer",
		  count - ballot_count(ballot, VOTE_YES), count);
	explain_each(ballot, error);
}

/* If we have another slot there, ours is gone, too. */
static size_t count_gone(const struct ballot *ballot)
{
	return ballot_count(ballot, VOTE_GONE) +
	       ballot_count(ballot, VOTE_ELSEWHERE);
}

void explain_loss(const struct ballot *ballot, struct error *error)
{
	size_t gone = count_gone(ballot);
	size_t held = ballot_count(ballot, VOTE_HELD);
	size_t count = ballot->quorum->count;

	if (count == 1)
		error_set(error, EXIT_LOST,
			  held > 0 ? "%s: KEY is held by someone else"
				   : "%s: KEY is gone",
			  ballot->quorum->servers[0].url.name);
	else if (held == 0)
		error_set(error, EXIT_LOST,
			  "KEY is gone from %zu of %zu "
			  "servers",
			  gone, count);
	else
		error_set(error, EXIT_LOST,
			  "KEY is held by someone else on %zu and gone "
			  "from %zu of %zu servers",
			  held, gone, count);
}

void explain_break(const struct ballot *ballot, const struct breaker *breaker,
		   struct error *error)
{
	size_t broken = ballot_count(ballot, VOTE_BROKEN);
	size_t count = ballot->quorum->count;
	struct buffer text = {0};

	record_print_breaker(&text, "broken", breaker);
	if (broken <= count - quorum_size(ballot->quorum))
		buffer_print(&text, " on %zu of %zu servers, and gone from %zu",
			     broken, count,
			     count_gone(ballot) +
				     ballot_count(ballot, VOTE_HELD));
	error_set(error, EXIT_LOST, "%s", text.data);
	buffer_release(&text);
}
