#include "settings/help.h"

#include <string.h>

#include "settings/options.h"
#include "base/output.h"

#define COLUMNS 80
#define LINES 23 /* and the shell's prompt */
#define LEFT 34  /* columns before the description */

/* Those that are needed most, in this order. */
static const char first[][19] = {
	"nonblock",  "wait",       "ttl",
	"pid",       "server",     "conflict-exit-code",
	"command",   "shared",     "permits",
	"reentrant", "min-hold",   "max-hold",
	"label",     "format",     "output",
	"max-age",   "warn-age",   "max-held",
	"warn-held", "max-wait",   "warn-wait",
	"max-queue", "warn-queue", "yes",
	"accept",    "quiet",      "verbose",
	"help",
};

/* The last one is for options that are in no other. */
static const struct group {
	const char *title, *names;
} groups[] = {
	{"Waiting", "nonblock wait conflict-exit-code poll tries"},
	{"The lock",
	 "ttl exclusive shared permits reentrant also token label quarantine "
	 "replicas remember"},
	{"COMMAND",
	 "command pid min-hold max-hold once-in kill-after on-lost unreachable "
	 "status-fd"},
	{"Limits",
	 "max-age warn-age max-held warn-held max-wait warn-wait max-queue "
	 "warn-queue"},
	{"Servers", "server config set server-timeout"},
	{"TLS (rediss://)", "cacert crl cert key-file sni insecure"},
	{"Other", ""},
};

#define GROUPS (sizeof(groups) / sizeof(groups[0]))

static void print_row(struct buffer *text, const struct command *command,
		      const struct option *option)
{
	struct buffer row = {0};

	if (option->letter != 0)
		buffer_print(&row, "  -%c, ", option->letter);
	else
		buffer_print(&row, "      ");
	if (option->other_letter != 0)
		buffer_print(&row, "-%c, ", option->other_letter);
	buffer_print(&row, "--%s", option->name);
	if (option->other[0] != '\0')
		buffer_print(&row, ", --%s", option->other);
	if (option->takes == TAKES_VALUE)
		buffer_print(&row, " %s", option->value);
	else if (option->takes == MAY_TAKE_VALUE)
		buffer_print(&row, "[=%s]", option->value);
	buffer_print(&row, "%*s%s",
		     row.length + 2 > LEFT ? 2 : (int)(LEFT - row.length), "",
		     options_help(option, command->id));
	output_wrap(text, row.data, row.length, COLUMNS, LEFT);
	buffer_append(text, "\n", 1);
	buffer_release(&row);
}

static bool takes(const struct command *command, size_t i)
{
	return options[i].commands & command->id;
}

static size_t rank_of(const struct option *option)
{
	size_t count = sizeof(first) / sizeof(first[0]);

	for (size_t n = 0; n < count; n++)
		if (strcmp(option->name, first[n]) == 0)
			return n;
	return count;
}

/* Lists the options that are needed most, then, if wished, the others. Returns
 * how many were left out. */
static size_t print_list(struct buffer *text, const struct command *command,
			 bool others)
{
	size_t ranks = sizeof(first) / sizeof(first[0]), left_out = 0;

	for (size_t rank = 0; rank <= ranks; rank++)
		for (size_t i = 0; i < option_count; i++) {
			if (!takes(command, i) || rank_of(&options[i]) != rank)
				continue;
			if (rank < ranks || others)
				print_row(text, command, &options[i]);
			else
				left_out++;
		}
	return left_out;
}

static size_t group_of(const struct option *option)
{
	for (size_t g = 0; g < GROUPS; g++)
		if (options_is_among(option, groups[g].names))
			return g;
	return GROUPS - 1;
}

static bool has_durations(const struct command *command)
{
	for (size_t i = 0; i < option_count; i++)
		if (takes(command, i) &&
		    strcmp(options[i].value, "DURATION") == 0)
			return true;
	return false;
}

static void print_groups(struct buffer *text, const struct command *command)
{
	for (size_t g = 0; g < GROUPS; g++) {
		const char *title = groups[g].title;

		for (size_t i = 0; i < option_count; i++) {
			if (!takes(command, i) || group_of(&options[i]) != g)
				continue;
			if (title != NULL)
				buffer_print(text, "\n%s:\n", title);
			title = NULL;
			print_row(text, command, &options[i]);
		}
	}
	if (has_durations(command))
		buffer_print(
			text,
			"\nA DURATION is a number with ms, s, m, h or d, or "
			"several: 500ms, 1.5s, 1h30m.\n"
			"A number alone means seconds, up to 3600.\n");
}

static size_t lines_in(const struct buffer *text)
{
	size_t lines = 0;

	for (size_t i = 0; i < text->length; i++)
		lines += text->data[i] == '\n';
	return lines;
}

void help_print(struct buffer *text, const struct command *command, bool all)
{
	size_t before, left_out;

	buffer_print(text, "usage: redlock %s\n\n%s\n", command->usage,
		     command->summary);
	before = text->length;
	if (all) {
		print_groups(text, command);
		return;
	}
	buffer_print(text, "\n");
	print_list(text, command, true);
	if (lines_in(text) <= LINES)
		return;
	text->length = before;
	buffer_print(text, "\n");
	left_out = print_list(text, command, false);
	buffer_print(text,
		     "\nredlock %s --help=all lists %zu more options, "
		     "--help=man explains them.\n",
		     command->name, left_out);
}
