#include "options.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "duration.h"
#include "signals.h"

#define RUN COMMAND_RUN
#define ACQUIRE COMMAND_ACQUIRE
#define RELEASE COMMAND_RELEASE
#define EXTEND COMMAND_EXTEND
#define TAKING (RUN | ACQUIRE)
#define ALL (RUN | ACQUIRE | RELEASE | EXTEND)

#define QUOTED_LONGEST 64  /* bytes of an argument in an error */

/* What a setter says: NULL, or what an option's value should have been. */
typedef const char *setter(struct settings *settings, char *value,
			   struct error *error);

#define WANT_DURATION "a DURATION such as 500ms, 30s or 2m"

static const char *set_positive(int64_t *to, const char *value)
{
	return duration_parse(value, to) < 0 || *to <= 0 ?
		WANT_DURATION " (more than 0)" : NULL;
}

static const char *set_any(int64_t *to, const char *value)
{
	return duration_parse(value, to) < 0 ? WANT_DURATION : NULL;
}

/* Plain digits from least to most: no sign, no blank. */
static int parse_number(const char *value, long least, long most, long *number)
{
	char *end;

	if (strspn(value, "0123456789") != strlen(value) || *value == '\0')
		return -1;
	errno = 0;
	*number = strtol(value, &end, 10);
	return errno != 0 || *number < least || *number > most ? -1 : 0;
}

static const char *set_server(struct settings *settings, char *value,
			      struct error *error)
{
	return config_add_servers(settings, value, error) < 0 ? "" : NULL;
}

static const char *set_timeout(struct settings *settings, char *value,
			       struct error *error)
{
	(void)error;
	return set_positive(&settings->timeout, value);
}

static const char *set_ttl(struct settings *settings, char *value,
			   struct error *error)
{
	(void)error;
	return set_positive(&settings->ttl, value);
}

static const char *set_nonblock(struct settings *settings, char *value,
				struct error *error)
{
	(void)value;
	(void)error;
	settings->nonblock = true;
	settings->patience.wait = false;
	return NULL;
}

static const char *set_wait(struct settings *settings, char *value,
			    struct error *error)
{
	(void)error;
	settings->limited = true;
	return set_any(&settings->patience.limit, value);
}

static const char *set_conflict(struct settings *settings, char *value,
				struct error *error)
{
	long number;

	(void)error;
	if (parse_number(value, 0, 255, &number) < 0)
		return "a number from 0 to 255";
	settings->conflict_code = (int)number;
	return NULL;
}

static const char *set_exclusive(struct settings *settings, char *value,
				 struct error *error)
{
	(void)settings;
	(void)value;
	(void)error;
	return NULL; /* the one kind there is, named */
}

static const char *set_poll(struct settings *settings, char *value,
			    struct error *error)
{
	(void)error;
	settings->poll = true;
	return value == NULL ? NULL :
		set_positive(&settings->patience.every, value);
}

static const char *set_tries(struct settings *settings, char *value,
			     struct error *error)
{
	long number;

	(void)error;
	if (parse_number(value, 1, INT_MAX, &number) < 0)
		return "a number from 1 on";
	settings->poll = true;
	settings->patience.tries = (unsigned long)number;
	return NULL;
}

static const char *set_quarantine(struct settings *settings, char *value,
				  struct error *error)
{
	(void)error;
	return set_any(&settings->quarantine, value);
}

static const char *set_label(struct settings *settings, char *value,
			     struct error *error)
{
	(void)error;
	settings->label = value;
	return *value == '\0' ? "a text" : NULL;
}

static const char *set_kill_after(struct settings *settings, char *value,
				  struct error *error)
{
	(void)error;
	return set_any(&settings->kill_after, value);
}

