#include "cmd/metrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/output.h"
#include "base/replace.h"
#include "cmd/print.h"

#define UNKNOWN INT64_MIN /* it has no series */
#define COLUMNS_MOST 12

struct metric {
	const char *name, *help;
	bool seconds; /* its values are ms */
};

enum { UP };

static const struct metric of_list[] = {
	[UP] = {"redlock_up",
		"Whether a quorum of the servers answered redlock list."},
};

enum {
	HELD,
	HOLDERS,
	HELD_SECONDS,
	WAITERS,
	OLDEST_WAIT,
	LAST_RUN,
	DURATION,
	EXIT_STATUS,
	SUCCESS,
	LAST_SUCCESS,
};

static const struct metric of_keys[] = {
	[HELD] = {"redlock_held", "Whether the lock is held, or may be."},
	[HOLDERS] = {"redlock_holders", "How many hold the lock."},
	[HELD_SECONDS] = {"redlock_held_seconds",
			  "How long the lock has been held, by the one of its "
			  "holders that has held it longest; 0 if it is free.",
			  true},
	[WAITERS] = {"redlock_waiters", "How many wait for the lock."},
	[OLDEST_WAIT] =
		{"redlock_oldest_wait_seconds",
		 "How long the first waiter has waited; 0 if nobody waits.",
		 true},
	[LAST_RUN] = {"redlock_last_run_timestamp_seconds",
		      "When the last run ended.", true},
	[DURATION] = {"redlock_last_run_duration_seconds",
		      "How long the last run held the lock.", true},
	[EXIT_STATUS] = {"redlock_last_run_exit_status",
			 "Exit status of the last run, or 128 plus the signal "
			 "that killed it; absent if it had no status."},
	[SUCCESS] = {"redlock_last_run_success",
		     "Whether the last run succeeded (exit status 0)."},
	[LAST_SUCCESS] = {"redlock_last_success_timestamp_seconds",
			  "When the last successful run ended.", true},
};

enum { QUORUM, VOTES, VOTES_NEEDED };

static const struct metric of_doctor[] = {
	[QUORUM] = {"redlock_quorum",
		    "Whether enough servers would grant a lock."},
	[VOTES] = {"redlock_votes", "How many servers would grant a lock."},
	[VOTES_NEEDED] = {"redlock_votes_needed",
			  "How many servers must grant a lock."},
};

enum {
	SERVER_UP,
	SERVER_VOTE,
	SERVER_ROUND_TRIP,
	SERVER_CLOCK,
	SERVER_UPTIME,
	SERVER_WARNINGS
};

static const struct metric of_servers[] = {
	[SERVER_UP] = {"redlock_server_up", "Whether the server answered."},
	[SERVER_VOTE] = {"redlock_server_vote",
			 "Whether the server would grant a lock."},
	[SERVER_ROUND_TRIP] =
		{"redlock_server_round_trip_seconds",
		 "The fastest answer took less than this, in whole "
		 "milliseconds.",
		 true},
	[SERVER_CLOCK] = {"redlock_server_clock_offset_seconds",
			  "How far the server's clock is ahead of this host's.",
			  true},
	[SERVER_UPTIME] = {"redlock_server_uptime_seconds",
			   "How long the server has been up.", true},
	[SERVER_WARNINGS] =
		{"redlock_server_warnings",
		 "How many warnings redlock doctor has about the server."},
};

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

struct metrics_row {
	char *labels; /* owned: `key="deploy"`, or "" */
	int64_t value[COLUMNS_MOST];
};

/* --- rows ----------------------------------------------------------------- */

/* Takes over the labels. Returns its values, all of which are unknown. */
static int64_t *add_row(struct metrics *metrics, struct buffer *labels)
{
	struct metrics_row *row;

	if (metrics->count == metrics->capacity) {
		metrics->capacity =
			metrics->capacity > 0 ? 2 * metrics->capacity : 16;
		metrics->rows = xrealloc(metrics->rows,
					 metrics->capacity * sizeof(*row));
	}
	row = &metrics->rows[metrics->count++];
	buffer_append(labels, "", 0);
	row->labels = xrealloc(labels->data, labels->length + 1);
	for (size_t n = 0; n < COLUMNS_MOST; n++)
		row->value[n] = UNKNOWN;
	return row->value;
}

