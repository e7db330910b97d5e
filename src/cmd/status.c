#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cmd/session.h"
#include "cmd/json.h"
#include "settings/command.h"
#include "base/duration.h"
#include "show/inspect.h"
#include "lock/trust.h"

#define CELLS 5

/* A line of a table: its cells are made visible, and aligned to the widest. */
struct row {
	struct buffer cell[CELLS];
};

typedef void make_row(struct row *row, const struct view *view, size_t n);

static const char *state_of(const struct view *view, bool answered)
{
	size_t need = quorum_size(view->lock.quorum);

	if (!answered)
		return "unknown";
	for (size_t n = 0; n < view->holders.count; n++)
		if (!view_is_partial(view, &view->holders.seen[n]))
			return "held";
	if (view_count(view, STANDING_MISUSED) >= need)
		return "misused";
	/* another program's, of which there is nothing to show */
	if (view->holders.count == 0 && view_count(view, STANDING_HELD) >= need)
		return "held";
	return view_count(view, STANDING_HELD) > 0 ? "partial" : "free";
}

/* --- rows ----------------------------------------------------------------- */

static void print_who(struct buffer *text, const struct busy *who)
{
	if (!who->known) {
		buffer_print(text, "another program");
		return;
	}
	buffer_print(text, "%s",
		     who->holder.host[0] ? who->holder.host : "somebody");
	if (who->holder.pid > 0)
		buffer_print(text, " pid %" PRId64, who->holder.pid);
	if (who->holder.user[0] != '\0')
		buffer_print(text, " (%s)", who->holder.user);
}

static void print_command(struct buffer *text, const struct busy *who)
{
	if (who->holder.command[0] != '\0')
		buffer_print(text, "'%s'", who->holder.command);
}

static void print_times(struct buffer *cell, const struct busy *who)
{
	bool left = who->left < 0 || record_tells_left(who);
	char text[DURATION_TEXT];

	if (who->held >= 0)
		buffer_print(cell, "for %s%s", duration_format(text, who->held),
			     left ? ", " : "");
	if (who->left < 0)
		buffer_print(cell, "no expiry");
	else if (left)
		buffer_print(cell, "%s left", duration_format(text, who->left));
}

static void make_holder(struct row *row, const struct view *view, size_t n)
{
	const struct seen *seen = &view->holders.seen[n];
	const struct busy *who = &seen->who;

	buffer_print(&row->cell[0], "holder");
	print_who(&row->cell[1], who);
	print_times(&row->cell[2], who);
	if (seen->count > 1)
		buffer_print(&row->cell[3], "%" PRId64 " times", seen->count);
	print_command(&row->cell[4], who);
	if (view_is_partial(view, seen))
		buffer_print(&row->cell[4], "%son %zu of %zu servers only",
			     row->cell[4].length > 0 ? ", " : "",
			     seen_count(seen), view->lock.quorum->count);
}

static void print_wish(struct buffer *text, const struct seen *seen)
{
	if (!seen->wish_known)
		return;
	if (seen->wants == KIND_PERMITS)
		buffer_print(text, "1 of %" PRId64 " permits", seen->permits);
	else if (seen->wants == KIND_NONE)
		buffer_print(text, "takes nothing");
	else
		buffer_print(text, "%s", view_kind_name(seen->wants));
}

static void make_waiter(struct row *row, const struct view *view, size_t n)
{
	const struct seen *seen = &view->waiters.seen[n];
	char text[DURATION_TEXT];

	buffer_print(&row->cell[0], "queue %zu", n + 1);
	if (seen->who.known)
		print_who(&row->cell[1], &seen->who);
	else
		buffer_print(&row->cell[1], "somebody");
	buffer_print(&row->cell[2], "for %s",
		     duration_format(text, seen->who.held));
	print_wish(&row->cell[3], seen);
	print_command(&row->cell[4], &seen->who);
}

