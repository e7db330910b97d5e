#include "cmd/keep.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/log.h"
#include "base/output.h"
#include "base/threads.h"
#include "cmd/journal.h"
#include "net/system_log.h"
#include "settings/config.h"

/* A file is shared with PID, offset and all: what PID writes after us would otherwise
 * go over our line. What else it may be is opened anew, as a write must not wait. */
static int open_stderr(const struct keeper *keeper)
{
	char path[40];
	struct stat status;
	int fd = process_descriptor(keeper->pidfd, STDERR_FILENO);

	if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
		return fd;
	if (fd >= 0)
		close(fd);
	snprintf(path, sizeof(path), "/proc/%ld/fd/2",
		 (long)keeper->process.pid);
	return open(path,
		    O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* False if fd does not take the whole line at once. */
static bool write_line(int fd, const struct buffer *line)
{
	struct buffer text = {0};
	ssize_t written;
	bool all;

	buffer_print(&text, "redlock: ");
	output_visible(&text, line->data, line->length, log_utf8());
	buffer_append(&text, "\n", 1);
	written = write(fd, text.data, text.length);
	all = written == (ssize_t)text.length;
	buffer_release(&text);
	return all;
}

/* A keeper has no standard error. So it writes what has happened to that of PID, or else
 * to the system's log. It waits for neither, as it may have to stop PID. */
static void say(const struct keeper *keeper, const struct buffer *line)
{
	int fd = open_stderr(keeper);

	if (fd < 0 || !write_line(fd, line))
		system_log_send(LOG_ERR, line);
	if (fd >= 0)
		close(fd);
}

static void tell(const struct keeper *keeper, enum keeper_result kept,
		 const struct error *why)
{
	static const char *const next[] = {
		[ON_LOST_KILL] = "is stopped",
		[ON_LOST_WARN] = "runs on without it",
		[ON_LOST_SIGNAL] = "is sent the signal of --on-lost",
	};
	const struct session *session = keeper->context;
	const struct settings *settings = session->settings;
	const char *lost = keeper->lost != NULL ? keeper->lost->names.key.data
						: settings->key;
	struct buffer line = {0};
	char text[DURATION_TEXT];

	if (kept == KEPT_OVERDUE)
		buffer_print(&line,
			     "%s: pid %ld is stopped after --max-hold %s",
			     settings->key, (long)settings->pid,
			     duration_format(text, settings->max_hold));
	else
		buffer_print(
			&line, "%s: lock lost: %s: pid %ld %s", lost, why->text,
			(long)settings->pid,
			next[keeper->told ? ON_LOST_WARN : settings->on_lost]);
	say(keeper, &line);
	buffer_release(&line);
	if (kept == KEPT_LOST && keeper->lost != NULL)
		journal_lost(settings, keeper->lost, why->text);
}

/* For KEY's history. */
static void note_run(const struct keeper *keeper, const struct session *session,
		     size_t index, enum keeper_result kept)
{
	struct lock *lock = session->locks[index];
	bool lost = keeper->is_lost[index];
	struct buffer how = {0};

	if (lost && lock->broken)
		record_print_breaker(&how, "broken", &lock->breaker);
	else
		buffer_print(&how, "%s",
			     lost                   ? "lost"
			     : kept == KEPT_OVERDUE ? "overdue"
						    : "released");
	lock_note_end(lock, session->waited, how.data);
	buffer_release(&how);
}

static void part(const struct keeper *keeper, size_t index)
{
	note_run(keeper, keeper->context, index, KEPT_LOST);
	cmd_release_one(keeper->context, index);
}

int keep_prepare(struct keeper *keeper, struct session *session)
{
	const struct settings *settings = session->settings;
	struct error error;

	*keeper = (struct keeper){
		.signal = settings->on_lost == ON_LOST_WARN ? 0
			  : settings->on_lost == ON_LOST_SIGNAL
				  ? settings->lost_signal
				  : SIGTERM,
		.kill = settings->on_lost == ON_LOST_KILL,
		.group = settings->kill_group,
		.kill_after = settings->kill_after,
		.max_hold = settings->max_hold,
		.signals = session->signals,
		.tell = tell,
		.part = part,
		.context = session,
	};
	if (config_check_ttl(settings, &error) == 0 &&
	    keeper_follow(keeper, settings->pid, &error) == 0) {
		session->interrupt = keeper_interrupt(keeper, &error);
		if (session->interrupt >= 0)
			return 0;
	}
	log_error("%s", error.text);
	return error.code;
}

int keep_check(const struct keeper *keeper, const struct session *session)
{
	struct error error;

	if (!keeper_is_over(keeper))
		return 0;
	keeper_explain_end(keeper, &error);
	cmd_complain(&session->lock, &error);
	return error.code;
}

static void release_one(void *context, size_t index)
{
	const struct keeper *keeper = context;

	if (!keeper->is_parted[index])
		cmd_release_one(keeper->context, index);
}

static void give_back(struct keeper *keeper, struct session *session,
		      enum keeper_result kept)
{
	char text[DURATION_TEXT];

	for (size_t i = 0; i < session->count; i++) {
		session->locks[i]->by_hand = kept == KEPT_CALLED_BACK;
		if (!keeper->is_parted[i])
			note_run(keeper, session, i, kept);
	}
	threads_each(session->count, release_one, keeper);
	for (size_t i = 0; i < session->count; i++) {
		const struct lock *lock = session->locks[i];
		const struct answer *answer = &session_at(session, i)->answer;
		struct buffer line = {0};

		if (answer->result != LOCK_ERROR || kept == KEPT_LOST ||
		    kept == KEPT_CALLED_BACK || keeper->is_lost[i])
			continue;
		buffer_print(
			&line,
			"%s: not released; the lease ends by itself in %s: %s",
			lock->names.key.data,
			duration_format(text, deadline_left(lock->grant.valid)),
			answer->error.text);
		say(keeper, &line);
		buffer_release(&line);
	}
}

static const char *name_end(enum keeper_result kept)
{
	static const char *const names[] = {
		[KEPT_TO_THE_END] = "the process has ended",
		[KEPT_CALLED_BACK] = "by release",
		[KEPT_GIVEN_BACK] = "by release",
		[KEPT_UNTIL_TOLD] = "the keeper was told to end",
		[KEPT_OVERDUE] = "--max-hold is over",
		[KEPT_LOST] = "another lock is lost",
	};

	return names[kept];
}

/* For --syslog. A loss has its line. */
static void note_ends(const struct keeper *keeper, struct session *session,
		      enum keeper_result kept)
{
	for (size_t i = 0; i < session->count; i++) {
		const struct lock *lock = session->locks[i];
		const struct answer *answer = &session_at(session, i)->answer;
		enum lock_result released =
			kept == KEPT_GIVEN_BACK ? LOCK_OK : answer->result;

		if (keeper->is_lost[i] ||
		    (keeper->left && released == LOCK_NOT_HELD))
			continue;
		if (released == LOCK_NOT_HELD)
			journal_lost(session->settings, lock,
				     answer->error.text);
		else
			journal_released(
				session->settings, lock, name_end(kept),
				released == LOCK_ERROR ? answer->error.text
						       : NULL);
	}
}

static void keep(struct keeper *keeper, struct session *session)
{
	struct parting partings[LOCKS_MOST] = {0};
	struct error why;
	enum keeper_result kept =
		keeper_keep(keeper, session->locks, session->count, &why);

	/* what was left to a release is given back as well: that may fail, or act at other
	 * servers */
	if (kept != KEPT_GIVEN_BACK)
		give_back(keeper, session, kept);
	note_ends(keeper, session, kept);
	if (kept == KEPT_CALLED_BACK)
		cmd_each(session, cmd_look_closer);
	for (size_t i = 0; i < session->count; i++) {
		const struct answer *answer = &session_at(session, i)->answer;

		partings[i] = (struct parting){
			answer->result,
			lock_release_is_unsure(session->locks[i]),
			answer->error,
		};
	}
	note_forget(&keeper->notes, session->locks, session->count,
		    kept == KEPT_GIVEN_BACK || keeper->left ? NULL : partings);
}

int keep_start(struct keeper *keeper, struct session *session, pid_t *child)
{
	struct error error;
	int status = keep_check(keeper, session);

	if (status != 0)
		return status;
	*child = keeper_fork(keeper, session->locks, session->count, &error);
	if (*child == 0)
		keep(keeper, session);
	if (*child >= 0)
		return 0;
	cmd_complain(&session->lock, &error);
	return error.code;
}