void metrics_release(struct metrics *metrics)
{
	for (size_t n = 0; n < metrics->count; n++)
		free(metrics->rows[n].labels);
	free(metrics->rows);
	*metrics = (struct metrics){0};
}

static void add_label(struct buffer *labels, const char *name, const char *text,
		      size_t length)
{
	buffer_print(labels, "%s%s=", labels->length > 0 ? "," : "", name);
	output_label(labels, text, length);
}

/* NULL: none */
static void add_text(struct buffer *labels, const char *name, const char *text)
{
	if (text != NULL)
		add_label(labels, name, text, strlen(text));
}

/* --- the text ------------------------------------------------------------- */

static void print_value(struct buffer *text, const struct metric *metric,
			int64_t value)
{
	uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;

	if (!metric->seconds)
		buffer_print(text, "%" PRId64, value);
	else
		buffer_print(text, "%s%" PRIu64 ".%03" PRIu64,
			     value < 0 ? "-" : "", size / 1000, size % 1000);
}

/* All series of a metric, one after the other, as the format wants them. */
static void print_metric(struct buffer *text, const struct metric *metric,
			 const struct metrics *metrics, size_t column)
{
	bool first = true;

	for (size_t n = 0; n < metrics->count; n++) {
		const struct metrics_row *row = &metrics->rows[n];
		bool bare = row->labels[0] == '\0';

		if (row->value[column] == UNKNOWN)
			continue;
		if (first)
			buffer_print(text, "# HELP %s %s\n# TYPE %s gauge\n",
				     metric->name, metric->help, metric->name);
		first = false;
		buffer_print(text, "%s%s%s%s ", metric->name, bare ? "" : "{",
			     row->labels, bare ? "" : "}");
		print_value(text, metric, row->value[column]);
		buffer_print(text, "\n");
	}
}

static void print_metrics(struct buffer *text, const struct metric *table,
			  size_t columns, const struct metrics *metrics)
{
	for (size_t n = 0; n < columns; n++)
		print_metric(text, &table[n], metrics, n);
}

/* To Prometheus "# EOF" is a comment, and OpenMetrics ends with it. */
static int tell(const struct settings *settings, struct buffer *text)
{
	struct error error;
	int status = EXIT_DONE;

	buffer_print(text, "# EOF\n");
	if (settings->output == NULL) {
		status = cmd_show(text->data, text->length);
	} else if (replace_file(settings->output, text->data, text->length,
				&error) < 0) {
		log_error("%s", error.text);
		status = error.code;
	}
	buffer_release(text);
	return status;
}

/* --- list ----------------------------------------------------------------- */

/* What a shell would have seen, or UNKNOWN. */
static int64_t exit_status(const struct past_run *run)
{
	switch (run->end) {
	case RUN_EXIT:
		return run->number;
	case RUN_SIGNAL:
		return 128 + run->number;
	case RUN_LOST:
	case RUN_BROKEN:
		return EXIT_LOST;
	case RUN_OVERDUE:
		return EXIT_OVERDUE;
	default:
		return UNKNOWN;
	}
}

static void add_runs(int64_t *value, const struct past_run *last,
		     const struct past_run *success)
{
	if (success->token[0] != '\0')
		value[LAST_SUCCESS] = success->began + success->held;
	if (last->token[0] == '\0')
		return;
	value[LAST_RUN] = last->began + last->held;
	value[DURATION] = last->held;
	value[EXIT_STATUS] = exit_status(last);
	if (last->end != RUN_RELEASED)
		value[SUCCESS] = run_succeeded(last);
}

void metrics_add_listed(struct metrics *metrics,
			const struct settings *settings,
			const struct listed *listed)
{
	struct buffer labels = {0};
	int64_t *value;
	bool readable = listed->waiting >= 0; /* not a newer redlock's */

	add_text(&labels, "set", settings->set);
	add_label(&labels, "key", listed->key.data, listed->key.length);
	value = add_row(metrics, &labels);
	add_runs(value, &listed->last, &listed->success);
	if (!readable)
		return;
	value[HELD] = listed->holders > 0;
	value[HOLDERS] = listed->holders;
	if (listed->holders == 0)
		value[HELD_SECONDS] = 0;
	else if (listed->longest >= 0)
		value[HELD_SECONDS] = listed->longest;
	value[WAITERS] = listed->waiting;
	value[OLDEST_WAIT] = listed->waiting > 0 ? listed->oldest_wait : 0;
}