/* Holders, then waiters. */
static void make_person(struct row *row, const struct view *view, size_t n)
{
	if (n < view->holders.count)
		make_holder(row, view, n);
	else
		make_waiter(row, view, n - view->holders.count);
}

/* Why the server's grant of a lock would not count now. */
static void print_doubt(struct buffer *text, const struct view *view, size_t n)
{
	char why[TRUST_TEXT];

	if (view->standing[n] == STANDING_UNKNOWN)
		return;
	if (view->replica[n])
		buffer_print(text, ", a replica: it grants no lock");
	else if (trust_is_new(&view->lock, n))
		buffer_print(text, ", %s", trust_explain(&view->lock, n, why));
}

static void make_server(struct row *row, const struct view *view, size_t n)
{
	const struct server *server = &view->lock.quorum->servers[n];

	buffer_print(&row->cell[0], "server");
	buffer_print(&row->cell[1], "%s", server->url.name);
	switch (view->standing[n]) {
	case STANDING_HELD:
		buffer_print(&row->cell[2], "held");
		break;
	case STANDING_MISUSED:
		buffer_print(&row->cell[2], "no lock: a %s", view->type[n]);
		break;
	case STANDING_UNKNOWN:
		buffer_print(&row->cell[2], "%s", server->why);
		break;
	default:
		buffer_print(&row->cell[2], "free");
	}
	print_doubt(&row->cell[2], view, n);
}

/* --- tables --------------------------------------------------------------- */

static void make_visible(struct row *row, const struct view *view, size_t n,
			 make_row *make)
{
	struct row raw = {0};

	*row = (struct row){0};
	make(&raw, view, n);
	for (size_t c = 0; c < CELLS; c++) {
		output_visible(&row->cell[c], raw.cell[c].data,
			       raw.cell[c].length, output_utf8());
		buffer_release(&raw.cell[c]);
	}
}

static void release(struct row *row)
{
	for (size_t c = 0; c < CELLS; c++)
		buffer_release(&row->cell[c]);
}

static size_t width_of(const struct buffer *text)
{
	return output_width(text->data, text->length);
}

/* On a terminal that is too narrow, a cell that does not fit begins a new line,
 * under the second cell. columns: 0 if it is no terminal. */
static void print_row(struct buffer *text, const struct row *row,
		      const size_t width[CELLS], size_t columns)
{
	size_t indent = width[0] + 4, at = 0;
	size_t owed = 2; /* blanks before the next cell that has a text */

	for (size_t c = 0; c < CELLS; c++) {
		size_t own = width_of(&row->cell[c]);
		bool broken = columns > 0 && c > 1 && at + owed + own > columns;

		if (own > 0 && broken) {
			buffer_append(text, "\n", 1);
			owed = indent;
			at = 0;
		}
		if (own > 0) {
			buffer_print(text, "%*s", (int)owed, "");
			output_wrap(text, row->cell[c].data,
				    row->cell[c].length, columns, indent);
			at += owed + own;
			owed = 0;
		}
		if (width[c] > 0)
			owed += (broken ? own : width[c]) - own + 2;
	}
	buffer_append(text, "\n", 1);
}

static void print_table(struct buffer *text, const struct view *view,
			size_t count, make_row *make)
{
	size_t columns = output_columns(STDOUT_FILENO, 80);
	size_t width[CELLS] = {0};
	struct row row;

	for (size_t n = 0; n < count; n++) {
		make_visible(&row, view, n, make);
		for (size_t c = 0; c < CELLS; c++)
			if (width_of(&row.cell[c]) > width[c])
				width[c] = width_of(&row.cell[c]);
		release(&row);
	}
	for (size_t n = 0; n < count; n++) {
		make_visible(&row, view, n, make);
		print_row(text, &row, width, columns);
		release(&row);
	}
}

/* --- a KEY ---------------------------------------------------------------- */

