#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cmd/journal.h"
#include "cmd/print.h"
#include "cmd/session.h"
#include "settings/command.h"
#include "base/output.h"
#include "base/duration.h"
#include "base/lease.h"
#include "base/signals.h"
#include "show/history.h"
#include "show/stopping.h"
#include "show/inspect.h"

#define TELL_AFTER 1000 /* ms of waiting for the holders to stop */

/* --- asking the user -------------------------------------------------------- */

/* The holder with a quorum, or else the first. */
static const struct seen *main_holder(const struct holders *holders)
{
	for (size_t n = 0; n < holders->holding.count; n++)
		if (!holders_is_partial(holders, &holders->holding.seen[n]))
			return &holders->holding.seen[n];
	return holders->holding.count > 0 ? &holders->holding.seen[0] : NULL;
}

/* Nobody who could be asked, or evicted. */
static bool is_data(const struct busy *who)
{
	return !who->has_description && who->left < 0;
}

/* Whether KEY is only to be deleted. */
static bool deletes_data(const struct holders *holders,
			 const struct settings *settings)
{
	const struct seen *holder = main_holder(holders);

	return settings->foreign && (holder == NULL || is_data(&holder->who));
}

static bool read_yes(void)
{
	char text[16] = "", byte;
	size_t length = 0;

	while (read(STDIN_FILENO, &byte, 1) == 1 && byte != '\n')
		if (length < sizeof(text) - 1)
			text[length++] = byte;
	return strcasecmp(text, "y") == 0 || strcasecmp(text, "yes") == 0;
}

static bool prompt(const struct holders *holders,
		   const struct settings *settings)
{
	const struct seen *holder = main_holder(holders);
	struct buffer line = {0}, text = {0};
	struct busy who =
		holder != NULL ? holder->who : (struct busy){.held = -1};

	who.has_reply = false; /* what is left of the lease does not matter */
	buffer_print(&line, "break %s%s, ", holders->names.key.data,
		     settings->now ? " now" : "");
	if (deletes_data(holders, settings))
		buffer_print(&line, "a %s, which is not a lock",
			     holders->type[holders_speaker(holders)]);
	else
		record_print_busy(&line, &who);
	if (holders_count(holders) > 1)
		buffer_print(&line, ", and %" PRId64 " more",
			     holders_count(holders) - 1);
	cmd_add_line(&text, &line, STDERR_FILENO, "? [y/N] ");
	(void)output_write(STDERR_FILENO, text.data, text.length);
	buffer_release(&line);
	buffer_release(&text);
	return read_yes();
}

/* 0 if KEY is held, or an exit status. */
static int look(struct holders *holders, const struct settings *settings)
{
	struct error error;
	bool misused;

	if (inspect_lock(holders, &error) < 0) {
		log_error("%s: %s", holders->names.key.data, error.text);
		return error.code;
	}
	misused = holders_servers(holders, STANDING_MISUSED) > 0;
	if (holders_servers(holders, STANDING_HELD) > 0 ||
	    (misused && (settings->foreign || settings->yes)))
		return 0;
	log_error("%s: %s", holders->names.key.data,
		  misused ? "it is not a lock: it stays as it is; "
			    "--foreign deletes it"
			  : "not held");
	return misused ? EXIT_MISUSED : EXIT_NOT_HELD;
}

/* --- asking the holders to stop -------------------------------------------- */

static void print_holder(struct buffer *text, const struct busy *who)
{
	if (who->has_description)
		record_print_holder(text, &who->holder);
	else
		buffer_print(text, "another program");
}

/* The first that still holds KEY, and how many more do. Returns the former. */
static const struct asked *print_holding(struct buffer *text,
					 const struct stopping *stopping)
{
	const struct asked *first = NULL;
	size_t count = 0;

	for (size_t n = stopping->count; n-- > 0;) {
		if (stopping->asked[n].fate != FATE_HOLDS)
			continue;
		first = &stopping->asked[n];
		count++;
	}
	if (first == NULL)
		first = &stopping->asked[0];
	print_holder(text, &first->seen.who);
	if (count > 1)
		buffer_print(text, " and %zu more", count - 1);
	return first;
}

/* What the command of a holder does that has lost KEY and was not told. */
static void print_running_on(struct buffer *line, const struct busy *who)
{
	const struct holder *holder = &who->holder;
	bool ended = holder->over && !who->is_hash;
	char text[DURATION_TEXT];

	if (holder->on_break == BREAK_WARNS)
		buffer_print(line, ": its command runs on (--on-lost warn)");
	else if (holder->renews && holder->ttl > 0 && !ended)
		buffer_print(line, ": it may run on for up to %s",
			     duration_format(text, lease_renewal(holder->ttl)));
}

