#include <stdio.h>

#include "cmd.h"
#include "command.h"

int cmd_extend(struct settings *settings)
{
	struct session session;
	struct error error;
	int status = cmd_open(&session, settings);

	if (status != 0)
		return status;
	snprintf(session.lock.token, sizeof(session.lock.token), "%s",
		 settings->token);
	switch (lock_extend(&session.lock, deadline_in(settings->timeout),
			    &error)) {
	case LOCK_OK:
		break;
	case LOCK_NOT_HELD:
		status = EXIT_NOT_HELD;
		log_error("%s: not held by this token: %s", settings->key,
			  error.text);
		break;
	default:
		status = error.code;
		cmd_complain(&session, &error);
	}
	cmd_close(&session);
	return status;
}