static void print_kind(struct buffer *text, const struct view *view)
{
	size_t i = view_speaker(view);
	const struct crowd *holders = &view->holders;

	if (i == view->lock.quorum->count)
		return;
	if (holders->count == 0 || !holders->seen[0].who.known) {
		buffer_print(text, "held by another program");
		return;
	}
	switch (view_kind(view->type[i], view->permits[i])) {
	case KIND_PERMITS:
		buffer_print(text, "%" PRId64 " of %" PRId64 " permits",
			     holders->total, view->permits[i]);
		break;
	case KIND_SHARED:
		buffer_print(text, "shared by %" PRId64, holders->total);
		break;
	default:
		buffer_print(text, "%s",
			     view_kind_name(view_kind(view->type[i], -1)));
	}
}

static void print_state(struct buffer *text, const struct view *view,
			const char *state)
{
	size_t answered =
		view->lock.quorum->count - view_count(view, STANDING_UNKNOWN);

	buffer_print(text, "%s: ", view->lock.key.data);
	if (strcmp(state, "unknown") == 0)
		buffer_print(text, "unknown, %zu of %zu servers answered",
			     answered, view->lock.quorum->count);
	else if (strcmp(state, "misused") == 0)
		buffer_print(text, "no lock");
	else if (strcmp(state, "free") == 0)
		buffer_print(text, "free");
	else
		print_kind(text, view);
	if (strcmp(state, "partial") == 0)
		buffer_print(text, ", on too few servers");
	if (view_fence(view) > 0)
		buffer_print(text, ", fence %" PRId64, view_fence(view));
	if (view->waiters.total > 0)
		buffer_print(text, ", %" PRId64 " waiting",
			     view->waiters.total);
}

static void print_more(struct buffer *text, const struct crowd *crowd,
		       const char *what)
{
	int64_t more = crowd->total - (int64_t)crowd->count;

	if (more > 0)
		buffer_print(text, "  and %" PRId64 " more %s\n", more, what);
}

static void print_people(struct buffer *text, const struct view *view,
			 const char *state)
{
	struct buffer line = {0};

	print_state(&line, view, state);
	cmd_add_line(text, &line, STDOUT_FILENO);
	buffer_append(text, "\n", 1);
	buffer_release(&line);
	print_table(text, view, view->holders.count + view->waiters.count,
		    make_person);
	print_more(text, &view->holders, "holders");
	print_more(text, &view->waiters, "waiting");
	print_table(text, view, view->lock.quorum->count, make_server);
}

static int show(struct quorum *quorum, const struct settings *settings,
		const char *key)
{
	struct buffer text = {0};
	struct view view;
	struct error error;
	bool answered;
	int status;

	view_init(&view, quorum, key);
	view.lock.quarantine = settings->quarantine;
	answered = lock_inspect(&view, &error) == 0;
	if (settings->format == FORMAT_JSON)
		json_view(&text, &view, state_of(&view, answered));
	else
		print_people(&text, &view, state_of(&view, answered));
	status = cmd_show(text.data, text.length);
	if (!answered) {
		log_error("%s: %s", key, error.text);
		status = error.code;
	}
	buffer_release(&text);
	view_release(&view);
	return status;
}

static int ask_quietly(struct quorum *quorum, const struct settings *settings)
{
	struct view view;
	struct error error;
	int held;

	view_init(&view, quorum, settings->key);
	held = lock_is_held(&view, settings->token, &error);
	if (held < 0)
		log_error("%s: %s", settings->key, error.text);
	view_release(&view);
	return held < 0 ? error.code : held ? EXIT_DONE : EXIT_NOT_HELD;
}

int cmd_status(struct settings *settings)
{
	struct quorum quorum;
	int status = cmd_open_quorum(&quorum, settings);

	if (status != 0)
		return status;
	if (settings->quiet)
		status = ask_quietly(&quorum, settings);
	for (size_t k = 0; k < settings->key_count && !settings->quiet; k++) {
		int shown = show(&quorum, settings, settings->keys[k]);

		if (status == EXIT_DONE)
			status = shown;
	}
	quorum_release(&quorum);
	return status;
}
