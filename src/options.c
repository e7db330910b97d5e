#include "options.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "duration.h"
#include "signals.h"
#include "suggest.h"

#define RUN COMMAND_RUN
#define ACQUIRE COMMAND_ACQUIRE
#define RELEASE COMMAND_RELEASE
#define EXTEND COMMAND_EXTEND
#define TAKING (RUN | ACQUIRE)
#define ALL (RUN | ACQUIRE | RELEASE | EXTEND)

#define QUOTED_LONGEST 64  /* bytes of an argument in an error */
#define NAME_LONGEST 40    /* of an option, for a suggestion */

/*
 * Puts value into the field of settings that the table names. NULL, or what the
 * value should have been; "" where settings->error says it.
 */
typedef const char *setter(struct settings *settings, void *field,
			   char *value);

#define WANT_DURATION "a DURATION such as 500ms, 30s or 2m"

static const char *set_duration(struct settings *settings, void *field,
				char *value)
{
	(void)settings;
	return duration_parse(value, field) < 0 ? WANT_DURATION : NULL;
}

static const char *set_positive(struct settings *settings, void *field,
				char *value)
{
	const int64_t *ms = field;

	if (set_duration(settings, field, value) != NULL || *ms <= 0)
		return WANT_DURATION " (more than 0)";
	return NULL;
}

static const char *set_flag(struct settings *settings, void *field,
			    char *value)
{
	bool *flag = field;

	(void)settings;
	(void)value;
	*flag = true;
	return NULL;
}

static const char *set_text(struct settings *settings, void *field,
			    char *value)
{
	const char **text = field;

	(void)settings;
	*text = value;
	return *value == '\0' ? "a text" : NULL;
}

/* Plain digits, up to most: no sign, no blank. */
static int parse_number(const char *value, long most, long *number)
{
	if (*value == '\0' || strspn(value, "0123456789") != strlen(value))
		return -1;
	errno = 0;
	*number = strtol(value, NULL, 10);
	return errno != 0 || *number > most ? -1 : 0;
}

static const char *set_server(struct settings *settings, void *field,
			      char *value)
{
	(void)field;
	return config_add_servers(settings, value, &settings->error) < 0 ?
		"" : NULL;
}

static const char *set_conflict(struct settings *settings, void *field,
				char *value)
{
	long number;

	(void)field;
	if (parse_number(value, 255, &number) < 0)
		return "a number from 0 to 255";
	settings->conflict_code = (int)number;
	return NULL;
}

static const char *set_poll(struct settings *settings, void *field,
			    char *value)
{
	settings->poll = true;
	return value == NULL ? NULL : set_positive(settings, field, value);
}

static const char *set_tries(struct settings *settings, void *field,
			     char *value)
{
	long number;

	(void)field;
	if (parse_number(value, INT_MAX, &number) < 0 || number == 0)
		return "a number from 1 on";
	settings->poll = true;
	settings->patience.tries = (unsigned long)number;
	return NULL;
}

static const char *set_on_lost(struct settings *settings, void *field,
			       char *value)
{
	(void)field;
	if (strcmp(value, "kill") == 0) {
		settings->on_lost = ON_LOST_KILL;
		return NULL;
	}
	if (strcmp(value, "warn") == 0) {
		settings->on_lost = ON_LOST_WARN;
		return NULL;
	}
	settings->on_lost = ON_LOST_SIGNAL;
	settings->lost_signal = signals_parse(value);
	return settings->lost_signal == 0 ? "kill, warn or a signal's name"
					  : NULL;
}

static const char *set_status_fd(struct settings *settings, void *field,
				 char *value)
{
	long number;
	int flags;

	(void)field;
	if (parse_number(value, INT_MAX, &number) < 0)
		return "the number of an open descriptor";
	flags = fcntl((int)number, F_GETFL);
	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
		return "the number of a descriptor that is open for writing";
	settings->status_fd = (int)number;
	return NULL;
}

static const char *set_format(struct settings *settings, void *field,
			      char *value)
{
	(void)field;
	settings->format = strcmp(value, "shell") == 0 ? FORMAT_SHELL :
			   strcmp(value, "json") == 0 ? FORMAT_JSON :
			   FORMAT_PEOPLE;
	return settings->format == FORMAT_PEOPLE ? "shell or json" : NULL;
}

