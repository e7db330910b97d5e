#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cmd.h"
#include "cmd_json.h"
#include "command.h"
#include "lock_list.h"

#define PROGRESS_EVERY 100 /* ms */
#define PENDING_MOST 65536 /* bytes that wait for being written */

struct printer {
	const struct settings *settings;
	struct buffer text; /* lines that are not written yet */
	int64_t next;       /* when the next progress is shown */
	bool progress;      /* one is shown */
	bool failed;
};

static void erase_progress(struct printer *printer)
{
	if (printer->progress)
		output_write(STDERR_FILENO, "\r\033[K", 4);
	printer->progress = false;
}

static bool flush(struct printer *printer)
{
	if (printer->text.length > 0) {
		erase_progress(printer);
		if (cmd_print(printer->text.data, printer->text.length) != 0)
			printer->failed = true;
	}
	printer->text.length = 0;
	return !printer->failed;
}

static void print_line(struct buffer *text, const struct listed *listed)
{
	struct buffer line = {0};

	buffer_append(&line, listed->key.data, listed->key.length);
	buffer_print(&line, ": ");
	if (listed->kind == KIND_PERMITS)
		buffer_print(&line, "%" PRId64 " of %" PRId64 " permits, ",
			     listed->holders, listed->permits);
	else if (listed->first.who.known)
		buffer_print(&line, "%s, ", view_kind_name(listed->kind));
	record_print_busy(&line, &listed->first.who);
	if (listed->holders > 1)
		buffer_print(&line, ", and %" PRId64 " more",
			     listed->holders - 1);
	output_visible(text, line.data, line.length, output_utf8());
	buffer_append(text, "\n", 1);
	buffer_release(&line);
}

static bool on_found(void *context, const struct listed *listed)
{
	struct printer *printer = context;

	if (printer->settings->format == FORMAT_JSON)
		json_listed(&printer->text, listed);
	else
		print_line(&printer->text, listed);
	return printer->text.length < PENDING_MOST || flush(printer);
}

static void on_progress(void *context, uint64_t looked_at, uint64_t locks)
{
	struct printer *printer = context;
	char text[128];
	int length;

	if (!flush(printer) || clock_ms() < printer->next)
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

int cmd_list(struct settings *settings)
{
	struct printer printer = {.settings = settings};
	struct lister lister = {&printer, on_found, NULL};
	struct quorum quorum;
	struct error error;
	int status = cmd_open_quorum(&quorum, settings);

	if (status != 0)
		return status;
	if (shows_progress(settings))
		lister.progress = on_progress;
	if (lock_list(&quorum, settings->key, &lister, &error) < 0)
		status = error.code;
	flush(&printer);
	erase_progress(&printer);
	if (status != 0)
		log_error("%s", error.text);
	else if (printer.failed)
		status = EXIT_SYSTEM;
	buffer_release(&printer.text);
	quorum_release(&quorum);
	return status;
}