static const char *set_on_lost(struct settings *settings, char *value,
			       struct error *error)
{
	(void)error;
	if (strcmp(value, "kill") == 0) {
		settings->on_lost = ON_LOST_KILL;
	} else if (strcmp(value, "warn") == 0) {
		settings->on_lost = ON_LOST_WARN;
	} else {
		settings->on_lost = ON_LOST_SIGNAL;
		settings->lost_signal = signals_parse(value);
		if (settings->lost_signal == 0)
			return "kill, warn or a signal's name";
	}
	return NULL;
}

static const char *set_shell_command(struct settings *settings, char *value,
				     struct error *error)
{
	(void)error;
	settings->shell_command = value;
	return *value == '\0' ? "a shell command" : NULL;
}

static const char *set_status_fd(struct settings *settings, char *value,
				 struct error *error)
{
	long number;
	int flags;

	(void)error;
	if (parse_number(value, 0, INT_MAX, &number) < 0)
		return "the number of an open descriptor";
	flags = fcntl((int)number, F_GETFL);
	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
		return "the number of a descriptor that is open for writing";
	settings->status_fd = (int)number;
	return NULL;
}

static const char *set_format(struct settings *settings, char *value,
			      struct error *error)
{
	(void)error;
	if (strcmp(value, "shell") == 0)
		settings->format = FORMAT_SHELL;
	else if (strcmp(value, "json") == 0)
		settings->format = FORMAT_JSON;
	else
		return "shell or json";
	return NULL;
}

static const char *set_quiet(struct settings *settings, char *value,
			     struct error *error)
{
	(void)value;
	(void)error;
	if (settings->log_level == LOG_VERBOSE)
		return "used without --verbose";
	settings->log_level = LOG_QUIET;
	return NULL;
}

static const char *set_verbose(struct settings *settings, char *value,
			       struct error *error)
{
	(void)value;
	(void)error;
	if (settings->log_level == LOG_QUIET)
		return "used without --quiet";
	settings->log_level = LOG_VERBOSE;
	return NULL;
}

static const char *set_help(struct settings *settings, char *value,
			    struct error *error)
{
	(void)value;
	(void)error;
	settings->help = true;
	return NULL;
}

enum takes { TAKES_NOTHING, TAKES_VALUE, MAY_TAKE_VALUE };

static const struct option {
	char letter;             /* 0: none */
	const char *name;
	enum takes takes;
	const char *value;       /* its name in help */
	unsigned commands;       /* enum command_id */
	setter *set;
	const char *help;
} options[] = {
	{'S', "server", TAKES_VALUE, "URL", ALL, set_server,
	 "a server; again, or with commas, for each further one"},
	{0, "timeout", TAKES_VALUE, "DURATION", ALL, set_timeout,
	 "the longest that one round with the servers takes (1s)"},
	{'t', "ttl", TAKES_VALUE, "DURATION", TAKING | EXTEND, set_ttl,
	 "the lease (30s)"},
	{'n', "nonblock", TAKES_NOTHING, NULL, TAKING, set_nonblock,
	 "do not wait"},
	{'w', "wait", TAKES_VALUE, "DURATION", TAKING, set_wait,
	 "wait no longer than this (for ever)"},
	{'E', "conflict-exit-code", TAKES_VALUE, "N", TAKING, set_conflict,
	 "exit status where KEY is held by others (75)"},
	{'x', "exclusive", TAKES_NOTHING, NULL, TAKING, set_exclusive,
	 "one holder at a time (the default)"},
	{0, "poll", MAY_TAKE_VALUE, "DURATION", TAKING, set_poll,
	 "try again and again, every DURATION (growing, to 128ms)"},
	{0, "tries", TAKES_VALUE, "N", TAKING, set_tries,
	 "give up after N attempts"},
	{0, "quarantine", TAKES_VALUE, "DURATION", TAKING, set_quarantine,
	 "a server up for less has no vote (ttl, with 3 servers or more)"},
	{0, "label", TAKES_VALUE, "TEXT", TAKING, set_label,
	 "shown to those who find KEY held (the command line)"},
	{'k', "kill-after", TAKES_VALUE, "DURATION", RUN, set_kill_after,
	 "between SIGTERM and SIGKILL (a sixth of the ttl, 5s at most)"},
	{0, "on-lost", TAKES_VALUE, "kill|warn|SIGNAL", RUN, set_on_lost,
	 "what a lost lock means for COMMAND (kill)"},
	{'c', "command", TAKES_VALUE, "STRING", RUN, set_shell_command,
	 "run STRING with $SHELL -c"},
	{0, "status-fd", TAKES_VALUE, "N", RUN, set_status_fd,
	 "write how it went to descriptor N, as one JSON line"},
	{0, "format", TAKES_VALUE, "shell|json", ACQUIRE, set_format,
	 "for eval, or for programs"},
	{'q', "quiet", TAKES_NOTHING, NULL, ALL, set_quiet, "only errors"},
	{'v', "verbose", TAKES_NOTHING, NULL, ALL, set_verbose,
	 "each step with its time"},
	{'h', "help", TAKES_NOTHING, NULL, ALL, set_help, "this text"},
};

