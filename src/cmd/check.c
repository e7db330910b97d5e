#include "cmd/check.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/output.h"
#include "cmd/session.h"
#include "lock/explain.h"
#include "settings/command.h"
#include "show/history.h"
#include "show/inspect.h"

#define COLUMNS_MOST 900 /* NRPE cuts at 1024 bytes */
#define KEY_COLUMNS 200
#define AHEAD_MOST 60000 /* ms: a run that ended later is in the future */

/* The exit statuses of the convention. The worst one counts, in this order. */
enum level { LEVEL_OK, LEVEL_UNKNOWN, LEVEL_WARNING, LEVEL_CRITICAL };

static const struct {
	const char *name;
	int status;
} levels[] = {
	[LEVEL_OK] = {"OK", 0},
	[LEVEL_UNKNOWN] = {"UNKNOWN", 3},
	[LEVEL_WARNING] = {"WARNING", 1},
	[LEVEL_CRITICAL] = {"CRITICAL", 2},
};

/* What is measured: a time in ms or a number, or -1. */
struct measure {
	const char *name;
	int64_t value, warn, most; /* UNSET: no threshold */
	bool seconds;
};

struct check {
	const struct settings *settings;
	struct holders holders;
	struct history history;
	struct error past; /* why there is no history */
	enum level level;
	struct buffer text;
	struct measure held, waiting, wait, age;
};

static void raise(struct check *check, enum level level)
{
	if (level > check->level)
		check->level = level;
}

/* --- the line ------------------------------------------------------------- */

/* Visible, and without what ends the text of a plugin. */
static void add_visible(struct buffer *line, const char *text, size_t length,
			size_t columns)
{
	struct buffer visible = {0};
	size_t fit;

	output_visible(&visible, text, length, output_utf8());
	fit = output_fit(visible.data, visible.length, columns);
	for (size_t i = 0; i < fit; i++)
		buffer_print(line, visible.data[i] == '|' ? "\\x7c" : "%c",
			     visible.data[i]);
	if (fit < visible.length)
		buffer_print(line, "...");
	buffer_release(&visible);
}

/* text: as it is; measures: NULL for none. */
static int print_line(enum level level, const struct buffer *text,
		      const struct buffer *measures)
{
	struct buffer line = {0};
	int status = levels[level].status;

	buffer_print(&line, "REDLOCK %s - ", levels[level].name);
	add_visible(&line, text->data, text->length, COLUMNS_MOST);
	if (measures != NULL)
		buffer_print(&line, " |%s", measures->data);
	buffer_print(&line, "\n");
	if (output_write(STDOUT_FILENO, line.data, line.length) < 0)
		status = levels[LEVEL_UNKNOWN].status;
	buffer_release(&line);
	return status;
}

int check_tell_unknown(const char *text)
{
	struct buffer line = {0};
	int status;

	buffer_print(&line, "%s", text);
	status = print_line(LEVEL_UNKNOWN, &line, NULL);
	buffer_release(&line);
	return status;
}

/* "12", "0.25" */
static void print_seconds(struct buffer *text, int64_t ms)
{
	static const int64_t units[] = {1, 10, 100, 1000};
	int digits = ms % 1000 == 0  ? 0
		     : ms % 100 == 0 ? 1
		     : ms % 10 == 0  ? 2
				     : 3;

	buffer_print(text, "%" PRId64, ms / 1000);
	if (digits > 0)
		buffer_print(text, ".%0*" PRId64, digits,
			     ms % 1000 / units[3 - digits]);
}

static void print_number(struct buffer *text, const struct measure *measure,
			 int64_t value)
{
	if (value < 0)
		return;
	if (measure->seconds)
		print_seconds(text, value);
	else
		buffer_print(text, "%" PRId64, value);
}

/* " held=12.5s;;600;0"; U: it is not known */
static void print_measure(struct buffer *text, const struct measure *measure)
{
	buffer_print(text, " %s=", measure->name);
	print_number(text, measure, measure->value);
	buffer_print(text, "%s;",
		     measure->value < 0 ? "U"
		     : measure->seconds ? "s"
					: "");
	print_number(text, measure, measure->warn);
	buffer_print(text, ";");
	print_number(text, measure, measure->most);
	buffer_print(text, ";0");
}

