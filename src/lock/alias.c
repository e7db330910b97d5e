#include "lock/alias.h"

#include <stdlib.h>
#include <string.h>

#include "server/last_place.h"
#include "base/lease.h"
#include "base/log.h"

#define MOMENT 200 /* ms, at most, for names that nobody has compared of late */

static const char one[] = "one", distinct[] = "distinct";

/* --- what is remembered --------------------------------------------------- */

static void remember(const struct quorum *quorum, const char *found)
{
	struct last_place last;

	quorum_last_place(quorum, "names", &last);
	last_place_write_word(&last, found);
}

/* --- what is found -------------------------------------------------------- */

static void explain(const struct quorum *quorum, size_t i, size_t other,
		    struct error *error)
{
	const struct server *servers = quorum->servers;

	error_set(error, EXIT_CONFIG,
		  "%s and %s are the same server: name it only once",
		  servers[i < other ? i : other].url.name,
		  servers[i < other ? other : i].url.name);
}

bool alias_is_one(struct ballot *ballot, size_t i)
{
	struct server *server = &ballot->quorum->servers[i];
	size_t other = quorum_find_alias(ballot->quorum, i);

	if (other == i)
		return false;
	explain(ballot->quorum, i, other, &ballot->alias_error);
	if (!ballot->alias)
		remember(ballot->quorum, one);
	ballot->alias = true;
	ballot->vote[i] = VOTE_FAILED;
	refusal_set(&server->conn.refusal, CAUSE_ALIAS,
		    ballot->alias_error.text);
	return true;
}

bool alias_read(struct ballot *ballot, size_t i, const struct reply *reply,
		int64_t least, int64_t *answer)
{
	if (reply != NULL && reply->failure == NULL && alias_is_one(ballot, i))
		return false;
	return ballot_read(ballot, i, reply, least, answer);
}

void alias_warn(struct lock *lock, size_t i)
{
	size_t other = quorum_find_alias(lock->ballot.quorum, i);
	struct error error;

	if (other == i || lock->alias_reported)
		return;
	lock->alias_reported = true;
	remember(lock->ballot.quorum, one);
	explain(lock->ballot.quorum, i, other, &error);
	log_notice("%.*s: %s", (int)lock->names.key.length,
		   lock->names.key.data, error.text);
}

/* --- hearing the others --------------------------------------------------- */

static bool all_have_said(void *context)
{
	const struct quorum *quorum = context;

	for (size_t i = 0; i < quorum->count; i++)
		if (!quorum->servers[i].conn.identity.known &&
		    !server_is_down(&quorum->servers[i]))
			return false;
	return true;
}

static void on_reply(void *context, size_t i, const struct reply *reply)
{
	(void)context;
	(void)i;
	(void)reply;
}

/* Most of the lease stays for whoever takes the lock. */
static enum gathered hear(struct lock *lock, struct wait wait)
{
	struct reply_handler handler = {lock->ballot.quorum, on_reply,
					all_have_said};
	char found[LAST_PLACE_WORD] = "";
	enum gathered gathered;
	struct last_place last;

	quorum_last_place(lock->ballot.quorum, "names", &last);
	if (last.path[0] == '\0' || (last_place_read_word(&last, found) == 0 &&
				     strcmp(found, distinct) == 0))
		return GATHER_CERTAIN;
	if (strcmp(found, one) != 0)
		wait = wait_earlier(wait, deadline_in(MOMENT));
	wait = wait_earlier(wait, deadline_in(lease_for_names(lock->wish.ttl)));
	gathered = quorum_idle(lock->ballot.quorum, wait, &handler);
	if (strcmp(found, one) != 0 || gathered == GATHER_CERTAIN)
		last_place_write_word(&last, distinct);
	return gathered;
}

enum lock_result alias_check(struct lock *lock, struct wait wait,
			     struct error *error)
{
	size_t count = lock->ballot.quorum->count;

	if (count > 1 && !all_have_said(lock->ballot.quorum) &&
	    hear(lock, wait) == GATHER_INTERRUPTED)
		return LOCK_INTERRUPTED;
	for (size_t i = 0; i < count; i++) {
		if (!alias_is_one(&lock->ballot, i))
			continue;
		*error = lock->ballot.alias_error;
		return LOCK_ERROR;
	}
	return LOCK_OK;
}