static void print_fate(struct buffer *line, const struct asked *asked)
{
	const struct busy *who = &asked->seen.who;
	enum on_break on_break = who->holder.on_break;
	char text[DURATION_TEXT];

	duration_format(text, asked->after);
	if (asked->fate == FATE_MISSED) {
		print_holder(line, who);
		buffer_print(line, " was gone before it was asked to stop");
		return;
	}
	/* if only the record was lost, it has heard of it all the same */
	if (on_break == BREAK_UNKNOWN && asked->fate != FATE_RELEASED) {
		print_holder(line, who);
		buffer_print(line,
			     " cannot be asked to stop%s; its lease could not "
			     "be renewed, and ended after %s",
			     who->has_description ? ", as its redlock is older"
						  : "",
			     text);
		return;
	}
	buffer_print(line, "asked ");
	print_holder(line, who);
	buffer_print(line, " to stop; ");
	if (asked->fate == FATE_RELEASED)
		buffer_print(line, "released after %s", text);
	else if (asked->fate == FATE_DELETED)
		buffer_print(line, "not released, but KEY was deleted after %s",
			     text);
	else
		buffer_print(line, "its lease ended after %s", text);
	if (asked->fate == FATE_DELETED) {
		print_running_on(line, who);
		return;
	}
	/* a run gives it back when its command has ended, a keeper at once */
	if (on_break == BREAK_WARNS &&
	    (asked->fate == FATE_ENDED || asked->seen.who.holder.keeper > 0))
		buffer_print(line,
			     ", and its command runs on (--on-lost warn)");
	else if (asked->fate == FATE_ENDED)
		buffer_print(line, ", without an answer");
}

/* 0, or an exit status. */
static int print_fates(const struct stopping *stopping)
{
	struct buffer line = {0}, lines = {0};
	int status;

	for (size_t n = 0; n < stopping->count; n++) {
		if (stopping->asked[n].fate == FATE_HOLDS)
			continue;
		line.length = 0;
		buffer_print(&line, "%s: ", stopping->holders->names.key.data);
		print_fate(&line, &stopping->asked[n]);
		cmd_add_line(&lines, &line, STDOUT_FILENO, "\n");
	}
	buffer_append(&lines, "", 0);
	status = cmd_print(lines.data, lines.length);
	buffer_release(&line);
	buffer_release(&lines);
	return status;
}

/* Of several holders each has a fence of its own, which nobody has told. */
static bool is_of(const struct past_run *run, const struct asked *asked,
		  int64_t fence)
{
	const struct holder *one = &run->who, *other = &asked->seen.who.holder;

	return (fence == 0 || run->fence == fence) && one->pid == other->pid &&
	       strcmp(one->host, other->host) == 0 &&
	       strcmp(one->command, other->command) == 0;
}

/* Whether a holder that has released KEY was told to stop: else it has ended by itself. */
static bool was_told(const struct history *history, const struct asked *asked,
		     int64_t fence)
{
	for (size_t n = 0; n < history->known; n++)
		if (is_of(&history->run[n], asked, fence))
			return history->run[n].end == RUN_BROKEN;
	return false;
}

/* For --syslog. */
static void note_fates(const struct stopping *stopping, struct session *session,
		       const struct breaker *breaker, int64_t fence)
{
	int64_t one = stopping->count == 1 ? fence : 0;
	struct buffer line = {0};
	struct history history;
	struct error ignored;

	if (!session->settings->syslog)
		return;
	history_init(&history, &session->quorum, session->settings->key);
	history_read(&history, &ignored);
	for (size_t n = 0; n < stopping->count; n++) {
		const struct asked *asked = &stopping->asked[n];

		if (was_told(&history, asked, one)) {
			journal_broken(session->settings, "broken", breaker,
				       fence, &asked->seen.who);
			continue;
		}
		line.length = 0;
		print_fate(&line, asked);
		journal_fate(session->settings, line.data, fence);
	}
	history_release(&history);
	buffer_release(&line);
}

