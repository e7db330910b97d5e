#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cmd/session.h"
#include "settings/command.h"
#include "run/process.h"
#include "base/signals.h"

static void format_shell(struct buffer *text, const struct lock *lock)
{
	int64_t until = clock_wall_ms() + deadline_left(lock->valid);

	buffer_print(text, "REDLOCK_KEY=");
	output_shell(text, lock->key.data);
	buffer_print(text, "\nREDLOCK_TOKEN=");
	output_shell(text, lock->token);
	buffer_print(text,
		     "\nREDLOCK_FENCE='%" PRId64
		     "'\nREDLOCK_VALID_UNTIL='%" PRId64 "'\nexport "
		     "REDLOCK_KEY REDLOCK_TOKEN REDLOCK_FENCE "
		     "REDLOCK_VALID_UNTIL\n",
		     lock->fence, until / 1000);
}

static void format_json(struct buffer *text, const struct lock *lock)
{
	buffer_print(text, "{\"key\":");
	output_json(text, lock->key.data, lock->key.length);
	buffer_print(text, ",\"token\":");
	output_json(text, lock->token, strlen(lock->token));
	buffer_print(text,
		     ",\"fence\":%" PRId64 ",\"ttl_ms\":%" PRId64
		     ",\"valid_ms\":%" PRId64 "}\n",
		     lock->fence, lock->ttl, deadline_left(lock->valid));
}

/* 0, or -1 with errno: then nobody knows the token. */
static int print(const struct session *session)
{
	struct buffer text = {0};
	int result;

	switch (session->settings->format) {
	case FORMAT_SHELL:
		format_shell(&text, &session->lock);
		break;
	case FORMAT_JSON:
		format_json(&text, &session->lock);
		break;
	case FORMAT_PEOPLE:
		buffer_print(&text, "%s\n", session->lock.token);
	}
	result = output_write(STDOUT_FILENO, text.data, text.length);
	buffer_release(&text);
	return result;
}

static int give_back(struct session *session)
{
	struct error error, ignored;

	error_system(&error, "the token cannot be written, so the lock is "
			     "given back");
	session->quorum.interrupt = -1;
	lock_release(&session->lock, 0, deadline_in(session->quorum.timeout),
		     &ignored);
	cmd_complain(session, &error);
	return error.code;
}

/* What is to be done under the lock: the script that called us, without the
 * passwords in its command line. */
static void make_label(const struct session *session, struct buffer *label)
{
	if (!process_command_line(getppid(), label))
		buffer_print(label, "acquire");
	cmd_hide_logins(session, label->data);
}

int cmd_acquire(struct settings *settings)
{
	struct session session;
	struct buffer label = {0};
	struct taken taken;
	int status = cmd_open(&session, settings);

	if (status == 0)
		status = cmd_heed_signals(&session);
	if (status != 0) {
		cmd_print_failure(settings, status);
		return status;
	}
	session.lock.by_hand = true;
	/* the shell that waits for the token is the holder */
	make_label(&session, &label);
	taken = cmd_take(&session, getppid(), label.data);
	buffer_release(&label);
	status = taken.status;
	if (taken.held)
		status = print(&session) == 0 ? EXIT_DONE : give_back(&session);
	cmd_close(&session);
	if (taken.signal != 0) {
		cmd_print_failure(settings, 128 + taken.signal);
		signals_die(taken.signal);
	}
	if (!taken.held)
		cmd_print_failure(settings, status);
	return status;
}
