#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/output.h"
#include "base/signals.h"
#include "base/threads.h"
#include "base/title.h"
#include "cmd/journal.h"
#include "cmd/json.h"
#include "cmd/run.h"
#include "cmd/session.h"
#include "cmd/take.h"
#include "cmd/supervisor.h"
#include "lock/token.h"
#include "settings/command.h"
#include "settings/config.h"
#include "show/inspect.h"

#define NOTE_TIME 30000 /* ms, at most, that a success waits to be noted */

/* A run from the command line to the exit status. */
struct run {
	struct session session;
	struct settings *settings;
	char **command;
	struct buffer label;
	int status_fd;
	struct taken taken;
	struct supervisor supervisor;
	int cause;           /* errno if COMMAND could not be started */
	int64_t held;        /* ms */
	int64_t kept;        /* ms, after that, by --min-hold */
	bool gone;           /* one of several locks, before COMMAND ended */
	bool late;           /* the release (supervisor_is_late) */
	const char *outcome; /* for --status-fd */
};

/* --- before the lock ---------------------------------------------------- */

static void plan_label(struct run *run)
{
	if (run->settings->shell_command != NULL)
		buffer_print(&run->label, "%s", run->settings->shell_command);
	for (char **word = run->settings->command; word != NULL && *word;
	     word++)
		buffer_print(&run->label, "%s%s",
			     run->label.length > 0 ? " " : "", *word);
}

static void plan_command(struct run *run)
{
	static char *shell[4];
	const char *program = getenv("SHELL");

	plan_label(run);
	run->command = run->settings->command;
	if (run->settings->shell_command == NULL)
		return;
	shell[0] = settings_keep(run->settings,
				 program && *program ? program : "/bin/sh");
	shell[1] = (char *)"-c";
	shell[2] = (char *)run->settings->shell_command;
	run->command = shell;
}

/* The status goes to a descriptor of our own, that COMMAND does not get. */
static int keep_status_fd(struct run *run)
{
	int given = run->settings->status_fd;

	run->status_fd = -1;
	if (given < 0)
		return 0;
	run->status_fd = fcntl(given, F_DUPFD_CLOEXEC, 3);
	if (run->status_fd >= 0 && given > STDERR_FILENO)
		close(given);
	return run->status_fd >= 0 ? 0 : -1;
}

/* --- after COMMAND ------------------------------------------------------ */

/* How long --min-hold keeps the lock from now on, in ms: only if COMMAND has run, and
 * the lock was not lost. */
static int64_t keep_for(struct run *run)
{
	int64_t left = run->settings->min_hold - run->held;
	struct error why;

	if (left <= 0 || run->cause != 0 || run->gone ||
	    run->supervisor.lost != NULL ||
	    watchdogs_lost(&run->supervisor.watchdogs, &why) != NULL)
		return 0;
	return left;
}

static bool has_succeeded(const struct run *run)
{
	return run->cause == 0 && run->supervisor.child.signal == 0 &&
	       run->supervisor.child.exit == 0 &&
	       run->supervisor.lost == NULL && !run->gone &&
	       !run->supervisor.max_hold.begun;
}

/* A renewal is also refused if somebody has asked us to stop, or if its answers came when the
 * lease was over. Only a look tells whether the lock is gone. */
static void confirm_one(void *context, size_t i)
{
	struct run *run = context;
	struct session *each = session_at(&run->session, i);
	struct lock *lock = &each->lock;
	struct answer *answer = &each->answer;
	struct holders holders;

	answer->result =
		lock_extend(lock, wait_until(deadline_in(each->quorum.timeout)),
			    &answer->error);
	if (answer->result != LOCK_NOT_HELD)
		return;
	holders_init(&holders, &each->quorum, lock->names.key.data);
	if (inspect_is_held(&holders, lock->grant.token, &answer->error) != 0)
		answer->result = LOCK_OK;
	holders_release(&holders);
}

