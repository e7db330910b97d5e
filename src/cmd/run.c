#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/child.h"
#include "cmd/session.h"
#include "cmd/json.h"
#include "settings/command.h"
#include "base/duration.h"
#include "run/job.h"
#include "run/max_hold.h"
#include "run/process.h"
#include "base/signals.h"
#include "run/tree.h"
#include "run/watchdog.h"

/* A run from the command line to the exit status. */
struct run {
	struct session session;
	struct settings *settings;
	char **command;
	struct buffer label;
	int signals; /* descriptor */
	int status_fd;
	struct taken taken;
	struct guard guard;
	struct job job;
	struct child child;
	struct watchdog watchdog;
	struct overdue overdue;
	int cause;           /* errno where COMMAND could not be started */
	bool lost;           /* while COMMAND ran */
	bool named;          /* what could not be stopped */
	int64_t held;        /* ms */
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
	shell[0] = config_keep(run->settings,
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

/* --- while COMMAND runs ------------------------------------------------- */

static int lost_signal(const struct settings *settings)
{
	return settings->on_lost == ON_LOST_WARN     ? 0
	       : settings->on_lost == ON_LOST_SIGNAL ? settings->lost_signal
						     : SIGTERM;
}

static struct deadline end_of_hold(const struct run *run)
{
	int64_t most = run->settings->max_hold;

	return most > 0 ? deadline_at(run->session.lock.acquired + most)
			: deadline_never();
}

/* Also for one who waits, while it does: the lock is then handed on sooner. Where
 * that fails it is tried again, and told of, with the lock. */
static int make_guard(void *context)
{
	struct run *run = context;

	return guard_start(&run->guard, lost_signal(run->settings),
			   run->settings->on_lost == ON_LOST_KILL,
			   run->settings->kill_after);
}

/* Guard first, then COMMAND; the watchdog when it is due. 0, or an errno. */
static int start(struct run *run)
{
	struct lock *lock = &run->session.lock;
	int64_t kill_after = run->settings->kill_after;
	struct guard_times times = watchdog_plan(lock, kill_after);
	int cause;

	if (signals_open_all() < 0 || child_set_environment(lock) < 0)
		return errno;
	if (!guard_is_there(&run->guard) && make_guard(run) < 0)
		return errno;
	if (guard_entrust(&run->guard, lock->key.data, lock->token, times) <
		    0 ||
	    job_start(&run->job) < 0)
		return errno;
	cause = child_start(&run->child, run->command, &run->job, &run->guard,
			    times.term);
	if (cause != 0)
		return cause;
	overdue_start(&run->overdue, &run->child, run->guard.mark,
		      end_of_hold(run), kill_after);
	log_step("%s: started '%s', pid %ld", run->settings->key,
		 run->label.data, (long)run->child.pid);
	watchdog_init(&run->watchdog, lock, &run->guard, kill_after);
	return 0;
}

static void note_lost(struct run *run)
{
	struct error why;

	if (run->lost || !watchdog_lost(&run->watchdog, &why))
		return;
	run->lost = true;
	if (run->settings->on_lost == ON_LOST_KILL)
		overdue_cancel(&run->overdue); /* the guard stops COMMAND */
	log_error("%s: lock lost: %s%s", run->settings->key, why.text,
		  run->settings->on_lost == ON_LOST_WARN
			  ? ": COMMAND runs on without it"
			  : ": COMMAND is stopped");
}

/* When those that are still there are told of, once: they ought to be dead. */
static struct deadline name_at(struct run *run)
{
	if (run->named)
		return deadline_never();
	if (run->overdue.begun)
		return overdue_done(&run->overdue);
	return run->lost && run->settings->on_lost == ON_LOST_KILL
		       ? guard_done(&run->guard)
		       : deadline_never();
}

/* When something is to be done, even if no signal comes. */
static struct deadline next_due(struct run *run)
{
	return deadline_earlier(name_at(run),
				deadline_earlier(overdue_next(&run->overdue),
						 watchdog_due(&run->watchdog)));
}

/* Hands on a signal that has come, if COMMAND has not got it as well. One at a time,
 * so that who sends them all the time keeps nothing else waiting. Whether the whole
 * job was told to stop. */
static bool take_signal(struct run *run)
{
	pid_t sender;
	bool shared;
	int number;

	do
		number = signals_next_from(&sender);
	while (number == SIGCHLD);
	if (number == 0)
		return false;
	shared = job_has_got(&run->job, number, sender, next_due(run)) &&
		 child_shares_group(&run->child);
	if (!shared)
		child_signal(&run->child, number);
	return shared && number == SIGTSTP;
}

/* The shell waits for us to stop, too, and will bring both back. Who stops COMMAND
 * in order to kill it is not the user. Nor is it, mostly, who stops nothing but
 * COMMAND (job.h). */
static void follow_stop(struct run *run, bool told)
{
	int number;

	if (!job_has_terminal(&run->job) || run->overdue.begun ||
	    guard_kills(&run->guard))
		return;
	number = child_stopped(&run->child);
	if (number == 0 || (number == SIGSTOP && !told &&
			    !process_sends(run->child.pid, SIGSTOP)))
		return;
	child_note_stop(&run->child);
	job_stop(&run->job, told ? SIGTSTP : number, run->child.pid,
		 guard_begins(&run->guard));
}

static void stop_overdue(struct run *run)
{
	char text[DURATION_TEXT];

	if (overdue_act(&run->overdue))
		log_error("%s: stopped after --max-hold %s", run->settings->key,
			  duration_format(text, run->settings->max_hold));
}

static void name_left(struct run *run)
{
	struct tree tree = tree_of(run->child.pid, run->child.group, getsid(0),
				   clock_ms(), run->guard.mark);
	struct buffer text = {0};

	run->named = true;
	if (tree_left(&tree, &text))
		log_error("%s: could not be stopped%s: %s", run->settings->key,
			  run->overdue.begun ? ""
					     : ", and runs on without the lock",
			  text.data);
	tree_release(&tree);
	buffer_release(&text);
}

/* All children but COMMAND, which may have ended. */
static void look_after_others(struct run *run)
{
	pid_t ours[3];

	guard_check(&run->guard, run->child.pid, run->child.group);
	job_check(&run->job);
	ours[0] = run->child.pid;
	ours[1] = run->guard.pid;
	ours[2] = run->job.pid;
	child_reap_orphans(ours, 3);
}

static void wait_for_command(struct run *run)
{
	for (;;) {
		struct pollfd polled[2] = {
			{.fd = run->signals, .events = POLLIN},
			{.fd = -1, .events = POLLIN},
		};

		watchdog_act(&run->watchdog);
		if (!run->overdue.begun)
			note_lost(run);
		if (!run->lost && !run->overdue.begun)
			polled[1].fd = watchdog_fd(&run->watchdog);
		deadline_poll(polled, 2, next_due(run));
		if (!run->overdue.begun)
			note_lost(run);
		follow_stop(run, take_signal(run));
		stop_overdue(run);
		if (child_has_exited(&run->child) &&
		    overdue_is_over(&run->overdue))
			return;
		if (deadline_passed(name_at(run)))
			name_left(run);
		look_after_others(run);
	}
}

/* --- after COMMAND ------------------------------------------------------ */

/* What --min-hold asks for beyond now, in ms: of a COMMAND that has run, and of
 * a lock that was not lost. */
static int64_t linger_for(struct run *run)
{
	int64_t left = run->settings->min_hold - run->held;
	struct error why;

	if (left <= 0 || run->cause != 0 || run->lost ||
	    watchdog_lost(&run->watchdog, &why))
		return 0;
	return left;
}

static void release(struct run *run)
{
	struct lock *lock = &run->session.lock;
	int64_t timeout = run->session.quorum.timeout;
	int64_t linger;
	struct error error, ignored;
	char text[DURATION_TEXT];
	enum lock_result result;

	run->held = clock_ms() - lock->acquired;
	linger = linger_for(run);
	run->session.quorum.interrupt = -1; /* COMMAND is over: no way back */
	result = lock_release(lock, linger, deadline_in(timeout), &error);
	if (linger > 0 && result == LOCK_NOT_HELD)
		lock_release(lock, 0, deadline_in(timeout), &ignored);
	if (run->lost || run->cause == ETIME)
		return; /* that has a line of its own */
	if (result == LOCK_NOT_HELD)
		log_error("%s: the lock was gone before COMMAND ended: %s",
			  run->settings->key, error.text);
	else if (result != LOCK_OK && linger > 0)
		log_error("%s: not kept for %s more: %s", run->settings->key,
			  duration_format(text, linger), error.text);
	else if (result != LOCK_OK)
		log_error("%s: not released, it ends by itself in %s: %s",
			  run->settings->key,
			  duration_format(text, deadline_left(lock->valid)),
			  error.text);
	else if (linger > 0)
		log_step("%s: kept for %s more", run->settings->key,
			 duration_format(text, linger));
	else
		log_step("%s: released", run->settings->key);
}

/* Whether the guard has stopped COMMAND, or what it has left: waits until it is
 * done with that. */
static void part_with_guard(struct run *run)
{
	bool stopped = guard_wait(&run->guard);

	/* a loss that was noticed when COMMAND had ended by itself has not
	 * stopped it: the release will tell of it */
	if (!run->overdue.begun &&
	    (stopped || run->settings->on_lost == ON_LOST_WARN))
		note_lost(run);
	if (stopped && !run->lost && !run->overdue.begun &&
	    run->child.pid > 0) {
		run->lost = true;
		log_error("%s: lock lost: not renewed in time: COMMAND was "
			  "stopped",
			  run->settings->key);
	}
	if (stopped && deadline_passed(name_at(run)))
		name_left(run);
}

/*
 * COMMAND has exited, or was never started. It keeps its pid until the guard is
 * gone, which may still be stopping what COMMAND has left; nothing is released
 * before all of that is over. A guard that has nothing to do ends meanwhile.
 */
static void finish(struct run *run)
{
	bool spared = guard_goodbye(&run->guard);

	if (run->child.pid > 0)
		watchdog_stop(&run->watchdog);
	if (spared)
		release(run);
	part_with_guard(run);
	overdue_release(&run->overdue);
	job_end(&run->job);
	if (run->child.pid > 0)
		child_reap(&run->child);
	if (!spared)
		release(run);
}

/* What is to be done about a COMMAND that is not there; "" if nobody knows. */
static const char *advise_start(const char *name, int cause)
{
	bool spaced = strpbrk(name, " \t;|&<>$") != NULL;

	if (cause == EACCES)
		return "is it a program, and executable (chmod +x)?";
	if (cause != ENOENT)
		return "";
	if (strchr(name, '/') != NULL && access(name, F_OK) == 0)
		return "it is there, but not the program that its first "
		       "line (#!) names";
	if (spaced || strchr(name, '=') != NULL)
		return "a command of the shell goes with -c";
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

static void write_status(const struct run *run)
{
	const struct ending ending = {
		.outcome = run->outcome,
		.exit = run->child.exit,
		.signal = run->child.signal,
		.waited = run->taken.waited,
		.held = run->held,
		.renewals = run->watchdog.renewals,
		.granted = run->taken.held,
	};
	struct buffer line = {0};

	if (run->status_fd < 0)
		return;
	json_ending(&line, &run->session.lock, &ending);
	if (output_write(run->status_fd, line.data, line.length) < 0)
		log_error("%s: --status-fd: %s", run->settings->key,
			  strerror(errno));
	buffer_release(&line);
}

/* With the lock held: COMMAND from start to end. The exit status; where it
 * is COMMAND's and a signal killed it, that signal is in *signal. */
static int hold(struct run *run, int *signal)
{
	run->outcome = "not-started";
	run->cause = start(run);
	if (run->cause == 0)
		wait_for_command(run);
	finish(run);
	if (run->cause != 0)
		return complain_start(run);
	run->outcome = run->lost ? "lost" : "done";
	if (run->lost && run->settings->on_lost != ON_LOST_WARN)
		return EXIT_LOST;
	if (run->overdue.begun) {
		run->outcome = "overdue";
		return EXIT_OVERDUE;
	}
	*signal = run->child.signal;
	return run->child.exit;
}

int cmd_run(struct settings *settings)
{
	struct run run = {.settings = settings, .child = {.exit = -1}};
	struct error error;
	int status, signal = 0;

	if (config_check_room(settings, &error) < 0) {
		log_error("%s", error.text);
		return error.code;
	}
	status = cmd_open(&run.session, settings);
	if (status != 0)
		return status;
	plan_command(&run);
	status = cmd_heed_signals(&run.session);
	if (status != 0)
		return status;
	if (keep_status_fd(&run) < 0) {
		log_error("--status-fd: %s", strerror(errno));
		return EXIT_SYSTEM;
	}
	run.signals = run.session.quorum.interrupt;
	run.session.lock.room = config_room(settings);
	run.session.lock.meanwhile = (struct meanwhile){make_guard, &run};
	cmd_hide_logins(&run.session, run.label.data);
	run.taken = cmd_take(&run.session, getpid(), run.label.data);
	run.outcome = run.taken.outcome;
	status = run.taken.status;
	signal = run.taken.signal;
	if (run.taken.held)
		status = hold(&run, &signal);
	else
		guard_dismiss(&run.guard);
	write_status(&run);
	cmd_close(&run.session);
	buffer_release(&run.label);
	if (signal != 0)
		signals_die(signal);
	return status;
}
