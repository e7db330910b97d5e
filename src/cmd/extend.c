#include "cmd/session.h"
#include "settings/command.h"
#include "base/duration.h"
#include "base/lease.h"
#include "settings/options.h"

/* A ttl of a file or of the environment is meant for taking locks. */
static bool is_ttl_named(const struct settings *settings)
{
	return options_is_typed(settings,
				options_find("ttl", 3, COMMAND_EXTEND));
}

/* ms, by our clock: what servers say has passed on the way, too, and while we were stopped. */
static int64_t count_left(const struct grant *grant)
{
	return grant->left - lease_drift(grant->left) -
	       (clock_ms() - grant->started);
}

static void extend_one(void *context, size_t i)
{
	struct session *each = session_at(context, i);
	struct answer *answer = &each->answer;

	each->lock.wish.as_taken = !is_ttl_named(each->settings);
	answer->result = lock_extend(
		&each->lock, wait_until(deadline_in(each->quorum.timeout)),
		&answer->error);
	if (answer->result != LOCK_OK || count_left(&each->lock.grant) > 0)
		return;
	error_set(&answer->error, EXIT_UNREACHED,
		  "the servers extended it too late: "
		  "the lease was over when the answers came");
	answer->result = LOCK_ERROR;
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
				 duration_format(
					 text,
					 count_left(&session.locks[i]->grant)));
	status = cmd_report(&session);
	cmd_close(&session);
	return status;
}
