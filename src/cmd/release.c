#include "cmd/session.h"
#include "settings/command.h"

int cmd_release(struct settings *settings)
{
	struct session session;
	struct error error;
	enum lock_result result;
	int status = cmd_open(&session, settings);

	if (status != 0)
		return status;
	result = lock_release(&session.lock, 0,
			      deadline_in(settings->server_timeout), &error);
	if (result == LOCK_OK)
		log_step("%s: released", settings->key);
	status = cmd_report(&session, result, &error);
	cmd_close(&session);
	return status;
}