#define OPTION_COUNT (sizeof(options) / sizeof(options[0]))

/* --- suggestions -------------------------------------------------------- */

#define NEAR_LONGEST 32

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Edits (insert, delete, replace, swap neighbours) between two short words. */
static size_t distance(const char *a, const char *b)
{
	size_t rows = strlen(a), columns = strlen(b);
	size_t cost[NEAR_LONGEST + 1][NEAR_LONGEST + 1];

	for (size_t i = 0; i <= rows; i++)
		cost[i][0] = i;
	for (size_t k = 0; k <= columns; k++)
		cost[0][k] = k;
	for (size_t i = 1; i <= rows; i++) {
		for (size_t k = 1; k <= columns; k++) {
			size_t best = cost[i - 1][k - 1] +
				(a[i - 1] != b[k - 1]);

			best = least(best, cost[i - 1][k] + 1);
			best = least(best, cost[i][k - 1] + 1);
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] &&
			    a[i - 2] == b[k - 1])
				best = least(best, cost[i - 2][k - 2] + 1);
			cost[i][k] = best;
		}
	}
	return cost[rows][columns];
}

const char *options_nearest(const char *text, const char *const *names,
			    size_t count)
{
	const char *nearest = NULL;
	size_t best = 3;

	if (strlen(text) > NEAR_LONGEST || strlen(text) < 2)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		size_t edits = distance(text, names[i]);

		if (edits < best && edits < strlen(text)) {
			best = edits;
			nearest = names[i];
		}
	}
	return nearest;
}

/* --- reading ------------------------------------------------------------ */

struct reader {
	struct settings *settings;
	const struct command *command;
	char **argv;
	bool given[OPTION_COUNT];
	struct error *error;
};

static const char *shorten(const char *text, char shown[QUOTED_LONGEST + 4])
{
	size_t length = strnlen(text, QUOTED_LONGEST + 1);

	snprintf(shown, QUOTED_LONGEST + 4, "%.*s%s", QUOTED_LONGEST, text,
		 length > QUOTED_LONGEST ? "..." : "");
	return shown;
}

static int refuse(struct reader *reader, const char *format,
		  const char *argument)
{
	char shown[QUOTED_LONGEST + 4], text[512];

	shorten(argument, shown);
	snprintf(text, sizeof(text), format, shown); /* NOLINT: ours */
	error_set(reader->error, EXIT_USAGE, "%s: %s: see redlock %s --help",
		  reader->command->name, text, reader->command->name);
	return -1;
}

