#include "cmd/session.h"
#include "settings/command.h"
#include "run/keeper.h"

/* Of reentrant locks a hold that no keeper keeps goes first (keeper.h). False: there is
 * none, or that is not known. */
static bool release_untracked(struct session *session)
{
	bool all = true;

	if (!keeper_has_hold(session->locks, session->count))
		return false;
	for (size_t i = 0; i < session->count; i++)
		lock_adopt_untracked(session->locks[i]);
	cmd_each(session, cmd_release_one);
	for (size_t i = 0; i < session->count; i++)
		all &= session_at(session, i)->answer.result == LOCK_OK;
	return all;
}

int cmd_release(struct settings *settings)
{
	struct session session;
	int status = cmd_open(&session, settings);

	if (status != 0)
		return status;
	for (size_t i = 0; i < session.count; i++)
		lock_note_end(session.locks[i], -1, "released");
	if (!release_untracked(&session)) {
		if (keeper_dismiss(session.locks, session.count))
			log_step("%s: the keeper has ended", settings->key);
		cmd_each(&session, cmd_release_one);
	}
	for (size_t i = 0; i < session.count; i++)
		if (session_at(&session, i)->answer.result == LOCK_OK)
			log_step("%s: released", settings_key(settings, i));
	status = cmd_report(&session);
	cmd_close(&session);
	return status;
}
