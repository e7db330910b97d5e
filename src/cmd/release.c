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

static void release_rest(void *session, size_t i)
{
	if (!has_released(session_at(session, i)))
		cmd_release_one(session, i);
}

static void release(struct session *session)
{
	bool all = true;

	for (size_t i = 0; i < session->count; i++) {
		lock_note_end(session->locks[i], -1, "released");
		session->locks[i]->by_hand = true;
		session_at(session, i)->answer.result = LOCK_NOT_HELD;
	}
	if (keeper_has_hold(session->locks, session->count))
		cmd_each(session, release_untracked);
	for (size_t i = 0; i < session->count; i++)
		all &= has_released(session_at(session, i));
	if (all)
		return;
	if (keeper_dismiss(session->locks, session->count))
		log_step("%s: the keeper has ended", session->settings->key);
	cmd_each(session, release_rest);
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
