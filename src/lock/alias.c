#include "lock/alias.h"

#include <stdlib.h>
#include <string.h>

#include "server/last_place.h"
#include "base/log.h"

#define MOMENT 200 /* ms, at most, for names that nobody has compared of late */

static const char one[] = "one", distinct[] = "distinct";

/* --- what is remembered --------------------------------------------------- */

static void remember(const struct lock *lock, const char *found)
{
	struct hint hint;

	quorum_open_hint(lock->quorum, "names", &hint);
	hint_write_word(&hint, found);
}

/* --- what is found -------------------------------------------------------- */

static void explain(const struct lock *lock, size_t i, size_t other,
		    struct error *error)
{
	const struct server *servers = lock->quorum->servers;

	error_set(error, EXIT_CONFIG,
		  "%s and %s are one server: name each only once",
		  servers[i < other ? i : other].url.name,
		  servers[i < other ? other : i].url.name);
}

bool alias_is_one(struct lock *lock, size_t i)
{
	struct server *server = &lock->quorum->servers[i];
	size_t other = quorum_find_alias(lock->quorum, i);

	if (other == i)
		return false;
	explain(lock, i, other, &lock->alias_error);
	if (!lock->alias)
		remember(lock, one);
	lock->alias = true;
	lock->vote[i] = VOTE_FAILED;
	strlcpy(server->why, lock->alias_error.text, sizeof(server->why));
	server->cause = CAUSE_ALIAS;
	return true;
}

void alias_warn(struct lock *lock, size_t i)
{
	size_t other = quorum_find_alias(lock->quorum, i);
	struct error error;

	if (other == i || lock->alias_told)
		return;
	lock->alias_told = true;
	remember(lock, one);
	explain(lock, i, other, &error);
	log_notice("%.*s: %s", (int)lock->key.length, lock->key.data,
		   error.text);
}

/* --- hearing the others --------------------------------------------------- */

static bool all_have_said(void *context)
{
	const struct quorum *quorum = context;

	for (size_t i = 0; i < quorum->count; i++)
		if (!quorum->servers[i].identity.known &&
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
static enum gathered hear(struct lock *lock, struct deadline until)
{
	struct judge judge = {lock->quorum, on_reply, all_have_said};
	char found[HINT_WORD] = "";
	enum gathered gathered;
	struct hint hint;

	quorum_open_hint(lock->quorum, "names", &hint);
	if (hint.path[0] == '\0' ||
	    (hint_read_word(&hint, found) == 0 && strcmp(found, distinct) == 0))
		return GATHER_CERTAIN;
	if (strcmp(found, one) != 0)
		until = deadline_earlier(until, deadline_in(MOMENT));
	until = deadline_earlier(until, deadline_in(lock->ttl / 8));
	gathered = quorum_idle(lock->quorum, until, &judge);
	if (strcmp(found, one) != 0 || gathered == GATHER_CERTAIN)
		hint_write_word(&hint, distinct);
	return gathered;
}

enum lock_result alias_check(struct lock *lock, struct deadline until,
			     struct error *error)
{
	size_t count = lock->quorum->count;

	if (count > 1 && !all_have_said(lock->quorum) &&
	    hear(lock, until) == GATHER_INTERRUPTED)
		return LOCK_INTERRUPTED;
	for (size_t i = 0; i < count; i++) {
		if (!alias_is_one(lock, i))
			continue;
		*error = lock->alias_error;
		return LOCK_ERROR;
	}
	return LOCK_OK;
}
