#include "cmd/session.h"
#include "settings/command.h"
#include "base/duration.h"
#include "settings/options.h"

/* A ttl of a file or of the environment is for those who take locks. */
static bool is_ttl_named(const struct settings *settings)
{
	return options_is_typed(settings,
				options_find("ttl", 3, COMMAND_EXTEND));
}

int cmd_extend(struct settings *settings)
{
	struct session session;
	struct error error;
	char text[DURATION_TEXT];
	enum lock_result result;
	int status = cmd_open(&session, settings);

	if (status != 0)
		return status;
	session.lock.as_taken = !is_ttl_named(settings);
	result = lock_extend(&session.lock,
			     deadline_in(settings->server_timeout), &error);
	if (result == LOCK_OK)
		log_step("%s: extended, %s left", settings->key,
			 duration_format(text, session.lock.left));
	status = cmd_report(&session, result, &error);
	cmd_close(&session);
	return status;
}
