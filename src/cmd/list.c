#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/print.h"
#include "cmd/session.h"
#include "cmd/json.h"
#include "cmd/metrics.h"
#include "settings/command.h"
#include "base/output.h"
#include "base/alloc.h"
#include "base/duration.h"
#include "show/scan.h"

#define PROGRESS_EVERY 100 /* ms */

struct collector {
	const struct settings *settings;
	struct metrics metrics;
};

/* A lock, and its line. */
struct found {
	char *text; /* owned: KEY, and then the line */
	size_t key_length, length;
};

struct printer {
	const struct settings *settings;
	struct found *found; /* owned */
	size_t count, capacity;
	int64_t next;  /* when the next progress is shown */
	bool progress; /* whether one is shown */
};

static void erase_progress(struct printer *printer)
{
	if (printer->progress)
		output_write(STDERR_FILENO, "\r\033[K", 4);
	printer->progress = false;
}

/* --- collecting ----------------------------------------------------------- */

static void print_who(struct buffer *line, const struct listed *listed)
{
	if (listed->kind == KIND_NONE) {
		buffer_print(line,
			     "unknown, used by a newer redlock (protocol "
			     "%" PRId64 ")",
			     listed->first.who.holder.protocol);
		return;
	}
	if (listed->kind == KIND_PERMITS)
		buffer_print(line, "%" PRId64 " of %" PRId64 " permits, ",
			     listed->holders, listed->permits);
	else if (listed->first.who.has_description)
		buffer_print(line, "%s, ", holders_kind_name(listed->kind));
	if (listed->perhaps)
		buffer_print(line, "perhaps ");
	record_print_busy(line, &listed->first.who);
	if (listed->first.slot > 0)
		buffer_print(line, " (slot %" PRId64 ")", listed->first.slot);
	if (listed->holders > 1)
		buffer_print(line, ", and %" PRId64 " more",
			     listed->holders - 1);
}

static void print_waiting(struct buffer *line, const struct listed *listed)
{
	char oldest[DURATION_TEXT];

	if (listed->waiting <= 0)
		return;
	buffer_print(line, ", %" PRId64 " waiting%s for %s", listed->waiting,
		     listed->waiting > 1 ? ", the first" : "",
		     duration_format(oldest, listed->oldest_wait));
}

static void print_line(struct buffer *text, const struct listed *listed)
{
	struct buffer line = {0};

	buffer_append(&line, listed->key.data, listed->key.length);
	buffer_print(&line, ": ");
	print_who(&line, listed);
	print_waiting(&line, listed);
	cmd_add_line(text, &line, STDOUT_FILENO, "\n");
	buffer_release(&line);
}

static bool on_found(void *context, const struct listed *listed)
{
	struct printer *printer = context;
	struct buffer text = {0};
	struct found *found;

	if (printer->count == printer->capacity) {
		printer->capacity =
			printer->capacity > 0 ? 2 * printer->capacity : 64;
		printer->found =
			xrealloc(printer->found,
				 printer->capacity * sizeof(*printer->found));
	}
	buffer_append(&text, listed->key.data, listed->key.length);
	if (printer->settings->format == FORMAT_JSON) {
		json_listed(&text, listed);
	} else {
		struct buffer line = {0};

		print_line(&line, listed);
		buffer_append(&text, line.data, line.length);
		buffer_release(&line);
	}
	found = &printer->found[printer->count++];
	*found = (struct found){xrealloc(text.data, text.length + 1),
				listed->key.length, text.length};
	return true;
}

static void on_progress(void *context, uint64_t looked_at, uint64_t locks)
{
	struct printer *printer = context;
	char text[128];
	int length;

	if (clock_ms() < printer->next)
		return;
	printer->next = clock_ms() + PROGRESS_EVERY;
	printer->progress = true;
	length = snprintf(text, sizeof(text),
			  "\r\033[Kredlock: %" PRIu64
			  " keys looked at, %" PRIu64 " lock%s",
			  looked_at, locks, locks == 1 ? "" : "s");
	output_write(STDERR_FILENO, text, (size_t)length);
}

static bool shows_progress(const struct settings *settings)
{
	return !settings->quiet && !settings->verbose && isatty(STDERR_FILENO);
}

/* --- printing ------------------------------------------------------------- */

/* Byte by byte, as `sort` does in the C locale. */
static int by_key(const void *a, const void *b)
{
	const struct found *one = a, *other = b;
	size_t shorter = one->key_length < other->key_length
				 ? one->key_length
				 : other->key_length;
	int order = memcmp(one->text, other->text, shorter);

	if (order != 0)
		return order;
	return one->key_length < other->key_length
		       ? -1
		       : one->key_length > other->key_length;
}

/* Writes all lines, and forgets them. -1 if they cannot be written. */
static int print_found(struct printer *printer)
{
	struct buffer text = {0};
	int result = 0;

	erase_progress(printer);
	if (printer->count > 1)
		qsort(printer->found, printer->count, sizeof(*printer->found),
		      by_key);
	for (size_t n = 0; n < printer->count; n++) {
		const struct found *found = &printer->found[n];

		buffer_append(&text, found->text + found->key_length,
			      found->length - found->key_length);
		free(found->text);
	}
	if (text.length > 0 && cmd_show(text.data, text.length) != 0)
		result = -1;
	free(printer->found);
	buffer_release(&text);
	return result;
}

static bool on_metrics(void *context, const struct listed *listed)
{
	struct collector *collector = context;

	metrics_add_listed(&collector->metrics, collector->settings, listed);
	return true;
}

/* Also of what is free: a run that has not come is missed by its last one. */
static int tell_metrics(struct settings *settings)
{
	struct collector collector = {.settings = settings};
	const struct lister lister = {
		.context = &collector, .found = on_metrics, .all = true};
	struct quorum quorum;
	struct error error;
	int status = cmd_open_quorum(&quorum, settings), told;

	if (status == 0) {
		if (scan_locks(&quorum, settings->key, &lister, &error) < 0) {
			log_error("%s", error.text);
			status = error.code;
		}
		quorum_release(&quorum);
	}
	told = metrics_tell_list(&collector.metrics, settings, status == 0);
	metrics_release(&collector.metrics);
	return status != 0 ? status : told;
}

static int tell_list(struct settings *settings)
{
	struct printer printer = {.settings = settings};
	struct lister lister = {.context = &printer, .found = on_found};
	struct quorum quorum;
	struct error error;
	int status = cmd_open_quorum(&quorum, settings);
	int printed;

	if (status != 0)
		return status;
	if (shows_progress(settings))
		lister.progress = on_progress;
	if (scan_locks(&quorum, settings->key, &lister, &error) < 0)
		status = error.code;
	printed = print_found(&printer);
	if (status != 0)
		log_error("%s", error.text);
	else if (printed < 0)
		status = EXIT_SYSTEM;
	quorum_release(&quorum);
	return status;
}

int cmd_list(struct settings *settings)
{
	return settings->format == FORMAT_PROMETHEUS ? tell_metrics(settings)
						     : tell_list(settings);
}