/* All locks are released at once. If one of them turns out to be gone, that is too late for
 * what the others leave behind: a success, or a lock that --min-hold keeps. So if they leave
 * anything, one more round renews all of them first. A lock whose servers do not answer then
 * counts as held. */
static void confirm(struct run *run)
{
	struct session *session = &run->session;
	bool leaves = (run->settings->once_in > 0 && has_succeeded(run)) ||
		      keep_for(run) > 0;

	if (session->count == 1 || !leaves || run->late)
		return;
	threads_each(session->count, confirm_one, run);
	for (size_t i = 0; i < session->count; i++)
		run->gone |=
			session_at(session, i)->answer.result == LOCK_NOT_HELD;
}

/* A round; or, if others must hear of its success, as long as KEY is certainly held, but not
 * for ever: somebody may wait for our end. */
static struct deadline release_end(const struct session *each)
{
	struct deadline round = deadline_in(each->quorum.timeout);

	if (!each->lock.is_to_be_told)
		return round;
	return deadline_later(round, deadline_earlier(each->lock.grant.valid,
						      deadline_in(NOTE_TIME)));
}

static void release_one(void *context, size_t i)
{
	struct run *run = context;
	struct session *each = session_at(&run->session, i);
	struct answer *answer = &each->answer;
	struct error ignored;

	each->lock.is_to_be_told =
		run->settings->once_in > 0 && has_succeeded(run);
	answer->result = lock_release(&each->lock, run->kept, release_end(each),
				      &answer->error);
	if (run->kept > 0 && answer->result == LOCK_NOT_HELD)
		lock_release(&each->lock, 0, deadline_in(each->quorum.timeout),
			     &ignored);
}

/* The servers keep it, and only their replicas may not. */
static bool is_kept(const struct ballot *ballot)
{
	size_t kept = ballot_count(ballot, VOTE_YES);

	for (size_t i = 0; i < ballot->quorum->count; i++)
		kept += ballot_is_unacknowledged(ballot, i);
	return kept >= quorum_size(ballot->quorum);
}

static void tell_released(const struct run *run, const struct lock *lock,
			  const struct answer *answer)
{
	const char *key = lock->names.key.data;
	int64_t passed = clock_ms() - cmd_held_since(&run->session) - run->held;
	int64_t kept = run->kept > passed ? run->kept - passed : 0;
	char text[DURATION_TEXT];

	if (lock == run->supervisor.lost || run->cause == ETIME)
		return; /* that has a line of its own */
	if (answer->result == LOCK_NOT_HELD && run->late)
		log_step("%s: COMMAND had ended before the lease was over",
			 key);
	else if (answer->result == LOCK_NOT_HELD)
		log_error("%s: the lock was gone before COMMAND ended: %s", key,
			  answer->error.text);
	else if (answer->result != LOCK_OK && kept > 0 &&
		 is_kept(&lock->ballot))
		log_error("%s: held for %s more by --min-hold, unless a "
			  "replica takes over: %s",
			  key, duration_format(text, kept), answer->error.text);
	else if (answer->result != LOCK_OK && kept > 0)
		log_error("%s: not held for the last %s of --min-hold: %s", key,
			  duration_format(text, kept), answer->error.text);
	else if (answer->result != LOCK_OK)
		log_error(
			"%s: not released; the lease ends by itself in %s: %s",
			key,
			duration_format(text, deadline_left(lock->grant.valid)),
			answer->error.text);
	else if (lock->kept > 0)
		log_step("%s: kept for %s more", key,
			 duration_format(text, lock->kept));
	else
		log_step("%s: released", key);
}

/* How COMMAND ended. */
static void print_end(struct buffer *text, const struct run *run)
{
	const struct child *child = &run->supervisor.child;

	if (run->cause != 0)
		buffer_print(text, "not started");
	else if (child->signal != 0)
		buffer_print(text, "signal %d", child->signal);
	else
		buffer_print(text, "exit %d", child->exit);
}