static int set(struct reader *reader, const struct option *option,
	       char *value, const char *as_given)
{
	char shown[QUOTED_LONGEST + 4], text[192];
	const char *wanted;

	if (reader->given[option - options] && option->set != set_server) {
		snprintf(text, sizeof(text), "option %s is given twice",
			 as_given);
		return refuse(reader, "%s", text);
	}
	reader->given[option - options] = true;
	wanted = option->set(reader->settings, value, reader->error);
	if (wanted == NULL)
		return 0;
	if (*wanted == '\0')
		return -1; /* the setter has said it */
	if (option->takes == TAKES_NOTHING)
		snprintf(text, sizeof(text), "%s must be %s", as_given,
			 wanted);
	else
		snprintf(text, sizeof(text), "%s '%s' is not %s", as_given,
			 shorten(value, shown), wanted);
	error_set(reader->error, EXIT_USAGE, "%s: %s", reader->command->name,
		  text);
	return -1;
}

static const struct option *find_long(const char *name, size_t length)
{
	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (strlen(options[i].name) == length &&
		    memcmp(options[i].name, name, length) == 0)
			return &options[i];
	return NULL;
}

static int refuse_long(struct reader *reader, char *argument)
{
	const char *names[OPTION_COUNT], *nearest;
	char name[NEAR_LONGEST + 2], text[256];
	size_t count = 0;

	argument[strcspn(argument, "=")] = '\0';
	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (options[i].commands & reader->command->id)
			names[count++] = options[i].name;
	snprintf(name, sizeof(name), "%s", argument + 2);
	nearest = options_nearest(name, names, count);
	if (nearest == NULL)
		return refuse(reader, "unknown option '%s'", argument);
	snprintf(text, sizeof(text), "unknown option '%s': did you mean --%s?",
		 "%s", nearest);
	return refuse(reader, text, argument);
}

/* argv[0] is a long option. How many arguments it took, or -1. */
static int read_long(struct reader *reader, char **argv)
{
	char *name = argv[0] + 2, *value = strchr(name, '=');
	size_t length = strcspn(name, "=");
	const struct option *option = find_long(name, length);
	char as_given[40];
	int took = 1;

	if (option == NULL)
		return refuse_long(reader, argv[0]);
	if (!(option->commands & reader->command->id))
		return refuse(reader, "option '%s' is for other commands",
			      argv[0]);
	snprintf(as_given, sizeof(as_given), "--%s", option->name);
	if (value != NULL)
		value++;
	if (value != NULL && option->takes == TAKES_NOTHING)
		return refuse(reader, "%s takes no value", as_given);
	if (value == NULL && option->takes == TAKES_VALUE) {
		value = argv[1];
		took = 2;
		if (value == NULL)
			return refuse(reader, "%s needs a value", as_given);
	}
	return set(reader, option, value, as_given) < 0 ? -1 : took;
}

static const struct option *find_letter(char letter)
{
	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (options[i].letter == letter)
			return &options[i];
	return NULL;
}

/* argv[0] is "-nt5s" or the like. How many arguments it took, or -1. */
static int read_letters(struct reader *reader, char **argv)
{
	for (char *letter = argv[0] + 1; *letter; letter++) {
		const struct option *option = find_letter(*letter);
		char as_given[3] = {'-', *letter, '\0'};
		char *value = letter + 1;
		int took = 1;

		if (option == NULL)
			return refuse(reader, "unknown option '%s'", as_given);
		if (!(option->commands & reader->command->id))
			return refuse(reader,
				      "option '%s' is for other commands",
				      as_given);
		if (option->takes == TAKES_NOTHING) {
			if (set(reader, option, NULL, as_given) < 0)
				return -1;
			continue;
		}
		if (*value == '\0') {
			value = argv[1];
			took = 2;
		}
		if (value == NULL)
			return refuse(reader, "%s needs a value", as_given);
		return set(reader, option, value, as_given) < 0 ? -1 : took;
	}
	return 1;
}

static int set_key(struct reader *reader, const char *key)
{
	if (*key == '\0')
		return refuse(reader, "KEY is empty%s", "");
	if (strlen(key) > KEY_LONGEST)
		return refuse(reader, "KEY '%s' has more than 4096 bytes",
			      key);
	reader->settings->key = key;
	return 0;
}

