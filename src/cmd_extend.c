#include "cmd.h"
#include "command.h"
#include "duration.h"

int cmd_extend(struct settings *settings)
{
	struct session session;
	struct error error;
	char text[DURATION_TEXT];
	enum lock_result result;
	int status = cmd_open(&session, settings);

	if (status != 0)
		return status;
	result = lock_extend(&session.lock, deadline_in(settings->timeout),
			     &error);
	if (result == LOCK_OK)
		log_step("%s: extended, %s left", settings->key,
			 duration_format(text,
					 deadline_left(session.lock.valid)));
	status = cmd_report(&session, result, &error);
	cmd_close(&session);
	return status;
}