/* For KEY's history. */
static void note_run(struct run *run, struct lock *lock)
{
	const struct lock *lost = run->supervisor.lost;
	struct buffer how = {0};

	if (lost != NULL && lock == lost && lost->broken)
		record_print_breaker(&how, "broken", &lost->breaker);
	else if (lost != NULL || run->gone) /* one of several is all */
		buffer_print(&how, "lost");
	else if (run->supervisor.max_hold.begun && run->cause == 0)
		buffer_print(&how, "overdue");
	else {
		buffer_print(&how, "%s", run->late ? "+" : "");
		print_end(&how, run);
	}
	if (run->session.count > 1)
		lock_note_held(lock, run->held);
	lock_note_end(lock, run->taken.waited, how.data);
	buffer_release(&how);
}

static void release(struct run *run)
{
	struct session *session = &run->session;

	run->held = clock_ms() - cmd_held_since(session);
	run->late = supervisor_is_late(&run->supervisor);
	confirm(run);
	for (size_t i = 0; i < session->count; i++)
		note_run(run, session->locks[i]);
	run->kept = keep_for(run);
	threads_each(session->count, release_one, run);
	for (size_t i = 0; i < session->count; i++) {
		const struct session *each = session_at(session, i);

		tell_released(run, &each->lock, &each->answer);
	}
}

/* For --syslog. A loss that COMMAND has lived to see has its line. */
static void note_end(const struct run *run, const struct lock *lock,
		     const struct answer *answer)
{
	const struct supervisor *supervisor = &run->supervisor;
	struct buffer how = {0};
	char text[DURATION_TEXT];

	if (lock == supervisor->lost || !run->settings->syslog)
		return;
	if (answer->result == LOCK_NOT_HELD && !run->late) {
		journal_lost(run->settings, lock, answer->error.text);
		return;
	}
	if (run->cause != 0)
		buffer_print(&how, "COMMAND was ");
	print_end(&how, run);
	if (supervisor->max_hold.begun)
		buffer_print(&how, ", --max-hold is over");
	if (lock->kept > 0 && answer->result == LOCK_OK)
		buffer_print(&how, ", held for %s more (--min-hold)",
			     duration_format(text, lock->kept));
	journal_released(run->settings, lock, how.data,
			 answer->result == LOCK_OK ||
					 answer->result == LOCK_NOT_HELD
				 ? NULL
				 : answer->error.text);
	buffer_release(&how);
}

static void note_ends(struct run *run)
{
	for (size_t i = 0; i < run->session.count; i++) {
		const struct session *each = session_at(&run->session, i);

		note_end(run, &each->lock, &each->answer);
	}
}

/* Whether a directory of PATH has it, as far as we may look. */
static bool is_in_path(const char *name)
{
	const char *at = getenv("PATH");
	struct buffer path = {0};
	bool found = false;

	while (at != NULL && !found) {
		size_t length = strcspn(at, ":");

		path.length = 0;
		buffer_print(&path, "%.*s/%s", length > 0 ? (int)length : 1,
			     length > 0 ? at : ".", name);
		found = access(path.data, F_OK) == 0;
		at = at[length] == ':' ? at + length + 1 : NULL;
	}
	buffer_release(&path);
	return found;
}

/* Advice about what may not be executed, or execvp(3) could not look for everywhere. */
static const char *advise_denied(const char *name)
{
	bool seen = strchr(name, '/') != NULL ? access(name, F_OK) == 0
					      : is_in_path(name);

	if (seen)
		return "is it a program, and executable (chmod +x)?";
	return strchr(name, '/') != NULL
		       ? "a directory in its path may not be searched"
		       : "it was not found in PATH, and a directory there may "
			 "not be searched";
}

