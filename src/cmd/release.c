#include "cmd/session.h"
#include "settings/command.h"
#include "run/keeper.h"

/* Whether a hold was given back, or may have been. If so, none of a keeper's is. */
static bool has_released(const struct session *session)
{
	const struct answer *answer = &session->answer;

	return answer->result == LOCK_OK ||
	       (answer->result == LOCK_ERROR &&
		ballot_count(&session->lock.ballot, VOTE_YES) > 0);
}

/* Of a reentrant lock a hold that no keeper keeps goes first (keeper.h). */
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

static void release_rest(void *session, size_t i)
{
	if (!has_released(session_at(session, i)))
		cmd_release_one(session, i);
}

/* What the keeper could not reach, we may. Its word counts if we do not. */
static void try_again(struct session *session, bool same_servers)
{
	struct answer *answer = &session->answer;
	struct answer before = *answer;

	if (answer->result != LOCK_ERROR || answer->error.code == EXIT_MISUSED)
		return;
	cmd_release_one(session, 0);
	/* if there is nothing to give back any more, its request has got there late */
	if (answer->result == LOCK_NOT_HELD && same_servers)
		answer->result = LOCK_OK;
	if (answer->result != LOCK_OK)
		*answer = before;
}

static void release_again(void *session, size_t i)
{
	try_again(session_at(session, i), true);
}

static void release_here(void *session, size_t i)
{
	try_again(session_at(session, i), false);
}

static void take_partings(struct session *session,
			  const struct parting *partings)
{
	for (size_t i = 0; i < session->count; i++) {
		struct answer *answer = &session_at(session, i)->answer;

		answer->result = partings[i].result;
		answer->error = partings[i].error;
	}
	log_step("%s: given back by its keeper", session->settings->key);
}

static void tell_hidden(const struct session *session)
{
	struct error why;

	if (keeper_is_hidden(session->locks, session->count, &why))
		log_notice("%s: its keeper, if it has one, could not be looked "
			   "for: %s",
			   session->settings->key, why.text);
}

/* By its keeper, if it has one. But if a hold of some of the keys has been given back, its
 * own of these keys is not. */
static void release_kept(struct session *session, bool some)
{
	struct parting partings[LOCKS_MOST];

	switch (keeper_dismiss(session->locks, session->count,
			       some ? NULL : partings)) {
	case DISMISSED_DONE:
		take_partings(session, partings);
		cmd_each(session, release_again);
		return;
	case DISMISSED_ELSEWHERE:
		take_partings(session, partings);
		cmd_each(session, release_here);
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

static void release(struct session *session)
{
	size_t released = 0;

	for (size_t i = 0; i < session->count; i++) {
		lock_note_end(session->locks[i], -1, "released");
		session->locks[i]->by_hand = true;
		session_at(session, i)->answer.result = LOCK_NOT_HELD;
	}
	if (keeper_has_hold(session->locks, session->count) &&
	    may_be_untracked(session))
		cmd_each(session, release_untracked);
	for (size_t i = 0; i < session->count; i++)
		released += has_released(session_at(session, i));
	if (released < session->count)
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
