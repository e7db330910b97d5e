#include "cmd.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "duration.h"
#include "signals.h"

int cmd_open(struct session *session, struct settings *settings)
{
	struct error error;

	*session = (struct session){.settings = settings};
	if (config_quorum(settings, &session->quorum, &error) < 0) {
		log_error("%s", error.text);
		return error.code;
	}
	lock_init(&session->lock, &session->quorum, settings->key,
		  settings->ttl, settings->quarantine);
	if (settings->token != NULL)
		snprintf(session->lock.token, sizeof(session->lock.token), "%s",
			 settings->token);
	return 0;
}

void cmd_close(struct session *session)
{
	quorum_drain(&session->quorum);
	lock_release_memory(&session->lock);
	quorum_release(&session->quorum);
}

int cmd_report(const struct session *session, enum lock_result result,
	       const struct error *error)
{
	if (result == LOCK_OK)
		return EXIT_DONE;
	if (result == LOCK_NOT_HELD) {
		log_error("%s: not held by this token: %s",
			  session->settings->key, error->text);
		return EXIT_NOT_HELD;
	}
	cmd_complain(session, error);
	return error->code;
}

void cmd_complain(const struct session *session, const struct error *error)
{
	log_error("%s: %s", session->settings->key, error->text);
}

static void complain_busy(const struct session *session,
			  const struct busy *busy)
{
	struct buffer text = {0};

	/* 0 asks for silence: it is how cron lines say "elsewhere is fine" */
	if (session->settings->conflict_code == 0)
		return;
	record_print_busy(&text, busy);
	log_error("%s: %s", session->settings->key, text.data);
	buffer_release(&text);
}

static const char *outcome_of(int code)
{
	switch (code) {
	case EXIT_UNREACHED:
		return "unreachable";
	case EXIT_REFUSED:
		return "refused";
	case EXIT_MISUSED:
		return "misused";
	default:
		return "error";
	}
}

static void give_back(struct session *session)
{
	struct error error;

	session->quorum.interrupt = -1;
	if (lock_release(&session->lock, 0, deadline_in(session->quorum.timeout),
			 &error) != LOCK_OK)
		cmd_complain(session, &error);
}

struct taken cmd_take(struct session *session, pid_t pid, const char *label)
{
	const struct settings *settings = session->settings;
	/* should nothing below say how it went, it has not gone well */
	struct taken taken = {.status = EXIT_BUG, .outcome = "error"};
	int64_t start = clock_ms();
	struct busy busy;
	struct error error;
	char text[DURATION_TEXT];

	record_describe(&session->lock.description, pid,
			settings->label != NULL ? settings->label : label,
			settings->ttl);
	switch (waiter_acquire(&session->lock, &settings->patience, &busy,
			       &error)) {
	case LOCK_OK:
		taken.held = true;
		log_step("%s: granted, fence %" PRId64 ", %s left",
			 settings->key, session->lock.fence,
			 duration_format(text,
					 deadline_left(session->lock.valid)));
		break;
	case LOCK_INTERRUPTED:
		break;
	case LOCK_BUSY:
		taken.status = settings->conflict_code;
		taken.outcome = "busy";
		complain_busy(session, &busy);
		break;
	default:
		taken.status = error.code;
		taken.outcome = outcome_of(error.code);
		cmd_complain(session, &error);
	}
	taken.waited = clock_ms() - start;
	taken.signal = signals_ending();
	if (taken.signal == 0)
		return taken;
	/* it came in time: nothing is started, nothing left behind */
	taken.outcome = "interrupted";
	if (taken.held)
		give_back(session);
	taken.held = false;
	return taken;
}
