#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd/journal.h"
#include "cmd/json.h"
#include "cmd/keep.h"
#include "cmd/print.h"
#include "cmd/session.h"
#include "cmd/take.h"
#include "settings/command.h"
#include "settings/config.h"
#include "run/ancestry.h"
#include "run/process.h"
#include "base/output.h"
#include "base/signals.h"

static void assign(struct buffer *text, const char *name, const char *value)
{
	buffer_print(text, "%s=", name);
	output_shell(text, value);
	buffer_print(text, "\nexport %s\n", name);
}

static void assign_number(struct buffer *text, const char *name, int64_t number)
{
	struct buffer value = {0};

	buffer_print(&value, "%" PRId64, number);
	assign(text, name, value.data);
	buffer_release(&value);
}

/* The shell may have it as a variable that we do not see. */
static void forget(struct buffer *text, const char *name)
{
	buffer_print(text, "unset %s\n", name);
}

/* Of several locks; what one had before is gone. */
static void assign_fences(struct buffer *text, const struct session *session)
{
	struct buffer fences = {0};

	if (session->count == 1) {
		forget(text, "REDLOCK_FENCES");
		return;
	}
	ancestry_print_fences(&fences, session->locks, session->count);
	assign(text, "REDLOCK_FENCES", fences.data);
	buffer_release(&fences);
}

static void format_shell(struct buffer *text, const struct session *session)
{
	const struct lock *lock = &session->lock;
	int64_t until =
		clock_wall_ms() + deadline_left(cmd_valid_until(session));
	struct buffer held = {0}, token = {0};

	ancestry_extend_shell(&held, session->locks, session->count);
	cmd_print_token(&token, session);
	assign(text, "REDLOCK_KEY", lock->names.key.data);
	assign(text, "REDLOCK_TOKEN", token.data);
	assign_number(text, "REDLOCK_FENCE", lock->grant.fence);
	if (lock->grant.slot > 0)
		assign_number(text, "REDLOCK_SLOT", lock->grant.slot);
	else
		forget(text, "REDLOCK_SLOT");
	assign_fences(text, session);
	assign(text, "REDLOCK_HELD", held.data);
	forget(text, "REDLOCK_UNLOCKED");
	if (session->settings->pid == 0)
		assign_number(text, "REDLOCK_VALID_UNTIL", until / 1000);
	else /* a keeper renews it */
		forget(text, "REDLOCK_VALID_UNTIL");
	buffer_release(&held);
	buffer_release(&token);
}

/* 0, or -1 with errno: nobody has got the token then; EINTR: a signal came before there
 * was room for it. */
static int print(const struct session *session)
{
	struct buffer text = {0};
	int result;

	switch (session->settings->format) {
	case FORMAT_SHELL:
		format_shell(&text, session);
		break;
	case FORMAT_JSON:
		json_grant(&text, session);
		break;
	case FORMAT_PEOPLE:
	case FORMAT_PROMETHEUS: /* not of this command */
		cmd_print_token(&text, session);
		buffer_append(&text, "\n", 1);
	}
	result = output_write_until_told(STDOUT_FILENO, text.data, text.length,
					 false);
	buffer_release(&text);
	return result;
}

static void give_back(struct session *session)
{
	cmd_each(session, cmd_release_one);
	for (size_t i = 0; i < session->count; i++) {
		const struct answer *answer = &session_at(session, i)->answer;

		journal_released(
			session->settings, session->locks[i], "acquire failed",
			answer->result == LOCK_OK ? NULL : answer->error.text);
	}
}

/* keeper: that has the lock by now, or 0. Returns the exit status; if a signal is to end
 * us instead, it is in *signal. */
static int print_or_give_back(struct session *session, pid_t keeper,
			      int *signal)
{
	struct error error;

	if (print(session) == 0)
		return EXIT_DONE;
	if (errno == EINTR)
		*signal = signals_next();
	error_system(&error, "the token cannot be written, so the lock is "
			     "given back");
	if (keeper != 0)
		keeper_recall(keeper);
	else
		give_back(session);
	if (*signal == 0)
		cmd_complain(&session->lock, &error);
	return error.code;
}

/* What is to be done under the lock: the script that called us, without the
 * passwords in its command line. */
static void make_label(const struct session *session, pid_t holder,
		       struct buffer *label)
{
	if (!process_command_line(holder, label))
		buffer_print(label, "acquire");
	cmd_hide_logins(session, label->data);
}

/* With the lock held. The exit status, also of the keeper; or a signal to die of. */
static int hand_over(struct session *session, struct keeper *keeper,
		     int *signal)
{
	pid_t child;
	int status;

	if (session->settings->pid == 0)
		return print_or_give_back(session, 0, signal);
	status = keep_start(keeper, session, &child);
	/* the keeper has the connections and the lock */
	if (status == 0 && child > 0) {
		status = print_or_give_back(session, child, signal);
		if (*signal != 0)
			signals_die(*signal);
		log_end();
		_exit(status);
	}
	if (status != 0)
		give_back(session);
	return status;
}

/* Nothing ended the wait but the end of PID. */
static int explain_end(const struct session *session,
		       const struct keeper *keeper, int status)
{
	int ended = keep_check(keeper, session);

	return ended != 0 ? ended : status;
}

static int prepare(struct session *session, struct keeper *keeper)
{
	struct settings *settings = session->settings;
	int status = cmd_heed_signals(session);

	for (size_t i = 0; i < session->count; i++) {
		struct wish *wish = &session->locks[i]->wish;

		wish->untracked = settings->pid == 0; /* or a keeper knows */
		wish->validity_needed =
			settings->pid == 0 ? 0
					   : config_validity_needed(settings);
	}
	if (status != 0 || settings->pid == 0)
		return status;
	return keep_prepare(keeper, session);
}

int cmd_acquire(struct settings *settings)
{
	/* the shell that waits for the token is the holder */
	pid_t holder = settings->pid != 0 ? settings->pid : getppid();
	struct session session;
	struct keeper keeper;
	struct buffer label = {0};
	struct taken taken;
	int status = cmd_open(&session, settings);

	if (status == 0) {
		status = prepare(&session, &keeper);
		if (status != 0)
			cmd_close(&session);
	}
	if (status != 0) {
		cmd_print_failure(settings, status, false);
		return status;
	}
	make_label(&session, holder, &label);
	taken = cmd_take(&session, holder, label.data);
	buffer_release(&label);
	status = taken.status;
	for (size_t i = 0; i < session.count && taken.held; i++)
		journal_acquired(settings, session.locks[i], taken.waited);
	if (taken.held)
		status = hand_over(&session, &keeper, &taken.signal);
	else if (taken.interrupted && taken.signal == 0 && settings->pid != 0)
		status = explain_end(&session, &keeper, status);
	cmd_close(&session);
	if (taken.signal != 0) {
		cmd_print_failure(settings, 128 + taken.signal, true);
		signals_die(taken.signal);
	}
	if (!taken.held || status != EXIT_DONE)
		cmd_print_failure(settings, status, false);
	return status;
}