static void tell_wait(const struct stopping *stopping)
{
	struct buffer who = {0};
	const struct asked *first = print_holding(&who, stopping);
	char text[DURATION_TEXT];

	duration_format(text, deadline_left(stopping->end));
	if (first->seen.who.holder.on_break == BREAK_UNKNOWN)
		log_notice("%s: %s cannot be asked to stop; waiting until the "
			   "lease ends in %s",
			   stopping->holders->names.key.data, who.data, text);
	else
		log_notice("%s: asked %s to stop; waiting until KEY is "
			   "released, for %s at most",
			   stopping->holders->names.key.data, who.data, text);
	buffer_release(&who);
}

/* The wait is over, but KEY is still held: nobody else will say so. number: the signal that
 * has ended it, or 0. */
static void tell_left(const struct stopping *stopping, int number)
{
	struct buffer who = {0};
	const struct asked *first = print_holding(&who, stopping);
	const bool deaf = first->seen.who.holder.on_break == BREAK_UNKNOWN;
	const char *key = stopping->holders->names.key.data;
	char text[DURATION_TEXT];

	if (number != 0 && deaf)
		log_error("%s: no longer waiting: %s cannot be asked "
			  "to stop, and the lease ends in %s",
			  key, who.data,
			  duration_format(text, deadline_left(first->ends)));
	else if (number != 0)
		log_error("%s: no longer waiting; the request stands: %s "
			  "will be told at the next renewal at the latest",
			  key, who.data);
	else
		log_error("%s: %s%s%s, but the lease is still renewed after "
			  "%s: --now takes KEY away",
			  key, deaf ? "" : "asked ", who.data,
			  deaf ? " cannot be asked to stop" : " to stop",
			  duration_format(text, clock_ms() - stopping->began));
	buffer_release(&who);
}

/* Rounds until something has come of it; *number: the signal that ended them, or 0. */
static enum stopping_result wait_for_them(struct stopping *stopping,
					  const struct session *session,
					  const struct breaker *breaker,
					  struct error *error, int *number)
{
	struct pollfd polled = {.fd = session->signals, .events = POLLIN};
	enum stopping_result result = stopping_round(stopping, error);
	bool told = false;

	if (result == STOPPING_WAITS || result == STOPPING_DONE)
		journal_broken(session->settings, "asked to stop", breaker,
			       holders_fence(stopping->holders),
			       &stopping->asked[0].seen.who);
	while (result == STOPPING_WAITS) {
		if (!told && clock_ms() - stopping->began >= TELL_AFTER) {
			tell_wait(stopping);
			told = true;
		}
		deadline_poll(&polled, 1,
			      deadline_in(stopping_pause(stopping)));
		*number = signals_have_come(session->signals) ? signals_next()
							      : 0;
		if (*number != 0)
			return result;
		result = stopping_round(stopping, error);
	}
	return result;
}

static int complain_unchanged(const struct holders *holders)
{
	log_error("%s: %s", holders->names.key.data,
		  holders_servers(holders, STANDING_CHANGED) > 0
			  ? "someone else holds it now: nothing was broken"
			  : "not held");
	return EXIT_NOT_HELD;
}

/* The exit status; *number: the signal to die of, or 0. */
static int conclude(const struct stopping *stopping,
		    enum stopping_result result, const struct session *session,
		    const struct error *error, int number)
{
	int64_t more = stopping->more;
	int printed = session->settings->quiet || stopping->began == 0
			      ? 0
			      : print_fates(stopping);

	switch (result) {
	case STOPPING_NOBODY:
		return complain_unchanged(stopping->holders);
	case STOPPING_FAILED:
		log_error("%s: %s%s", session->settings->key, error->text,
			  error->code == EXIT_UNREACHED
				  ? "; the holder may still be told to stop"
				  : "");
		return error->code;
	case STOPPING_DONE:
		if (more == 0)
			return printed;
		log_error("%s: %" PRId64 " more hold it: break it again",
			  session->settings->key, more);
		return EXIT_BUSY;
	default:
		tell_left(stopping, number);
		return EXIT_BUSY;
	}
}

static int ask_holders(struct session *session, struct holders *holders,
		       const char *why, const struct breaker *breaker,
		       int *number)
{
	struct stopping stopping;
	struct error error;
	enum stopping_result result;
	int64_t fence = holders_fence(holders);
	int status = cmd_heed_signals(session);

	if (status != 0)
		return status;
	stopping_init(&stopping, holders, why);
	result = wait_for_them(&stopping, session, breaker, &error, number);
	status = conclude(&stopping, result, session, &error, *number);
	if (result == STOPPING_DONE)
		note_fates(&stopping, session, breaker, fence);
	stopping_release(&stopping);
	return status;
}

