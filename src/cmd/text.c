#include "cmd/text.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/output.h"
#include "cmd/print.h"
#include "lock/trust.h"

#define CELLS 5

/* A line of a table: its cells are made visible, and aligned to the widest. */
struct row {
	struct buffer cell[CELLS];
};

typedef void make_row(struct row *row, const struct holders *holders, size_t n);

/* --- rows ----------------------------------------------------------------- */

static void print_who(struct buffer *text, const struct busy *who)
{
	if (!who->has_description) {
		buffer_print(text, "another program");
		return;
	}
	buffer_print(text, "%s",
		     who->holder.host[0] ? who->holder.host : "somebody");
	if (who->holder.pid > 0)
		buffer_print(text, " pid %" PRId64, who->holder.pid);
	if (who->holder.user[0] != '\0')
		buffer_print(text, " (%s)", who->holder.user);
	if (who->holder.keeper > 0)
		buffer_print(text, ", kept by pid %" PRId64,
			     who->holder.keeper);
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

static void make_holder(struct row *row, const struct holders *holders,
			size_t n)
{
	const struct seen *seen = &holders->holding.seen[n];
	const struct busy *who = &seen->who;

	buffer_print(&row->cell[0], "holder");
	print_who(&row->cell[1], who);
	print_times(&row->cell[2], who);
	if (seen->count > 1)
		buffer_print(&row->cell[3], "%" PRId64 " times", seen->count);
	print_command(&row->cell[4], who);
	if (holders_is_partial(holders, seen))
		buffer_print(&row->cell[4], "%son %zu of %zu servers only",
			     row->cell[4].length > 0 ? ", " : "",
			     seen_count(seen), holders->ballot.quorum->count);
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
		buffer_print(text, "%s", holders_kind_name(seen->wants));
}

static void make_waiter(struct row *row, const struct holders *holders,
			size_t n)
{
	const struct seen *seen = &holders->waiting.seen[n];
	char text[DURATION_TEXT];

	buffer_print(&row->cell[0], "queue %zu", n + 1);
	if (seen->who.has_description)
		print_who(&row->cell[1], &seen->who);
	else
		buffer_print(&row->cell[1], "somebody");
	buffer_print(&row->cell[2], "for %s",
		     duration_format(text, seen->who.held));
	print_wish(&row->cell[3], seen);
	print_command(&row->cell[4], &seen->who);
}

/* Holders, then waiters. */
static void make_person(struct row *row, const struct holders *holders,
			size_t n)
{
	if (n < holders->holding.count)
		make_holder(row, holders, n);
	else
		make_waiter(row, holders, n - holders->holding.count);
}

/* Why the server's grant of a lock would not count now. */
static void print_doubt(struct buffer *text, const struct holders *holders,
			size_t n)
{
	char why[TRUST_TEXT];

	if (holders->standing[n] == STANDING_UNKNOWN)
		return;
	if (holders->replica[n])
		buffer_print(text, ", a replica: it grants no lock");
	else if (trust_is_new(&holders->ballot, n))
		buffer_print(text, ", %s",
			     trust_explain(&holders->ballot, n, why));
}

/* Where Sentinels or nodes have named it. An error names the place itself. */
static void print_place(struct buffer *text, const struct holders *holders,
			size_t n)
{
	const struct server *server = &holders->ballot.quorum->servers[n];
	const struct endpoint *place = server_place(server);
	char name[ENDPOINT_TEXT];

	if (holders->standing[n] != STANDING_UNKNOWN && place != NULL)
		buffer_print(text, ", at %s", endpoint_format(name, place));
}

static void make_server(struct row *row, const struct holders *holders,
			size_t n)
{
	const struct server *server = &holders->ballot.quorum->servers[n];

	buffer_print(&row->cell[0], "server");
	buffer_print(&row->cell[1], "%s", server->url.name);
	switch (holders->standing[n]) {
	case STANDING_HELD:
		buffer_print(&row->cell[2], "held");
		break;
	case STANDING_MISUSED:
		buffer_print(&row->cell[2], "no lock: a %s", holders->type[n]);
		break;
	case STANDING_UNKNOWN:
		buffer_print(&row->cell[2], "%s", server->conn.refusal.text);
		break;
	default:
		buffer_print(&row->cell[2], "free");
	}
	print_place(&row->cell[2], holders, n);
	print_doubt(&row->cell[2], holders, n);
}

/* --- tables --------------------------------------------------------------- */

static void make_visible(struct row *row, const struct holders *holders,
			 size_t n, make_row *make)
{
	struct row raw = {0};

	*row = (struct row){0};
	make(&raw, holders, n);
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

static void print_table(struct buffer *text, const struct holders *holders,
			size_t count, make_row *make)
{
	size_t columns = output_columns(STDOUT_FILENO, 80);
	size_t width[CELLS] = {0};
	struct row row;

	for (size_t n = 0; n < count; n++) {
		make_visible(&row, holders, n, make);
		for (size_t c = 0; c < CELLS; c++)
			if (width_of(&row.cell[c]) > width[c])
				width[c] = width_of(&row.cell[c]);
		release(&row);
	}
	for (size_t n = 0; n < count; n++) {
		make_visible(&row, holders, n, make);
		print_row(text, &row, width, columns);
		release(&row);
	}
}

/* --- a KEY ---------------------------------------------------------------- */

static void print_kind(struct buffer *text, const struct holders *holders)
{
	size_t i = holders_speaker(holders);
	const struct crowd *holding = &holders->holding;

	if (i == holders->ballot.quorum->count)
		return;
	if (holding->count == 0 || !holding->seen[0].who.has_description) {
		buffer_print(text, "held by another program");
		return;
	}
	switch (holders_kind(holders->type[i], holders->permits[i])) {
	case KIND_PERMITS:
		buffer_print(text, "%" PRId64 " of %" PRId64 " permits",
			     holding->total, holders->permits[i]);
		break;
	case KIND_SHARED:
		buffer_print(text, "shared by %" PRId64, holding->total);
		break;
	default:
		buffer_print(
			text, "%s",
			holders_kind_name(holders_kind(holders->type[i], -1)));
	}
}

static void print_state(struct buffer *text, const struct holders *holders,
			const char *state)
{
	size_t answered = holders->ballot.quorum->count -
			  holders_servers(holders, STANDING_UNKNOWN);

	buffer_print(text, "%s: ", holders->names.key.data);
	if (strcmp(state, "unknown") == 0)
		buffer_print(text, "unknown, %zu of %zu servers answered",
			     answered, holders->ballot.quorum->count);
	else if (strcmp(state, "misused") == 0)
		buffer_print(text, "no lock");
	else if (strcmp(state, "free") == 0)
		buffer_print(text, "free");
	else
		print_kind(text, holders);
	if (strcmp(state, "partial") == 0)
		buffer_print(text, ", on too few servers");
	if (holders_fence(holders) > 0)
		buffer_print(text, ", fence %" PRId64, holders_fence(holders));
	if (holders->waiting.total > 0)
		buffer_print(text, ", %" PRId64 " waiting",
			     holders->waiting.total);
}

static void print_more(struct buffer *text, const struct crowd *crowd,
		       const char *what)
{
	int64_t more = crowd->total - (int64_t)crowd->count;

	if (more > 0)
		buffer_print(text, "  and %" PRId64 " more %s\n", more, what);
}

void text_holders(struct buffer *text, const struct holders *holders,
		  const char *state)
{
	struct buffer line = {0};

	print_state(&line, holders, state);
	cmd_add_line(text, &line, STDOUT_FILENO, "\n");
	buffer_release(&line);
	print_table(text, holders,
		    holders->holding.count + holders->waiting.count,
		    make_person);
	print_more(text, &holders->holding, "holders");
	print_more(text, &holders->waiting, "waiting");
	print_table(text, holders, holders->ballot.quorum->count, make_server);
}
