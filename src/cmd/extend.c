#include "cmd/session.h"
#include "settings/command.h"
#include "base/duration.h"
#include "settings/options.h"

/* A ttl of a file or of the environment is meant for taking locks. */
static bool is_ttl_named(const struct settings *settings)
{
	return options_is_typed(settings,
				options_find("ttl", 3, COMMAND_EXTEND));
}

static void extend_one(void *context, size_t i)
{
	struct session *each = session_at(context, i);
	struct answer *answer = &each->answer;

	each->lock.wish.as_taken = !is_ttl_named(each->settings);
	answer->result = lock_extend(
		&each->lock, wait_until(deadline_in(each->quorum.timeout)),
		&answer->error);
}

int cmd_extend(struct settings *settings)
{
	struct session session;
	char text[DURATION_TEXT];
	int status = cmd_open(&session, settings);

	if (status != 0)
		return status;
	cmd_each(&session, extend_one);
	for (size_t i = 0; i < session.count; i++)
		if (session_at(&session, i)->answer.result == LOCK_OK)
			log_step("%s: extended, %s left",
				 settings_key(settings, i),
				 duration_format(text,
						 session.locks[i]->grant.left));
	status = cmd_report(&session);
	cmd_close(&session);
	return status;
}
