#include <string.h>

#include "base/threads.h"
#include "cmd/session.h"
#include "settings/command.h"
#include "run/dismissal.h"

/* Whether a hold was given back, or may have been. If so, none of a keeper's is. */
static bool has_released(const struct session *session)
{
	const struct answer *answer = &session->answer;

	return answer->result == LOCK_OK ||
	       (answer->result == LOCK_ERROR &&
		ballot_count(&session->lock.ballot, VOTE_YES) > 0);
}

/* Of a reentrant lock a hold that no keeper keeps goes first (dismissal.h). */
static void release_untracked(void *session, size_t i)
{
	lock_adopt_untracked(&session_at(session, i)->lock);
	cmd_release_one(session, i);
}

static void look_for_untracked(void *session, size_t i)
{
	struct session *each = session_at(session, i);
	struct deadline until = deadline_in(each->quorum.timeout);

	each->answer.result = lock_has_untracked(&each->lock, until)
				      ? LOCK_OK
				      : LOCK_NOT_HELD;
}

/* Of several keys only holds of them all are another acquire's than the keeper's. One key's
 * release finds that out by itself. */
static bool may_be_untracked(struct session *session)
{
	bool all = true;

	if (session->count == 1)
		return true;
	cmd_each(session, look_for_untracked);
	for (size_t i = 0; i < session->count; i++) {
		struct answer *answer = &session_at(session, i)->answer;

		all &= answer->result == LOCK_OK;
		answer->result = LOCK_NOT_HELD;
	}
	return all;
}

/* Releases the hold that a keeper has left to us, or else any hold. If an untracked one was
 * asked for already, there is nothing more to ask. */
static void release_rest(void *session, size_t i)
{
	const struct session *each = session_at(session, i);

	if (!has_released(each) && strcmp(each->lock.grant.hold, "*+") != 0)
		cmd_release_one(session, i);
}

/* What a keeper has given back, or not. */
struct kept_release {
	struct session *session;
	struct parting partings[LOCKS_MOST];
	bool same_servers; /* that both know by one name */
};

/* What the keeper could not reach, we may. Its word counts if we do not. */
static void release_again(void *context, size_t i)
{
	const struct kept_release *kept = context;
	struct session *session = session_at(kept->session, i);
	struct answer *answer = &session->answer;
	struct answer before = *answer;

	if (answer->result != LOCK_ERROR || answer->error.code == EXIT_MISUSED)
		return;
	cmd_release_one(session, 0);
	if (answer->result == LOCK_OK)
		return;
	/* there is nothing to give back any more: its request has got there late */
	if (answer->result == LOCK_NOT_HELD && kept->same_servers &&
	    kept->partings[i].unsure)
		answer->result = LOCK_OK;
	else if (answer->result == LOCK_ERROR || !kept->same_servers)
		*answer = before;
}

static void follow_keeper(struct kept_release *kept)
{
	struct session *session = kept->session;

	for (size_t i = 0; i < session->count; i++) {
		struct answer *answer = &session_at(session, i)->answer;
		const char *key = settings_key(session->settings, i);

		answer->result = kept->partings[i].result;
		answer->error = kept->partings[i].error;
		if (answer->result == LOCK_OK)
			log_step("%s: given back by its keeper", key);
		else
			log_step("%s: not given back by its keeper: %s", key,
				 answer->error.text);
	}
	threads_each(session->count, release_again, kept);
}

static void tell_hidden(const struct session *session)
{
	struct error why;

	if (dismissal_is_hidden(session->locks, session->count, &why))
		log_notice("%s: its keeper, if it has one, could not be looked "
			   "for: %s",
			   session->settings->key, why.text);
}

/* By its keeper, if it has one. But if a hold of some of the keys has been given back, its
 * own of these keys is not. */
static void release_kept(struct session *session, bool some)
{
	struct kept_release kept = {.session = session};
	enum dismissal dismissal = dismissal_make(
		session->locks, session->count, some ? NULL : kept.partings);

	kept.same_servers = dismissal == DISMISSED_DONE;
	switch (dismissal) {
	case DISMISSED_DONE:
	case DISMISSED_ELSEWHERE:
		follow_keeper(&kept);
		return;
	case DISMISSED_LEFT:
		log_step("%s: left to us by its keeper",
			 session->settings->key);
		break;
	default:
		tell_hidden(session);
		break;
	}
	cmd_each(session, release_rest);
}

/* Whether there may be an untracked hold all the same, or one may have been given back: then no
 * keeper's may be. */
static bool is_in_doubt(struct session *session)
{
	bool doubt = false;

	for (size_t i = 0; i < session->count; i++)
		doubt |= session_at(session, i)->answer.result == LOCK_ERROR;
	return doubt;
}

/* Of an owner whose keeper has none of our servers: theirs may be its own under other
 * names. */
static void release_beside(struct session *session, const struct error *why)
{
	cmd_each(session, release_untracked);
	for (size_t i = 0; i < session->count; i++) {
		struct answer *answer = &session_at(session, i)->answer;

		if (answer->result == LOCK_NOT_HELD)
			answer->error = *why;
	}
}

static void release(struct session *session)
{
	size_t released = 0;
	bool doubt = false;
	struct error why;

	for (size_t i = 0; i < session->count; i++) {
		lock_note_end(session->locks[i], -1, "released");
		session->locks[i]->by_hand = true;
		session_at(session, i)->answer.result = LOCK_NOT_HELD;
	}
	if (dismissal_is_elsewhere(session->locks, session->count, &why)) {
		release_beside(session, &why);
		return;
	}
	if (dismissal_has_hold(session->locks, session->count) &&
	    may_be_untracked(session)) {
		cmd_each(session, release_untracked);
		doubt = is_in_doubt(session);
	}
	for (size_t i = 0; i < session->count; i++)
		released += has_released(session_at(session, i));
	if (released < session->count && !doubt)
		release_kept(session, released > 0);
}

int cmd_release(struct settings *settings)
{
	struct session session;
	int status = cmd_open(&session, settings);

	if (status != 0)
		return status;
	release(&session);
	for (size_t i = 0; i < session.count; i++)
		if (session_at(&session, i)->answer.result == LOCK_OK)
			log_step("%s: released", settings_key(settings, i));
	status = cmd_report(&session);
	cmd_close(&session);
	return status;
}