static int by_labels(const void *a, const void *b)
{
	const struct metrics_row *one = a, *other = b;

	return strcmp(one->labels, other->labels);
}

int metrics_tell_list(struct metrics *metrics, const struct settings *settings,
		      bool well)
{
	struct metrics all = {0};
	struct buffer text = {0}, labels = {0};

	add_text(&labels, "set", settings->set);
	add_text(&labels, "pattern", settings->key);
	add_row(&all, &labels)[UP] = well;
	print_metrics(&text, of_list, COUNT_OF(of_list), &all);
	if (metrics->count > 0)
		qsort(metrics->rows, metrics->count, sizeof(*metrics->rows),
		      by_labels);
	if (well)
		print_metrics(&text, of_keys, COUNT_OF(of_keys), metrics);
	metrics_release(&all);
	return tell(settings, &text);
}

/* --- doctor --------------------------------------------------------------- */

static void add_labels_of_doctor(struct buffer *labels,
				 const struct settings *settings)
{
	add_text(labels, "set", settings->set);
	add_text(labels, "key", settings->key);
}

static bool has_answered(const struct doctor *doctor, size_t i)
{
	const struct ballot *ballot = &doctor->lock.ballot;
	const struct server_facts *at = &doctor->at[i];

	return ballot->vote[i] == VOTE_YES || at->uptime >= 0 ||
	       at->trip >= 0 ||
	       cause_is_from_server(
		       ballot->quorum->servers[i].conn.refusal.cause);
}

static int64_t count_warnings(const struct server_facts *at, uint32_t accepted)
{
	const char *accept;
	int64_t count = 0;
	size_t next = 0;

	while (warning_next(&at->warnings, &next, accepted, &accept))
		count++;
	return count;
}

static void add_server(struct metrics *metrics, const struct doctor *doctor,
		       size_t i, const struct settings *settings)
{
	const struct ballot *ballot = &doctor->lock.ballot;
	const struct server_facts *at = &doctor->at[i];
	struct buffer labels = {0};
	int64_t *value;

	add_labels_of_doctor(&labels, settings);
	add_text(&labels, "server", ballot->quorum->servers[i].url.name);
	value = add_row(metrics, &labels);
	value[SERVER_UP] = has_answered(doctor, i);
	value[SERVER_VOTE] = ballot->vote[i] == VOTE_YES;
	value[SERVER_WARNINGS] = count_warnings(at, settings->accepted);
	if (at->uptime >= 0)
		value[SERVER_UPTIME] = at->uptime;
	if (at->trip < 0)
		return;
	value[SERVER_ROUND_TRIP] = at->trip + 1;
	value[SERVER_CLOCK] = at->ahead;
}

int metrics_tell_doctor(const struct doctor *doctor,
			const struct settings *settings)
{
	const struct quorum *quorum = doctor->lock.ballot.quorum;
	struct metrics all = {0}, servers = {0};
	struct buffer text = {0}, labels = {0};
	int64_t *value;

	add_labels_of_doctor(&labels, settings);
	value = add_row(&all, &labels);
	value[QUORUM] = doctor->well;
	value[VOTES] = (int64_t)doctor_count(doctor);
	value[VOTES_NEEDED] = (int64_t)quorum_size(quorum);
	for (size_t i = 0; i < quorum->count; i++)
		add_server(&servers, doctor, i, settings);
	print_metrics(&text, of_doctor, COUNT_OF(of_doctor), &all);
	print_metrics(&text, of_servers, COUNT_OF(of_servers), &servers);
	metrics_release(&all);
	metrics_release(&servers);
	return tell(settings, &text);
}

int metrics_tell_nothing(const struct settings *settings, bool doctor)
{
	struct metrics all = {0};
	struct buffer text = {0}, labels = {0};

	if (!doctor)
		return metrics_tell_list(&all, settings, false);
	add_labels_of_doctor(&labels, settings);
	add_row(&all, &labels)[QUORUM] = 0;
	print_metrics(&text, of_doctor, COUNT_OF(of_doctor), &all);
	metrics_release(&all);
	return tell(settings, &text);
}