/* --- taking it away --------------------------------------------------------- */

/* foreign: also of what is not a lock. */
static void print_eviction(struct buffer *line, const struct holders *holders,
			   const struct seen *seen, bool foreign)
{
	const struct busy *who = &seen->who;
	char text[DURATION_TEXT];

	if (foreign && is_data(who)) {
		buffer_print(line, "deleted a %s, which was not a lock",
			     holders->type[__builtin_ctz(seen->servers)]);
		return;
	}
	buffer_print(line, "evicted ");
	print_holder(line, who);
	if (who->held >= 0)
		buffer_print(line, ", held for %s",
			     duration_format(text, who->held));
	print_running_on(line, who);
}

/* 0, or an exit status. */
static int print_evicted(const struct holders *holders, bool foreign)
{
	const struct crowd *holding = &holders->holding;
	struct buffer line = {0}, lines = {0};
	int status;

	for (size_t n = 0; n < holding->count; n++) {
		line.length = 0;
		buffer_print(&line, "%s: ", holders->names.key.data);
		print_eviction(&line, holders, &holding->seen[n], foreign);
		cmd_add_line(&lines, &line, STDOUT_FILENO, "\n");
	}
	if (holding->total == 0) {
		buffer_print(&line,
			     "%s: evicted somebody: the answer that says whom "
			     "was lost; a command may run on",
			     holders->names.key.data);
		cmd_add_line(&lines, &line, STDOUT_FILENO, "\n");
	}
	if (holding->total > (int64_t)holding->count) {
		line.length = 0;
		buffer_print(&line, "%s: evicted %" PRId64 " more",
			     holders->names.key.data,
			     holding->total - (int64_t)holding->count);
		cmd_add_line(&lines, &line, STDOUT_FILENO, "\n");
	}
	status = cmd_print(lines.data, lines.length);
	buffer_release(&line);
	buffer_release(&lines);
	return status;
}

static int take_away(struct holders *holders, const struct settings *settings,
		     const char *why, const struct breaker *breaker)
{
	struct error error;
	bool answered =
		inspect_break(holders, settings->foreign, why, &error) == 0;
	size_t broken = holders_servers(holders, STANDING_HELD);

	if (broken > 0)
		journal_broken(settings, "broken", breaker,
			       holders_fence(holders),
			       holders->holding.count > 0 &&
					       !deletes_data(holders, settings)
				       ? &holders->holding.seen[0].who
				       : NULL);
	if (!answered) {
		if (broken > 0)
			error_prepend(&error,
				      "taken away on %zu of %zu servers only, "
				      "and its holder may put that right: ",
				      broken, holders->ballot.quorum->count);
		log_error("%s: %s%s", holders->names.key.data, error.text,
			  inspect_is_waiting(holders)
				  ? "; it may still be taken away"
				  : "");
		return error.code;
	}
	if (broken == 0)
		return complain_unchanged(holders);
	return settings->quiet ? 0 : print_evicted(holders, settings->foreign);
}

/* --- the command ------------------------------------------------------------ */

static int break_key(struct session *session, struct holders *holders,
		     const char *why, int *number)
{
	const struct settings *settings = session->settings;
	struct breaker breaker;
	int status = look(holders, settings);

	record_read_breaker(&breaker, why, strlen(why));
	if (status != 0)
		return status;
	if (!settings->yes && !prompt(holders, settings))
		return EXIT_NOT_HELD;
	if (settings->now || deletes_data(holders, settings))
		return take_away(holders, settings, why, &breaker);
	return ask_holders(session, holders, why, &breaker, number);
}

int cmd_break(struct settings *settings)
{
	struct session session;
	struct holders holders;
	struct buffer why = {0};
	int status, number = 0;

	if (!settings->yes &&
	    !(isatty(STDIN_FILENO) && isatty(STDERR_FILENO))) {
		log_error("%s: there is no terminal to ask on: break needs -y",
			  settings->key);
		return EXIT_USAGE;
	}
	status = cmd_open(&session, settings);
	if (status != 0)
		return status;
	record_describe_breaker(&why, settings->reason);
	holders_init(&holders, &session.quorum, settings->key);
	status = break_key(&session, &holders, why.data, &number);
	holders_release(&holders);
	buffer_release(&why);
	cmd_close(&session);
	if (number != 0)
		signals_die(number);
	return status;
}
