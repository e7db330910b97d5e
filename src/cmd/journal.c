#include "cmd/journal.h"

#include <inttypes.h>
#include <syslog.h>

#include "base/duration.h"
#include "net/system_log.h"

static void say(int severity, struct buffer *line)
{
	system_log_send(severity, line);
	buffer_release(line);
}

void journal_acquired(const struct settings *settings, const struct lock *lock,
		      int64_t waited)
{
	struct buffer line = {0};
	char text[DURATION_TEXT];

	if (!settings->syslog)
		return;
	buffer_print(&line, "%s: acquired after %s, fence %" PRId64,
		     lock->names.key.data, duration_format(text, waited),
		     lock->grant.fence);
	say(LOG_INFO, &line);
}

void journal_busy(const struct settings *settings, const struct lock *lock,
		  const struct busy *busy)
{
	struct buffer line = {0};

	if (!settings->syslog)
		return;
	buffer_print(&line, "%s: %s: ", lock->names.key.data,
		     busy->has_run ? "not run" : "busy");
	if (busy->has_run)
		run_print_success(&line, &lock->success, lock->wish.once_in);
	else
		record_print_busy(&line, busy);
	say(LOG_INFO, &line);
}

void journal_unlocked(const struct settings *settings, const struct lock *lock,
		      const char *why)
{
	struct buffer line = {0};

	if (!settings->syslog)
		return;
	buffer_print(&line, "%s: COMMAND runs without the lock: %s",
		     lock->names.key.data, why);
	say(LOG_WARNING, &line);
}

static void say_end(const struct settings *settings, const struct lock *lock,
		    int severity, const char *what, const char *how)
{
	struct buffer line = {0};
	char text[DURATION_TEXT];

	if (!settings->syslog)
		return;
	buffer_print(&line, "%s: %s after %s, fence %" PRId64 ": %s",
		     lock->names.key.data, what,
		     duration_format(text, lock_held_for(lock)),
		     lock->grant.fence, how);
	say(severity, &line);
}

void journal_released(const struct settings *settings, const struct lock *lock,
		      const char *how, const char *failure)
{
	struct buffer text = {0};

	if (failure == NULL) {
		say_end(settings, lock, LOG_INFO, "released", how);
		return;
	}
	buffer_print(&text, "%s: %s", how, failure);
	say_end(settings, lock, LOG_WARNING, "not released", text.data);
	buffer_release(&text);
}

void journal_lost(const struct settings *settings, const struct lock *lock,
		  const char *why)
{
	say_end(settings, lock, LOG_WARNING, "lost", why);
}

void journal_broken(const struct settings *settings, const char *what,
		    const struct breaker *breaker, int64_t fence,
		    const struct busy *busy)
{
	struct buffer line = {0};

	if (!settings->syslog)
		return;
	buffer_print(&line, "%s: ", settings->key);
	record_print_breaker(&line, what, breaker);
	buffer_print(&line, ", fence %" PRId64, fence);
	if (busy != NULL) {
		buffer_print(&line, ": ");
		record_print_busy(&line, busy);
	}
	say(LOG_WARNING, &line);
}

void journal_fate(const struct settings *settings, const char *fate,
		  int64_t fence)
{
	struct buffer line = {0};

	if (!settings->syslog)
		return;
	buffer_print(&line, "%s: %s, fence %" PRId64, settings->key, fate,
		     fence);
	say(LOG_WARNING, &line);
}
