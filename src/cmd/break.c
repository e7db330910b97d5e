#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cmd/session.h"
#include "settings/command.h"
#include "base/duration.h"
#include "show/inspect.h"

static int write_line(int fd, const struct buffer *line, const char *end)
{
	struct buffer text = {0};
	int result;

	cmd_add_line(&text, line, fd);
	buffer_print(&text, "%s", end);
	result = fd == STDOUT_FILENO ? cmd_print(text.data, text.length)
				     : output_write(fd, text.data, text.length);
	buffer_release(&text);
	return result;
}

/* --- asking --------------------------------------------------------------- */

/* The one that has a quorum, or else the first. */
static const struct seen *main_holder(const struct view *view)
{
	for (size_t n = 0; n < view->holders.count; n++)
		if (!view_is_partial(view, &view->holders.seen[n]))
			return &view->holders.seen[n];
	return view->holders.count > 0 ? &view->holders.seen[0] : NULL;
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

static bool prompt(const struct view *view, const struct seen *holder)
{
	struct buffer line = {0};
	struct busy who =
		holder != NULL ? holder->who : (struct busy){.held = -1};

	who.told = false; /* what is left of the lease is no matter */
	buffer_print(&line, "break %s, ", view->lock.key.data);
	record_print_busy(&line, &who);
	if (view->holders.total > 1)
		buffer_print(&line, ", and %" PRId64 " more",
			     view->holders.total - 1);
	write_line(STDERR_FILENO, &line, "? [y/N] ");
	buffer_release(&line);
	return read_yes();
}

/* 0 with the mark of the holder that may lose KEY, or an exit status. */
static int confirm(struct view *view, bool foreign, char mark[MARK_SIZE])
{
	const struct seen *holder;
	struct error error;
	bool misused;

	if (lock_inspect(view, &error) < 0) {
		log_error("%s: %s", view->lock.key.data, error.text);
		return error.code;
	}
	holder = main_holder(view);
	misused = view_count(view, STANDING_MISUSED) > 0;
	if (view_count(view, STANDING_HELD) == 0 && !(misused && foreign)) {
		log_error("%s: %s", view->lock.key.data,
			  misused ? "it is not a lock: it stays as it is; "
				    "--foreign deletes it"
				  : "not held");
		return misused ? EXIT_MISUSED : EXIT_NOT_HELD;
	}
	if (!prompt(view, holder))
		return EXIT_NOT_HELD;
	if (holder != NULL)
		memcpy(mark, holder->mark, MARK_SIZE);
	return 0;
}

/* --- breaking ------------------------------------------------------------- */

static int print_evicted(const struct view *view)
{
	const struct crowd *holders = &view->holders;
	struct buffer line = {0};
	char text[DURATION_TEXT];
	int result = 0;

	for (size_t n = 0; n < holders->count; n++) {
		const struct busy *who = &holders->seen[n].who;

		line.length = 0;
		buffer_print(&line, "%s: evicted ", view->lock.key.data);
		if (who->known)
			record_print_holder(&line, &who->holder);
		else
			buffer_print(&line, "another program");
		if (who->held >= 0)
			buffer_print(&line, ", held for %s",
				     duration_format(text, who->held));
		result |= write_line(STDOUT_FILENO, &line, "\n");
	}
	if (holders->total > (int64_t)holders->count) {
		line.length = 0;
		buffer_print(&line, "%s: evicted %" PRId64 " more",
			     view->lock.key.data,
			     holders->total - (int64_t)holders->count);
		result |= write_line(STDOUT_FILENO, &line, "\n");
	}
	buffer_release(&line);
	return result;
}

static int break_lock(struct view *view, const char *mark,
		      const struct settings *settings)
{
	struct error error;
	bool answered = lock_break(view, mark, settings->foreign, &error) == 0;
	int printed = settings->quiet ? 0 : print_evicted(view);

	if (!answered) {
		log_error("%s: %s", view->lock.key.data, error.text);
		return error.code;
	}
	if (view_count(view, STANDING_HELD) > 0)
		return printed < 0 ? EXIT_SYSTEM : EXIT_DONE;
	log_error("%s: %s", view->lock.key.data,
		  view_count(view, STANDING_CHANGED) > 0
			  ? "someone else holds it by now: nothing was broken"
			  : "not held");
	return EXIT_NOT_HELD;
}

int cmd_break(struct settings *settings)
{
	char mark[MARK_SIZE] = "";
	struct session session;
	struct view view;
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
	view_init(&view, &session.quorum, settings->key);
	if (!settings->yes)
		status = confirm(&view, settings->foreign, mark);
	if (status == 0)
		status = break_lock(&view, mark, settings);
	view_release(&view);
	cmd_close(&session);
	return status;
}
