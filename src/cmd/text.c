#include "cmd/text.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/output.h"
#include "cmd/print.h"
#include "lock/trust.h"

#define CELLS 5
#define SHORT_WAIT 1000 /* ms: not worth telling of a run */

/* A line of a table: its cells are made visible, and aligned to the widest. */
struct row {
	struct buffer cell[CELLS];
};

/* Of the n-th of what the table is about. */
typedef void make_row(struct row *row, const void *context, size_t n);

/* --- rows ----------------------------------------------------------------- */

static void print_holder(struct buffer *text, const struct holder *holder)
{
	buffer_print(text, "%s", holder->host[0] ? holder->host : "somebody");
	if (holder->pid > 0)
		buffer_print(text, " pid %" PRId64, holder->pid);
	if (holder->user[0] != '\0')
		buffer_print(text, " (%s)", holder->user);
}

static void print_who(struct buffer *text, const struct busy *who)
{
	if (!who->has_description) {
		buffer_print(text, "another program");
		return;
	}
	print_holder(text, &who->holder);
	if (who->holder.keeper > 0)
		buffer_print(text, ", kept by pid %" PRId64,
			     who->holder.keeper);
}

static void print_command(struct buffer *text, const struct holder *holder)
{
	if (holder->command[0] != '\0')
		buffer_print(text, "'%s'", holder->command);
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

/* If it has been asked to stop. */
static void print_asked(struct buffer *cell, const struct breaker *breaker)
{
	char text[DURATION_TEXT];

	if (breaker->asked < 0)
		return;
	if (cell->length > 0)
		buffer_print(cell, ", ");
	buffer_print(cell, "asked %s ago to stop, ",
		     duration_format(text, breaker->asked));
	record_print_breaker(cell, "", breaker);
}

/* Too few of those that have answered. */
static void print_servers(struct buffer *cell, const struct holders *holders,
			  const struct seen *seen)
{
	size_t silent = holders_servers(holders, STANDING_UNKNOWN);

	buffer_print(cell, "%son %zu of %zu servers%s",
		     cell->length > 0 ? ", " : "", seen_count(seen),
		     holders->ballot.quorum->count, silent > 0 ? "" : " only");
	if (silent > 0)
		buffer_print(cell, ", and %zu did not answer", silent);
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
	if (seen->slot > 0)
		buffer_print(&row->cell[3], "slot %" PRId64, seen->slot);
	print_command(&row->cell[4], &who->holder);
	if (holders_is_partial(holders, seen))
		print_servers(&row->cell[4], holders, seen);
	print_asked(&row->cell[4], &who->holder.breaker);
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
	print_command(&row->cell[4], &seen->who.holder);
}

/* Holders, then waiters. */
static void make_person(struct row *row, const void *context, size_t n)
{
	const struct holders *holders = context;

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

/* Where Sentinels or nodes have named it. An error says so itself. */
static void print_endpoint(struct buffer *text, const struct holders *holders,
			   size_t n)
{
	const struct server *server = &holders->ballot.quorum->servers[n];
	const struct endpoint *endpoint = server_endpoint(server);
	char name[ENDPOINT_TEXT];

	if (holders->standing[n] != STANDING_UNKNOWN && endpoint != NULL)
		buffer_print(text, ", at %s", endpoint_format(name, endpoint));
}

static void print_spoilt(struct buffer *text, const char *before,
			 const struct holders *holders, size_t n)
{
	if (!holders_is_misused(holders, n))
		return;
	buffer_print(text, "%s", before);
	holders_print_spoilt(text, holders, n);
}

static void make_server(struct row *row, const void *context, size_t n)
{
	const struct holders *holders = context;
	const struct server *server = &holders->ballot.quorum->servers[n];

	buffer_print(&row->cell[0], "server");
	buffer_print(&row->cell[1], "%s", server->url.name);
	switch (holders->standing[n]) {
	case STANDING_HELD:
		buffer_print(&row->cell[2], "held");
		print_spoilt(&row->cell[2], ", but ", holders, n);
		break;
	case STANDING_MISUSED:
		buffer_print(&row->cell[2], "no lock: a %s", holders->type[n]);
		break;
	case STANDING_UNKNOWN:
		buffer_print(&row->cell[2], "%s", server->conn.refusal.text);
		break;
	default:
		print_spoilt(&row->cell[2], "no lock: ", holders, n);
		if (row->cell[2].length == 0)
			buffer_print(&row->cell[2], "free");
	}
	print_endpoint(&row->cell[2], holders, n);
	print_doubt(&row->cell[2], holders, n);
}

/* --- tables --------------------------------------------------------------- */

static void make_visible(struct row *row, const void *context, size_t n,
			 make_row *make)
{
	struct row raw = {0};

	*row = (struct row){0};
	make(&raw, context, n);
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

static void print_table(struct buffer *text, const void *context, size_t count,
			make_row *make)
{
	size_t columns = output_columns(STDOUT_FILENO, 80);
	size_t width[CELLS] = {0};
	struct row row;

	for (size_t n = 0; n < count; n++) {
		make_visible(&row, context, n, make);
		for (size_t c = 0; c < CELLS; c++)
			if (width_of(&row.cell[c]) > width[c])
				width[c] = width_of(&row.cell[c]);
		release(&row);
	}
	for (size_t n = 0; n < count; n++) {
		make_visible(&row, context, n, make);
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
			     holders_count(holders), holders->permits[i]);
		break;
	case KIND_SHARED:
		buffer_print(text, "shared by %" PRId64,
			     holders_count(holders));
		break;
	default:
		buffer_print(
			text, "%s",
			holders_kind_name(holders_kind(holders->type[i], -1)));
	}
}

/* A quorum has answered, but it depends on the others whether KEY is held. */
static bool is_perhaps_held(const struct holders *holders, const char *state)
{
	return strcmp(state, "unknown") == 0 &&
	       ballot_has_quorum(&holders->ballot) && !holders->ballot.alias;
}

static void print_state(struct buffer *text, const struct holders *holders,
			const char *state, const struct past_run *last)
{
	size_t answered = holders->ballot.quorum->count -
			  holders_servers(holders, STANDING_UNKNOWN);
	bool perhaps = is_perhaps_held(holders, state);

	buffer_print(text, "%s: ", holders->names.key.data);
	if (strcmp(state, "unknown") == 0 && !perhaps)
		buffer_print(text, "unknown, %zu of %zu servers answered",
			     answered, holders->ballot.quorum->count);
	else if (strcmp(state, "misused") == 0)
		buffer_print(text, "no lock");
	else if (strcmp(state, "free") == 0)
		buffer_print(text, "free");
	else
		print_kind(text, holders);
	if (perhaps || strcmp(state, "partial") == 0)
		buffer_print(text, ", %son too few servers",
			     perhaps ? "perhaps " : "");
	if (holders_fence(holders) > 0)
		buffer_print(text, ", fence %" PRId64, holders_fence(holders));
	if (holders->waiting.total > 0)
		buffer_print(text, ", %" PRId64 " waiting",
			     holders->waiting.total);
	if (last != NULL) {
		buffer_print(text, "; last held by ");
		run_print(text, last);
	}
}

static void print_more(struct buffer *text, const struct crowd *crowd,
		       const char *what)
{
	int64_t more = crowd->total - (int64_t)crowd->count;

	if (more > 0)
		buffer_print(text, "  and %" PRId64 " more %s\n", more, what);
}

void text_holders(struct buffer *text, const struct holders *holders,
		  const char *state, const struct past_run *last)
{
	struct buffer line = {0};

	print_state(&line, holders, state, last);
	cmd_add_line(text, &line, STDOUT_FILENO, "\n");
	buffer_release(&line);
	print_table(text, holders,
		    holders->holding.count + holders->waiting.count,
		    make_person);
	print_more(text, &holders->holding, "holders");
	print_more(text, &holders->waiting, "waiting");
	print_table(text, holders, holders->ballot.quorum->count, make_server);
}

/* --- its history ------------------------------------------------------------ */

static struct tm began_at(const struct past_run *run)
{
	time_t at = (time_t)((clock_wall_ms() - run->age) / 1000);
	struct tm local = {0};

	localtime_r(&at, &local);
	return local;
}

/* Where a summer ends, an hour comes twice. */
static bool have_one_offset(const struct history *history)
{
	for (size_t n = 1; n < history->count; n++)
		if (began_at(&history->run[n]).tm_gmtoff !=
		    began_at(&history->run[0]).tm_gmtoff)
			return false;
	return true;
}

static void print_date(struct buffer *text, const struct history *history,
		       size_t n)
{
	struct tm local = began_at(&history->run[n]);
	char date[32];

	if (strftime(date, sizeof(date),
		     have_one_offset(history) ? "%F %T" : "%F %T %z",
		     &local) > 0)
		buffer_print(text, "%s", date);
}

static void make_run(struct row *row, const void *context, size_t n)
{
	const struct history *history = context;
	const struct past_run *run = &history->run[n];
	char text[DURATION_TEXT];

	print_date(&row->cell[0], history, n);
	print_holder(&row->cell[1], &run->who);
	buffer_print(&row->cell[2], "for %s", duration_format(text, run->held));
	if (run->waited >= SHORT_WAIT)
		buffer_print(&row->cell[2], " after %s",
			     duration_format(text, run->waited));
	run_print_end(&row->cell[3], run);
	print_command(&row->cell[4], &run->who);
}

/* The oldest on the left, as high as the longest was long. */
static void print_bars(struct buffer *text, const struct history *history)
{
	static const char *const bars[] = {"\u2581", "\u2582", "\u2583",
					   "\u2585", "\u2587"};
	const int64_t most = sizeof(bars) / sizeof(bars[0]) - 1;
	int64_t longest = history_longest(history);

	if (longest < 0 || !output_utf8() || !isatty(STDOUT_FILENO))
		return;
	buffer_print(text, "  ");
	for (size_t n = history->count; n-- > 0;) {
		const struct past_run *run = &history->run[n];

		if (run->end == RUN_UNKNOWN)
			buffer_print(text, "?");
		else
			buffer_print(
				text, "%s",
				bars[longest > 0 ? run->held * most / longest
						 : 0]);
	}
	buffer_print(text, "\n");
}

static void print_summary(struct buffer *text, const struct history *history)
{
	size_t failed = 0;
	char time[DURATION_TEXT];

	buffer_print(text, "%s: ", history->names.key.data);
	if (history->count == 0) {
		buffer_print(text, "no run is known");
		return;
	}
	for (size_t n = 0; n < history->count; n++)
		failed += run_failed(&history->run[n]);
	buffer_print(text, "%zu run%s", history->count,
		     history->count == 1 ? "" : "s");
	if (history_usual(history) >= 0) {
		buffer_print(text, ", median %s",
			     duration_format(time, history_usual(history)));
		buffer_print(text, ", longest %s",
			     duration_format(time, history_longest(history)));
	}
	buffer_print(text, ", %zu%% failed", 100 * failed / history->count);
}

void text_history(struct buffer *text, const struct history *history)
{
	struct buffer line = {0};

	print_summary(&line, history);
	cmd_add_line(text, &line, STDOUT_FILENO, "\n");
	buffer_release(&line);
	print_bars(text, history);
	print_table(text, history, history->count, make_run);
}
