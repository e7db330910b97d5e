#include "lock/ballot.h"

#include <stdio.h>
#include <string.h>

#include "lock/alias.h"
#include "server/refusal.h"
#include "base/duration.h"
#include "base/log.h"
#include "lock/trust.h"

size_t ballot_count(const struct lock *lock, enum vote vote)
{
	size_t count = 0;

	for (size_t i = 0; i < lock->quorum->count; i++)
		count += lock->vote[i] == vote;
	return count;
}

void ballot_open(struct lock *lock)
{
	lock->renewed = false;
	lock->clock = clock_wall_ms();
	quorum_round(lock->quorum);
	for (size_t i = 0; i < lock->quorum->count; i++)
		lock->vote[i] = VOTE_PENDING;
}

bool ballot_has_quorum(const struct lock *lock)
{
	return ballot_count(lock, VOTE_YES) >= quorum_size(lock->quorum);
}

static size_t answers(const struct lock *lock, enum vote one, enum vote other)
{
	return ballot_count(lock, one) + ballot_count(lock, other);
}

/*
 * How many servers it takes to say that there is no lock: for an acquire a
 * quorum that has answered at all (of which those that may have forgotten the
 * holder say it only beside one that knows it), else so many that have no part
 * in it that no quorum is left.
 */
static bool has_no(const struct hearing *hearing, size_t still_out)
{
	const struct lock *lock = hearing->lock;
	size_t quorum = quorum_size(lock->quorum);
	size_t held = ballot_count(lock, VOTE_HELD) + still_out;

	if (hearing->busy != NULL)
		return ballot_count(lock, VOTE_YES) + held +
			       (held > 0 ? ballot_count(lock, VOTE_QUARANTINED)
					 : 0) >=
		       quorum;
	return answers(lock, VOTE_GONE, VOTE_HELD) + still_out >
	       lock->quorum->count - quorum;
}

size_t ballot_same_holder(const struct lock *lock,
			  const char (*marks)[HOLDER_MARK])
{
	size_t most = 0;

	for (size_t i = 0; i < lock->quorum->count; i++) {
		size_t same = 0;

		for (size_t k = 0; k < lock->quorum->count; k++)
			same += lock->vote[k] == VOTE_HELD &&
				marks[k][0] != '\0' &&
				strcmp(marks[i], marks[k]) == 0;
		if (lock->vote[i] == VOTE_HELD && same > most)
			most = same;
	}
	return most;
}

bool ballot_is_split(const struct hearing *hearing)
{
	const struct lock *lock = hearing->lock;

	return answers(lock, VOTE_YES, VOTE_QUARANTINED) > 0 &&
	       ballot_count(lock, VOTE_HELD) > 0 &&
	       ballot_same_holder(lock, hearing->mark) <
		       quorum_size(lock->quorum);
}

bool ballot_said_no(const struct hearing *hearing)
{
	return has_no(hearing, 0);
}

bool ballot_decided(void *context)
{
	const struct hearing *hearing = context;
	const struct lock *lock = hearing->lock;
	size_t still_out = ballot_count(lock, VOTE_PENDING);

	if (lock->alias || ballot_has_quorum(lock))
		return true;
	if (ballot_count(lock, VOTE_YES) + still_out >=
	    quorum_size(lock->quorum))
		return false;
	return ballot_said_no(hearing) || !has_no(hearing, still_out);
}

bool ballot_is_complete(void *context)
{
	const struct lock *lock = ((struct hearing *)context)->lock;

	return lock->alias || ballot_count(lock, VOTE_PENDING) == 0;
}

bool ballot_is_heard(void *context)
{
	const struct lock *lock = ((struct hearing *)context)->lock;

	return ballot_is_complete(context) || !ballot_has_quorum(lock) ||
	       trust_is_firm(lock);
}

void ballot_reject(struct lock *lock, size_t i)
{
	lock->vote[i] = VOTE_FAILED;
	blame(&lock->quorum->servers[i], CAUSE_NONSENSE,
	      "an answer that makes no sense");
}

bool ballot_read_held(struct lock *lock, size_t i, const struct reply *reply,
		      int64_t least, int64_t *answer)
{
	struct server *server = &lock->quorum->servers[i];

	if (reply == NULL || reply->failure != NULL) {
		lock->vote[i] = VOTE_FAILED;
		log_step("%s: %s", server->url.name, server->why);
		return false;
	}
	*answer = reply->value[0].number;
	if (reply->count >= 1 && reply->value[0].text == NULL &&
	    *answer >= least && *answer <= 1)
		return true;
	ballot_reject(lock, i);
	return false;
}