/* The exit status. */
static int tell(struct check *check)
{
	struct buffer measures = {0};
	int status = levels[check->level].status;

	print_measure(&measures, &check->held);
	print_measure(&measures, &check->waiting);
	print_measure(&measures, &check->wait);
	print_measure(&measures, &check->age);
	if (check->level != LEVEL_OK || !check->settings->quiet)
		status = print_line(check->level, &check->text, &measures);
	buffer_release(&measures);
	return status;
}

/* --- thresholds ------------------------------------------------------------ */

static bool is_limited(const struct measure *measure)
{
	return measure->warn != UNSET || measure->most != UNSET;
}

static bool passes(const struct measure *measure, int64_t limit)
{
	return limit != UNSET && measure->value > limit;
}

static void print_limit(struct buffer *text, const struct measure *measure,
			int64_t limit)
{
	char time[DURATION_TEXT];

	if (measure->seconds)
		buffer_print(text, " (more than %s)",
			     duration_format(time, limit));
	else
		buffer_print(text, " (more than %" PRId64 ")", limit);
}

/* Says so if it is too much, after the text that says how much it is. */
static void judge(struct check *check, const struct measure *measure)
{
	if (passes(measure, measure->most)) {
		raise(check, LEVEL_CRITICAL);
		print_limit(&check->text, measure, measure->most);
	} else if (passes(measure, measure->warn)) {
		raise(check, LEVEL_WARNING);
		print_limit(&check->text, measure, measure->warn);
	}
}

/* --- who holds it, and who waits ------------------------------------------- */

/* As most servers say, or the first of those that say so. */
static void print_misuse(struct buffer *text, const struct holders *holders)
{
	size_t i = holders_speaker(holders);

	if (i == holders->ballot.quorum->count ||
	    !holders_is_misused(holders, i))
		for (i = 0; !holders_is_misused(holders, i);)
			i++;
	buffer_print(text, "KEY is not a lock: ");
	if (holders->standing[i] == STANDING_MISUSED)
		buffer_print(text, "it is a %s", holders->type[i]);
	else
		holders_print_spoilt(text, holders, i);
}

static void print_holder(struct check *check, const struct seen *longest)
{
	struct busy who = {.left = -1, .held = -1};
	int64_t permits = holders_permits(&check->holders);
	char time[DURATION_TEXT];

	if (longest != NULL) {
		who = longest->who;
		who.holders = holders_count(&check->holders);
		if (permits > 0)
			who.permits = permits;
	}
	record_print_who(&check->text, &who);
	if (who.held >= 0)
		buffer_print(&check->text, " for %s",
			     duration_format(time, who.held));
}

/* Too few servers have it, but those that have not answered may have it, too. */
static void doubt(struct check *check)
{
	struct error why;

	raise(check, LEVEL_UNKNOWN);
	explain_silence(&check->holders.ballot, &why);
	buffer_print(&check->text, "; %s", why.text);
}

static void look_at_holders(struct check *check)
{
	const struct holders *holders = &check->holders;
	int held = holders_is_held(holders);
	bool unknown;
	const struct seen *longest = holders_longest(holders, &unknown);

	if (holders_misused(holders) >= quorum_size(holders->ballot.quorum)) {
		raise(check, LEVEL_CRITICAL);
		print_misuse(&check->text, holders);
		check->held.value = -1;
		return;
	}
	if (held == 0) {
		buffer_print(&check->text, "free");
		return;
	}
	if (held < 0)
		buffer_print(&check->text, "perhaps ");
	print_holder(check, longest);
	if (longest != NULL && longest->who.left == -1) {
		raise(check, LEVEL_CRITICAL);
		buffer_print(&check->text, ", with no expiry");
	}
	check->held.value = longest != NULL ? longest->who.held : -1;
	judge(check, &check->held);
	if (held < 0)
		doubt(check);
	if (check->held.value >= 0 && !unknown)
		return;
	buffer_print(&check->text, "; since when is not known");
	if (is_limited(&check->held))
		raise(check, LEVEL_UNKNOWN);
}