/* Advice about a COMMAND that cannot be started; "" if there is none. */
static const char *advise_start(const char *name, int cause)
{
	bool spaced = strpbrk(name, " \t;|&<>$") != NULL;

	if (cause == E2BIG)
		return "REDLOCK_HELD and REDLOCK_FENCES have each KEY, so "
		       "there is less room for the rest";
	if (cause == EACCES)
		return advise_denied(name);
	if (cause != ENOENT)
		return "";
	if (strchr(name, '/') != NULL && access(name, F_OK) == 0)
		return "it exists, but the program in its first line (#!) does not";
	if (spaced || strchr(name, '=') != NULL)
		return "a command of the shell needs -c";
	return strchr(name, '/') == NULL ? "it is not in PATH" : "";
}

/* COMMAND could not be started. The exit status. */
static int complain_start(const struct run *run)
{
	const char *advice;

	if (run->cause == ETIME) {
		log_error("%s: the lease was over before COMMAND could be "
			  "started",
			  run->settings->key);
		return EXIT_UNREACHED; /* 76 would say that it has run */
	}
	advice = advise_start(run->command[0], run->cause);
	log_error("%s: cannot run '%s': %s%s%s", run->settings->key,
		  run->command[0], strerror(run->cause),
		  *advice != '\0' ? ": " : "", advice);
	switch (run->cause) {
	case ENOENT:
		return EXIT_NOT_FOUND;
	case EAGAIN:
	case ENOMEM:
	case EMFILE:
	case ENFILE:
		return EXIT_SYSTEM;
	default:
		return EXIT_NOT_EXECUTABLE;
	}
}

static void print_status(struct buffer *line, const struct run *run)
{
	const struct ending ending = {
		.outcome = run->outcome,
		.exit = run->supervisor.child.exit,
		.signal = run->supervisor.child.signal,
		.waited = run->taken.waited,
		.held = run->held,
		.renewals = watchdogs_renewals(&run->supervisor.watchdogs),
		.granted = run->taken.held,
	};

	json_ending(line, &run->session, &ending);
}

/* told, dies: a signal has told us to end, and we end by it. */
static void write_line(const struct settings *settings, int fd,
		       const struct buffer *line, bool told, bool dies)
{
	if (output_write_until_told(fd, line->data, line->length, told) < 0 &&
	    !(dies && errno == EINTR))
		log_error("%s: --status-fd: %s",
			  settings->key != NULL ? settings->key : "run",
			  errno == EINTR ? "nobody has read it"
					 : strerror(errno));
}

static void write_status(const struct run *run)
{
	bool dies = run->taken.signal != 0;
	struct buffer line = {0};

	if (run->status_fd < 0)
		return;
	print_status(&line, run);
	write_line(run->settings, run->status_fd, &line,
		   dies || run->supervisor.ends, dies);
	buffer_release(&line);
}

/* Not inlined: of a smaller stack fewer pages are touched. */
__attribute__((noinline)) void run_print_unasked(
	struct buffer *line, const struct settings *settings,
	const char *outcome)
{
	const char *key = settings->key;
	struct run run = {
		.session = {.count = settings_key_count(settings)},
		.outcome = outcome,
		.supervisor = {.child = {.exit = -1}},
	};

	if (key != NULL)
		run.session.lock.names.key =
			(struct argument){key, strlen(key)};
	print_status(line, &run);
}

void run_tell_failure(const struct settings *settings, int status)
{
	struct buffer line = {0};

	if (settings->status_fd < 0)
		return;
	(void)signals_open(); /* or one more line says that a signal came */
	run_print_unasked(&line, settings, cmd_outcome(status));
	write_line(settings, settings->status_fd, &line, false, false);
	buffer_release(&line);
}

/* COMMAND from its start, until it has exited; since: when its time began. */
static void attend(struct run *run, int64_t since)
{
	struct supervisor *supervisor = &run->supervisor;

	run->outcome = "not-started";
	supervisor->max_hold_at =
		run->settings->max_hold > 0
			? deadline_at(since + run->settings->max_hold)
			: deadline_never();
	run->cause =
		supervisor_start(supervisor, run->command, run->label.data);
	if (run->cause == 0)
		supervisor_wait(supervisor);
}