enum takes { TAKES_NOTHING, TAKES_VALUE, MAY_TAKE_VALUE };

#define FIELD(name) offsetof(struct settings, name)

static const struct option {
	char letter;             /* 0: none */
	const char *name;
	enum takes takes;
	const char *value;       /* its name in help */
	unsigned commands;       /* enum command_id */
	setter *set;
	size_t field;
	const char *help;
} options[] = {
	{'S', "server", TAKES_VALUE, "URL", ALL, set_server, 0,
	 "a server; again, or with commas, for each further one"},
	{0, "timeout", TAKES_VALUE, "DURATION", ALL, set_positive,
	 FIELD(timeout),
	 "the longest that one round with the servers takes (1s)"},
	{'t', "ttl", TAKES_VALUE, "DURATION", TAKING | EXTEND, set_positive,
	 FIELD(ttl), "the lease (30s)"},
	{'n', "nonblock", TAKES_NOTHING, NULL, TAKING, set_flag,
	 FIELD(nonblock), "do not wait"},
	{'w', "wait", TAKES_VALUE, "DURATION", TAKING, set_duration,
	 FIELD(patience.limit), "wait no longer than this (for ever)"},
	{'E', "conflict-exit-code", TAKES_VALUE, "N", TAKING, set_conflict, 0,
	 "exit status where KEY is held by others (75)"},
	{'x', "exclusive", TAKES_NOTHING, NULL, TAKING, set_flag,
	 FIELD(exclusive), "one holder at a time (the default)"},
	{0, "poll", MAY_TAKE_VALUE, "DURATION", TAKING, set_poll,
	 FIELD(patience.every),
	 "try again and again, every DURATION (growing, to 128ms)"},
	{0, "tries", TAKES_VALUE, "N", TAKING, set_tries, 0,
	 "give up after N attempts"},
	{0, "quarantine", TAKES_VALUE, "DURATION", TAKING, set_duration,
	 FIELD(quarantine),
	 "a server up for less has no vote (ttl, with 3 servers or more)"},
	{0, "label", TAKES_VALUE, "TEXT", TAKING, set_text, FIELD(label),
	 "shown to those who find KEY held (the command line)"},
	{'k', "kill-after", TAKES_VALUE, "DURATION", RUN, set_duration,
	 FIELD(kill_after),
	 "between SIGTERM and SIGKILL (a sixth of the ttl, 5s at most)"},
	{0, "on-lost", TAKES_VALUE, "kill|warn|SIGNAL", RUN, set_on_lost, 0,
	 "what a lost lock means for COMMAND (kill)"},
	{'c', "command", TAKES_VALUE, "STRING", RUN, set_text,
	 FIELD(shell_command), "run STRING with $SHELL -c"},
	{0, "status-fd", TAKES_VALUE, "N", RUN, set_status_fd, 0,
	 "write how it went to descriptor N, as one JSON line"},
	{0, "format", TAKES_VALUE, "shell|json", ACQUIRE, set_format, 0,
	 "for eval, or for programs"},
	{'q', "quiet", TAKES_NOTHING, NULL, ALL, set_flag, FIELD(quiet),
	 "only errors"},
	{'v', "verbose", TAKES_NOTHING, NULL, ALL, set_flag, FIELD(verbose),
	 "each step with its time"},
	{'h', "help", TAKES_NOTHING, NULL, ALL, set_flag, FIELD(help),
	 "this text"},
};

#define OPTION_COUNT (sizeof(options) / sizeof(options[0]))

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
	wanted = option->set(reader->settings,
			     (char *)reader->settings + option->field, value);
	if (wanted == NULL)
		return 0;
	if (*wanted == '\0')
		*reader->error = reader->settings->error;
	else
		error_set(reader->error, EXIT_USAGE, "%s: %s '%s' is not %s",
			  reader->command->name, as_given,
			  shorten(value, shown), wanted);
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
	char name[NAME_LONGEST], text[256];
	size_t count = 0;

	argument[strcspn(argument, "=")] = '\0';
	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (options[i].commands & reader->command->id)
			names[count++] = options[i].name;
	snprintf(name, sizeof(name), "%s", argument + 2);
	nearest = suggest_nearest(name, names, count);
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