static int set_token(struct reader *reader, const char *token)
{
	if (*token == '\0')
		return refuse(reader, "TOKEN is empty%s", "");
	if (strlen(token) > TOKEN_LONGEST)
		return refuse(reader, "TOKEN '%s' has more than 256 bytes",
			      token);
	reader->settings->token = token;
	return 0;
}

/* argv[0] is no option. How many arguments it took, 0 to stop, or -1. */
static int read_operand(struct reader *reader, char **argv)
{
	struct settings *settings = reader->settings;
	bool takes_token = reader->command->id & (RELEASE | EXTEND);

	if (settings->key == NULL)
		return set_key(reader, argv[0]) < 0 ? -1 : 1;
	if (takes_token && settings->token == NULL)
		return set_token(reader, argv[0]) < 0 ? -1 : 1;
	return refuse(reader, "one argument too many: '%s'", argv[0]);
}

/* What follows KEY in `run`. */
static int read_command(struct reader *reader, char **argv)
{
	struct settings *settings = reader->settings;

	if (argv[0] != NULL && strcmp(argv[0], "--") == 0)
		argv++;
	else if (argv[0] != NULL && argv[0][0] == '-')
		return refuse(reader, "options come before KEY: '%s' (or put "
			      "-- before COMMAND)", argv[0]);
	if (settings->shell_command != NULL && argv[0] != NULL)
		return refuse(reader, "both -c and COMMAND '%s'", argv[0]);
	if (settings->shell_command == NULL && argv[0] == NULL)
		return refuse(reader, "COMMAND is missing%s", "");
	if (argv[0] != NULL && argv[0][0] == '\0')
		return refuse(reader, "COMMAND is empty%s", "");
	settings->command = argv;
	return 0;
}

static int read_argument(struct reader *reader, char **argv, bool *literal)
{
	if (!*literal && strcmp(argv[0], "--") == 0) {
		*literal = true;
		return 1;
	}
	if (!*literal && strncmp(argv[0], "--", 2) == 0)
		return read_long(reader, argv);
	if (!*literal && argv[0][0] == '-' && argv[0][1] != '\0')
		return read_letters(reader, argv);
	return read_operand(reader, argv);
}

int options_parse(struct settings *settings, const struct command *command,
		  char **argv, struct error *error)
{
	struct reader reader = {
		.settings = settings, .command = command, .argv = argv,
		.error = error,
	};
	bool literal = false;

	while (*argv != NULL && !settings->help) {
		int took = read_argument(&reader, argv, &literal);

		if (took < 0)
			return -1;
		argv += took;
		if (command->id == COMMAND_RUN && settings->key != NULL)
			break;
	}
	if (settings->help)
		return 0;
	if (settings->key == NULL)
		return refuse(&reader, "KEY is missing%s", "");
	if (command->id == COMMAND_RUN && read_command(&reader, argv) < 0)
		return -1;
	if (!(command->id & (RELEASE | EXTEND)) || settings->token != NULL)
		return 0;
	settings->token = getenv("REDLOCK_TOKEN");
	if (settings->token == NULL)
		return refuse(&reader, "TOKEN is missing, and REDLOCK_TOKEN is "
			      "not set%s", "");
	return set_token(&reader, settings->token);
}

void options_help(struct buffer *text, const struct command *command)
{
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		const struct option *option = &options[i];
		char name[64];

		if (!(option->commands & command->id))
			continue;
		snprintf(name, sizeof(name), "--%s%s%s%s", option->name,
			 option->takes == TAKES_NOTHING ? "" :
			 option->takes == TAKES_VALUE ? " " : "[=",
			 option->value != NULL ? option->value : "",
			 option->takes == MAY_TAKE_VALUE ? "]" : "");
		if (option->letter != 0)
			buffer_print(text, "  -%c, ", option->letter);
		else
			buffer_print(text, "      ");
		buffer_print(text, "%-27s  %s\n", name, option->help);
	}
}