/* Those that a quorum has. */
static void look_at_queue(struct check *check)
{
	const struct crowd *waiting = &check->holders.waiting;
	size_t need = quorum_size(check->holders.ballot.quorum);
	char time[DURATION_TEXT];

	check->waiting.value = waiting->total - (int64_t)waiting->count;
	for (size_t n = 0; n < waiting->count; n++) {
		const struct seen *seen = &waiting->seen[n];

		if (seen_count(seen) < need)
			continue;
		check->waiting.value++;
		if (seen->who.held > check->wait.value)
			check->wait.value = seen->who.held;
	}
	if (check->waiting.value <= 0)
		return;
	buffer_print(&check->text, "; %" PRId64 " waiting",
		     check->waiting.value);
	judge(check, &check->waiting);
	buffer_print(&check->text, "%s for %s",
		     check->waiting.value > 1 ? ", the first" : "",
		     duration_format(time, check->wait.value));
	judge(check, &check->wait);
}

/* --- the last success ------------------------------------------------------ */

static void miss_success(struct check *check)
{
	if (!is_limited(&check->age))
		return;
	raise(check, check->age.most != UNSET ? LEVEL_CRITICAL : LEVEL_WARNING);
	buffer_print(&check->text, "; no success known");
}

static void look_at_history(struct check *check)
{
	const struct past_run *success = history_success(&check->history);
	char time[DURATION_TEXT];
	int64_t ago;

	if (check->past.text[0] != '\0') {
		if (is_limited(&check->age))
			raise(check, LEVEL_UNKNOWN);
		buffer_print(&check->text, "; last success unknown: %s",
			     check->past.text);
		return;
	}
	if (success == NULL) {
		miss_success(check);
		return;
	}
	ago = success->age - success->held;
	if (ago < -AHEAD_MOST) {
		if (is_limited(&check->age))
			raise(check, LEVEL_UNKNOWN);
		buffer_print(&check->text,
			     "; last success %s in the future: a server's "
			     "clock was wrong",
			     duration_format(time, -ago));
		return;
	}
	check->age.value = ago > 0 ? ago : 0;
	buffer_print(&check->text, "; last success %s ago",
		     duration_format(time, check->age.value));
	judge(check, &check->age);
}

/* --- all of it -------------------------------------------------------------- */

static int look(struct check *check, struct quorum *quorum, struct error *error)
{
	const char *key = check->settings->key;
	int result;

	holders_init(&check->holders, quorum, key);
	history_init(&check->history, quorum, key);
	result = inspect_lock(&check->holders, error);
	if (result == 0 && history_read(&check->history, &check->past) == 0)
		check->past.text[0] = '\0';
	if (result < 0)
		error_prepend(error, ": ");
	return result;
}

static void set_thresholds(struct check *check)
{
	const struct settings *settings = check->settings;

	check->held = (struct measure){"held", 0, settings->warn.held,
				       settings->most.held, true};
	check->waiting = (struct measure){"waiting", 0, settings->warn.queue,
					  settings->most.queue, false};
	check->wait = (struct measure){"wait", 0, settings->warn.wait,
				       settings->most.wait, true};
	check->age = (struct measure){"age", -1, settings->warn.age,
				      settings->most.age, true};
}

int cmd_check(struct settings *settings)
{
	struct check check = {.settings = settings};
	struct quorum quorum;
	struct error error;
	int status;

	if (cmd_try_quorum(&quorum, settings, &error) < 0)
		return check_tell_unknown(error.text);
	set_thresholds(&check);
	add_visible(&check.text, settings->key, strlen(settings->key),
		    KEY_COLUMNS);
	if (look(&check, &quorum, &error) < 0) {
		buffer_print(&check.text, "%s", error.text);
		status = print_line(LEVEL_UNKNOWN, &check.text, NULL);
	} else {
		buffer_print(&check.text, ": ");
		look_at_holders(&check);
		look_at_queue(&check);
		look_at_history(&check);
		status = tell(&check);
	}
	buffer_release(&check.text);
	holders_release(&check.holders);
	history_release(&check.history);
	quorum_release(&quorum);
	return status;
}
