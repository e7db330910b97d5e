#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cmd/journal.h"
#include "cmd/print.h"
#include "cmd/session.h"
#include "settings/command.h"
#include "base/output.h"
#include "base/duration.h"
#include "show/inspect.h"

/* --- asking --------------------------------------------------------------- */

/* The holder with a quorum, or else the first. */
static const struct seen *main_holder(const struct holders *holders)
{
	for (size_t n = 0; n < holders->holding.count; n++)
		if (!holders_is_partial(holders, &holders->holding.seen[n]))
			return &holders->holding.seen[n];
	return holders->holding.count > 0 ? &holders->holding.seen[0] : NULL;
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

static bool prompt(const struct holders *holders, const struct seen *holder)
{
	struct buffer line = {0}, text = {0};
	struct busy who =
		holder != NULL ? holder->who : (struct busy){.held = -1};

	who.has_reply = false; /* what is left of the lease does not matter */
	buffer_print(&line, "break %s, ", holders->names.key.data);
	record_print_busy(&line, &who);
	if (holders->holding.total > 1)
		buffer_print(&line, ", and %" PRId64 " more",
			     holders->holding.total - 1);
	cmd_add_line(&text, &line, STDERR_FILENO, "? [y/N] ");
	(void)output_write(STDERR_FILENO, text.data, text.length);
	buffer_release(&line);
	buffer_release(&text);
	return read_yes();
}

/* 0 with the digest of the holder that may lose KEY, or an exit status. */
static int confirm(struct holders *holders, bool foreign,
		   char digest[DIGEST_SIZE])
{
	const struct seen *holder;
	struct error error;
	bool misused;

	if (inspect_lock(holders, &error) < 0) {
		log_error("%s: %s", holders->names.key.data, error.text);
		return error.code;
	}
	holder = main_holder(holders);
	misused = holders_servers(holders, STANDING_MISUSED) > 0;
	if (holders_servers(holders, STANDING_HELD) == 0 &&
	    !(misused && foreign)) {
		log_error("%s: %s", holders->names.key.data,
			  misused ? "it is not a lock: it stays as it is; "
				    "--foreign deletes it"
				  : "not held");
		return misused ? EXIT_MISUSED : EXIT_NOT_HELD;
	}
	if (!prompt(holders, holder))
		return EXIT_NOT_HELD;
	if (holder != NULL)
		memcpy(digest, holder->digest, DIGEST_SIZE);
	return 0;
}

/* --- breaking ------------------------------------------------------------- */

/* 0, or an exit status. */
static int print_evicted(const struct holders *holders)
{
	const struct crowd *holding = &holders->holding;
	struct buffer line = {0}, lines = {0};
	char text[DURATION_TEXT];
	int status;

	for (size_t n = 0; n < holding->count; n++) {
		const struct busy *who = &holding->seen[n].who;

		line.length = 0;
		buffer_print(&line, "%s: evicted ", holders->names.key.data);
		if (who->has_description)
			record_print_holder(&line, &who->holder);
		else
			buffer_print(&line, "another program");
		if (who->held >= 0)
			buffer_print(&line, ", held for %s",
				     duration_format(text, who->held));
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

static int break_lock(struct holders *holders, const char *digest,
		      const struct settings *settings)
{
	struct error error;
	bool answered =
		inspect_break(holders, digest, settings->foreign, &error) == 0;
	int printed = settings->quiet ? 0 : print_evicted(holders);

	if (!answered) {
		log_error("%s: %s", holders->names.key.data, error.text);
		return error.code;
	}
	if (holders_servers(holders, STANDING_HELD) > 0) {
		journal_broken(settings, holders_fence(holders),
			       holders->holding.count > 0
				       ? &holders->holding.seen[0].who
				       : NULL);
		return printed;
	}
	log_error("%s: %s", holders->names.key.data,
		  holders_servers(holders, STANDING_CHANGED) > 0
			  ? "someone else holds it now: nothing was broken"
			  : "not held");
	return EXIT_NOT_HELD;
}

int cmd_break(struct settings *settings)
{
	char digest[DIGEST_SIZE] = "";
	struct session session;
	struct holders holders;
	int status;

	if (!settings->yes &&
	    !(isatty(STDIN_FILENO) && isatty(STDERR_FILENO))) {
		log_error("%s: there is no terminal to ask on: break needs -y",
			  settings->key);
		return EXIT_USAGE;
	}
	status = cmd_open(&session, settings);
	if (status != 0)
		return status;
	holders_init(&holders, &session.quorum, settings->key);
	if (!settings->yes)
		status = confirm(&holders, settings->foreign, digest);
	if (status == 0)
		status = break_lock(&holders, digest, settings);
	holders_release(&holders);
	cmd_close(&session);
	return status;
}