/* The exit status. If it is that of a COMMAND that a signal has killed, that signal is
 * in *signal. done: the outcome if nothing went wrong. */
static int conclude(struct run *run, const char *done, int *signal)
{
	const struct supervisor *supervisor = &run->supervisor;

	if (run->cause != 0)
		return complain_start(run);
	run->outcome = supervisor->lost != NULL ? "lost" : done;
	if (supervisor->lost != NULL && run->settings->on_lost != ON_LOST_WARN)
		return EXIT_LOST;
	if (supervisor->max_hold.begun) {
		run->outcome = "overdue";
		return EXIT_OVERDUE;
	}
	*signal = supervisor->child.signal;
	return supervisor->child.exit;
}

static int run_command(struct run *run, int *signal)
{
	struct supervisor *supervisor = &run->supervisor;
	bool spared;

	for (size_t i = 0; i < run->session.count; i++)
		journal_acquired(run->settings, run->session.locks[i],
				 run->taken.waited);
	attend(run, cmd_held_since(&run->session));
	spared = supervisor_stop(supervisor);
	if (spared)
		release(run);
	supervisor_end(supervisor);
	if (!spared)
		release(run);
	note_ends(run);
	return conclude(run, "done", signal);
}

/* Without the lock: nothing can be lost, and there is nothing to release. */
static int run_unlocked(struct run *run, int *signal)
{
	struct supervisor *supervisor = &run->supervisor;

	supervisor_dismiss(supervisor); /* it was made for a lease */
	supervisor->count = 0;
	token_make(run->session.lock.grant.token);
	if (title_is_set())
		title_set("%s: without the lock", run->settings->key);
	attend(run, clock_ms());
	supervisor_stop(supervisor);
	supervisor_end(supervisor);
	return conclude(run, "unlocked", signal);
}

static int prepare(void *supervisor)
{
	return supervisor_prepare(supervisor);
}

/* 0, or the exit status. A function of its own: of a smaller stack fewer pages are
 * touched. */
__attribute__((noinline)) static int check_ttl(const struct settings *settings)
{
	struct error error;

	if (config_check_ttl(settings, &error) == 0)
		return 0;
	log_error("%s", error.text);
	return error.code;
}

int cmd_run(struct settings *settings)
{
	struct run run = {.settings = settings};
	int status, signal = 0;

	status = check_ttl(settings);
	if (status == 0)
		status = cmd_open(&run.session, settings);
	if (status == 0)
		status = cmd_heed_signals(&run.session);
	if (status != 0) {
		run_tell_failure(settings, status);
		return status;
	}
	plan_command(&run);
	if (keep_status_fd(&run) < 0) {
		log_error("--status-fd: %s", strerror(errno));
		return EXIT_SYSTEM;
	}
	run.supervisor = (struct supervisor){
		.settings = settings,
		.locks = run.session.locks,
		.count = run.session.count,
		.signals = run.session.signals,
		.child = {.exit = -1},
	};
	for (size_t i = 0; i < run.session.count; i++)
		run.session.locks[i]->wish.validity_needed =
			config_validity_needed(settings);
	/* whoever does not wait may have no use for a guard */
	if (!settings->nonblock)
		run.session.lock.before_wait =
			(struct before_wait){prepare, &run.supervisor};
	cmd_hide_logins(&run.session, run.label.data);
	run.taken = cmd_take(&run.session, getpid(), run.label.data);
	run.outcome = run.taken.outcome;
	status = run.taken.status;
	signal = run.taken.signal;
	if (run.taken.held)
		status = run_command(&run, &signal);
	else if (run.taken.unlocked)
		status = run_unlocked(&run, &signal);
	else
		supervisor_dismiss(&run.supervisor);
	write_status(&run);
	watchdogs_release(&run.supervisor.watchdogs);
	cmd_close(&run.session);
	buffer_release(&run.label);
	if (signal != 0)
		signals_die(signal);
	return status;
}
