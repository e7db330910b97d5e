#include "cmd/session.h"
#include "settings/command.h"
#include "run/keeper.h"

int cmd_release(struct settings *settings)
{
	struct session session;
	int status = cmd_open(&session, settings);

	if (status != 0)
		return status;
	if (keeper_dismiss(session.locks, session.count))
		log_step("%s: the keeper has ended", settings->key);
	for (size_t i = 0; i < session.count; i++)
		lock_note_end(session.locks[i], -1, "released");
	cmd_each(&session, cmd_release_one);
	for (size_t i = 0; i < session.count; i++)
		if (session_at(&session, i)->answer.result == LOCK_OK)
			log_step("%s: released", settings_key(settings, i));
	status = cmd_report(&session);
	cmd_close(&session);
	return status;
}
