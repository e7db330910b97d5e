#include "cmd/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "run/ancestry.h"
#include "server/drain.h"
#include "base/signals.h"

#define COLUMNS 80 /* if the terminal does not say */
#define INDENT 4   /* of the lines that a long line goes on in */

/* What kind of lock it is to be, and who above us may hold it already. */
static void describe_wish(struct session *session)
{
	const struct settings *settings = session->settings;
	struct lock *lock = &session->lock;

	lock->kind = settings->kind;
	if (settings->permits != UNSET)
		lock->permits = session->quorum.permits = settings->permits;
	if (held_find(getenv("REDLOCK_HELD"), settings->key, session->ancestor,
		      sizeof(session->ancestor)) &&
	    token_is_plain(session->ancestor))
		lock->ancestor = lock->owner = session->ancestor;
	if (settings->owner != NULL)
		lock->owner = settings->owner;
}

int cmd_open_quorum(struct quorum *quorum, struct settings *settings)
{
	struct error error;

	if (config_quorum(settings, quorum, &error) == 0)
		return 0;
	log_error("%s", error.text);
	return error.code;
}

int cmd_open(struct session *session, struct settings *settings)
{
	int status;

	*session = (struct session){.settings = settings};
	status = cmd_open_quorum(&session->quorum, settings);
	if (status != 0)
		return status;
	lock_init(&session->lock, &session->quorum, settings->key,
		  settings->ttl, settings->quarantine);
	if (settings->token != NULL)
		lock_adopt(&session->lock, settings->token);
	describe_wish(session);
	return 0;
}

void cmd_close(struct session *session)
{
	linger(&session->quorum);
	lock_release_memory(&session->lock);
	quorum_release(&session->quorum);
}

void cmd_add_line(struct buffer *text, const struct buffer *line, int fd)
{
	struct buffer visible = {0};

	output_visible(&visible, line->data, line->length, output_utf8());
	output_wrap(text, visible.data, visible.length,
		    output_columns(fd, COLUMNS), INDENT);
	buffer_release(&visible);
}

static int complain_of_output(void)
{
	log_error("standard output: %s", strerror(errno));
	return EXIT_SYSTEM;
}

int cmd_print(const char *text, size_t length)
{
	if (output_write(STDOUT_FILENO, text, length) == 0)
		return 0;
	return complain_of_output();
}

int cmd_show(const char *text, size_t length)
{
	if (output_write(STDOUT_FILENO, text, length) == 0)
		return 0;
	if (errno == EPIPE)
		signals_end_by_pipe();
	return complain_of_output();
}

int cmd_heed_signals(struct session *session)
{
	session->quorum.interrupt = signals_open();
	if (session->quorum.interrupt >= 0)
		return 0;
	log_error("%s: no descriptor for signals: %s", session->settings->key,
		  strerror(errno));
	return EXIT_SYSTEM;
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

/* Waiting would be for ourselves. */
static void complain_nested(const struct session *session)
{
	static const char *const remedy[] = {
		[KIND_EXCLUSIVE] = ": use -r in both to enter it again",
		[KIND_SHARED] = ": use -r in both to enter it again",
		[KIND_PERMITS] = ": use -r in both to enter it again",
		[KIND_REENTRANT] = ": use -r there, too",
		[KIND_NONE] = "",
	};

	log_error("%s: held by a run above this one, which waits for us%s",
		  session->settings->key, remedy[session->settings->kind]);
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
	if (lock_release(&session->lock, 0,
			 deadline_in(session->quorum.timeout),
			 &error) != LOCK_OK)
		cmd_complain(session, &error);
}

void cmd_hide_logins(const struct session *session, char *label)
{
	const struct quorum *quorum = &session->quorum;

	url_hide_logins(label);
	url_hide_password(label, getenv("REDLOCK_PASSWORD"));
	for (size_t i = 0; i < quorum->count; i++)
		url_hide_password(label, quorum->servers[i].url.password);
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
			settings->ttl, session->lock.room > 0);
	switch (waiter_acquire(&session->lock, &settings->patience, &busy,
			       &error)) {
	case LOCK_OK:
		taken.held = true;
		if (settings->kind == KIND_NONE)
			log_step("%s: free", settings->key);
		else
			log_step("%s: granted, fence %" PRId64 ", %s left",
				 settings->key, session->lock.fence,
				 duration_format(
					 text,
					 deadline_left(session->lock.valid)));
		break;
	case LOCK_INTERRUPTED:
		break;
	case LOCK_BUSY:
		taken.status = settings->conflict_code;
		taken.outcome = "busy";
		if (busy.nested)
			complain_nested(session);
		else
			complain_busy(session, &busy);
		break;
	default:
		taken.status = error.code;
		taken.outcome = outcome_of(error.code);
		cmd_complain(session, &error);
	}
	taken.waited = clock_ms() - start;
	taken.signal = signals_next();
	if (taken.signal == 0)
		return taken;
	/* it came in time: nothing is started, nothing left behind */
	taken.outcome = "interrupted";
	if (taken.held && settings->kind != KIND_NONE)
		give_back(session);
	taken.held = false;
	return taken;
}

void cmd_print_failure(const struct settings *settings, int status)
{
	struct buffer text = {0};

	if (settings->format != FORMAT_SHELL)
		return;
	if (status == 0)
		buffer_print(&text, "exit 0\n");
	else
		buffer_print(&text, "(exit %d)\n", status);
	/* if nobody reads it, there is no eval */
	(void)output_write(STDOUT_FILENO, text.data, text.length);
	buffer_release(&text);
}