bool ballot_read(struct lock *lock, size_t i, const struct reply *reply,
		 int64_t least, int64_t *answer)
{
	if (reply != NULL && reply->failure == NULL && alias_is_one(lock, i))
		return false;
	return ballot_read_held(lock, i, reply, least, answer);
}

static const char *why_not(const struct lock *lock, size_t i,
			   char text[TRUST_TEXT])
{
	return lock->vote[i] == VOTE_QUARANTINED ? trust_explain(lock, i, text)
						 : lock->quorum->servers[i].why;
}

/* One whose answer was not waited for any more has no why. */
static bool has_failed(const struct lock *lock, size_t i)
{
	return lock->vote[i] == VOTE_QUARANTINED ||
	       ((lock->vote[i] == VOTE_FAILED ||
		 lock->vote[i] == VOTE_PENDING) &&
		lock->quorum->servers[i].why[0] != '\0');
}

static bool has_failed_for_good(const struct lock *lock, size_t i)
{
	return lock->vote[i] == VOTE_FAILED && has_failed(lock, i) &&
	       !cause_is_passing(lock->quorum->servers[i].cause);
}

bool ballot_is_hopeless(const struct lock *lock)
{
	size_t left = lock->quorum->count;

	for (size_t i = 0; i < lock->quorum->count; i++)
		left -= has_failed_for_good(lock, i);
	return left < quorum_size(lock->quorum);
}

/* The first that has failed for good, so that no quorum is left; else NULL. */
static const struct server *find_culprit(const struct lock *lock)
{
	if (!ballot_is_hopeless(lock))
		return NULL;
	for (size_t i = 0; i < lock->quorum->count; i++) {
		const struct server *server = &lock->quorum->servers[i];

		if (has_failed_for_good(lock, i) &&
		    cause_code(server->cause) != EXIT_UNREACHED)
			return server;
	}
	return NULL;
}

static const char *remedy(const struct lock *lock, size_t i)
{
	return lock->vote[i] == VOTE_QUARANTINED
		       ? ""
		       : server_remedy(&lock->quorum->servers[i]);
}

void ballot_explain_server(const struct lock *lock, size_t i,
			   struct error *error)
{
	const char *what = remedy(lock, i);
	char text[TRUST_TEXT];

	error_append(error, "%s%s%s", why_not(lock, i, text),
		     *what != '\0' ? ": " : "", what);
}

/* What is to be done is said once, after the last of those it is for. */
static bool is_last_of_its_kind(const struct lock *lock, size_t i)
{
	const char *what = remedy(lock, i);

	for (size_t k = i + 1; k < lock->quorum->count; k++)
		if (has_failed(lock, k) && strcmp(remedy(lock, k), what) == 0)
			return false;
	return *what != '\0';
}

static void explain_each(const struct lock *lock, struct error *error)
{
	const char *between = ": ";
	char text[TRUST_TEXT];

	for (size_t i = 0; i < lock->quorum->count; i++) {
		if (!has_failed(lock, i))
			continue;
		error_append(error, "%s%s: ", between,
			     lock->quorum->servers[i].url.name);
		if (is_last_of_its_kind(lock, i))
			ballot_explain_server(lock, i, error);
		else
			error_append(error, "%s", why_not(lock, i, text));
		between = "; ";
	}
}

void ballot_explain_failure(const struct lock *lock, struct error *error)
{
	const struct server *culprit = find_culprit(lock);
	const struct server *servers = lock->quorum->servers;
	size_t count = lock->quorum->count, failed = 0, which = 0;

	if (lock->alias) {
		*error = lock->alias_error;
		return;
	}
	error_set(error, EXIT_UNREACHED, "%s", "");
	if (culprit != NULL) {
		error->code = cause_code(culprit->cause);
		which = (size_t)(culprit - servers);
	}
	error->passing = !ballot_is_hopeless(lock);
	/* KEY is in use in another way, which is no matter of one server */
	if (count > 1 && error->code != EXIT_MISUSED) {
		for (size_t i = 0; i < count; i++)
			failed += has_failed(lock, i);
		error_append(error,
			     "no quorum: %zu of %zu servers gave no vote, %zu "
			     "votes are needed",
			     failed, count, quorum_size(lock->quorum));
		explain_each(lock, error);
		return;
	}
	error_append(error, "%s: ", servers[which].url.name);
	ballot_explain_server(lock, which, error);
}

void ballot_explain_loss(const struct lock *lock, struct error *error)
{
	size_t gone = ballot_count(lock, VOTE_GONE);
	size_t held = ballot_count(lock, VOTE_HELD);
	size_t count = lock->quorum->count;

	if (count == 1)
		error_set(error, EXIT_LOST,
			  held > 0 ? "%s: KEY is held by someone else"
				   : "%s: KEY is gone",
			  lock->quorum->servers[0].url.name);
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
