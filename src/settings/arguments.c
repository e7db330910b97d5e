#include "settings/arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "lock/lock.h"
#include "settings/options.h"
#include "lock/script.h"
#include "settings/suggest.h"
#include "settings/synonym.h"

#define OPTIONS_MAX 64
#define NAME_LONGEST 40 /* of an option, for a suggestion */
#define ABBREVIATION_LEAST 3

struct reader {
	struct settings *settings;
	const struct command *command;
	char **argv;
	struct error *error;
};

static int refuse(struct reader *reader, const char *format,
		  const char *argument)
{
	char shown[URL_QUOTED], text[URL_QUOTED + 200];

	url_quote_any(argument, shown);
	snprintf(text, sizeof(text), format, shown); /* NOLINT: ours */
	error_set(reader->error, EXIT_USAGE, "%s: %s: see redlock %s --help",
		  reader->command->name, text, reader->command->name);
	return -1;
}

static int set(struct reader *reader, const struct option *option, char *value,
	       const char *as_given)
{
	char shown[URL_QUOTED], text[192];
	const char *wanted;

	if ((reader->settings->given & options_bit(option)) &&
	    !option->repeats) {
		snprintf(text, sizeof(text), "option %s is given twice",
			 as_given);
		return refuse(reader, "%s", text);
	}
	wanted = options_set(reader->settings, option, value);
	if (wanted == NULL)
		return 0;
	if (*wanted == '\0')
		*reader->error = reader->settings->error;
	else
		error_set(reader->error, EXIT_USAGE, "%s: %s '%s' is not %s",
			  reader->command->name, as_given,
			  url_quote_any(value != NULL ? value : "", shown),
			  wanted);
	return -1;
}

/* What others call an option that this command takes; dashes: how many stand
 * before it. */
static const struct synonym *find_synonym(const struct reader *reader,
					  const char *name, size_t dashes)
{
	const struct synonym *found = synonym_find(name);
	const struct option *option;

	if (found != NULL && (dashes == 1) != (name[1] == '\0'))
		return NULL;
	if (found == NULL || found->option[0] == '\0')
		return found;
	option = options_find(found->option, strlen(found->option),
			      reader->command->id);
	return option->commands & reader->command->id ? found : NULL;
}

static const char *find_nearest(const struct reader *reader, const char *name)
{
	const char *names[OPTIONS_MAX];
	size_t count = 0;

	for (size_t i = 0; i < option_count; i++) {
		if (!(options[i].commands & reader->command->id))
			continue;
		if (options[i].in_full &&
		    strncmp(options[i].name, name, strlen(name)) == 0)
			return options[i].name;
		names[count++] = options[i].name;
	}
	return suggest_nearest(name, names, count);
}

/* An option that nobody knows; name: argument without its dashes. */
static int refuse_unknown(struct reader *reader, const char *argument,
			  const char *name)
{
	const struct synonym *synonym =
		find_synonym(reader, name, (size_t)(name - argument));
	const char *nearest = name[0] != '\0' && name[1] != '\0'
				      ? find_nearest(reader, name)
				      : NULL;
	char text[256];

	if (synonym != NULL && synonym_text(synonym) != NULL)
		snprintf(text, sizeof(text),
			 "unknown option '%%s': did you mean %s?",
			 synonym_text(synonym));
	else if (synonym != NULL || nearest != NULL)
		snprintf(text, sizeof(text),
			 "unknown option '%%s': did you mean --%s?",
			 synonym != NULL ? synonym->option : nearest);
	else
		snprintf(text, sizeof(text),
			 "unknown option '%%s' (before a KEY that begins with "
			 "'-' put --)");
	return refuse(reader, text, argument);
}

static int refuse_long(struct reader *reader, char *argument)
{
	argument[strcspn(argument, "=")] = '\0';
	return refuse_unknown(reader, argument, argument + 2);
}

/* The options of this command that begin so. */
static size_t find_beginning(const struct reader *reader, const char *name,
			     size_t length,
			     const struct option *found[OPTIONS_MAX])
{
	size_t count = 0;

	for (size_t i = 0; i < option_count; i++) {
		const struct option *option = &options[i];

		if ((option->commands & reader->command->id) &&
		    !option->in_full &&
		    (strncmp(option->name, name, length) == 0 ||
		     strncmp(option->other, name, length) == 0))
			found[count++] = option;
	}
	return count;
}

/*
 * The option that is meant by its first letters, as getopt_long(3) takes them:
 * NULL for none, or with *refused set after an error. What others call
 * something else is no abbreviation (--max, --key), and neither is what has
 * less than three letters: --e 75 would be --exclusive on a KEY called 75.
 */
static const struct option *find_abbreviated(struct reader *reader,
					     const char *name, size_t length,
					     bool *refused)
{
	const struct option *found[OPTIONS_MAX] = {NULL};
	char word[NAME_LONGEST];
	struct buffer text = {0};
	size_t count;

	*refused = false;
	snprintf(word, sizeof(word), "%.*s", (int)length, name);
	if (length == 0 || length >= sizeof(word) ||
	    find_synonym(reader, word, 2) != NULL)
		return NULL;
	count = find_beginning(reader, name, length, found);
	if (count == 0)
		return NULL;
	if (count == 1 && length >= ABBREVIATION_LEAST)
		return found[0];
	buffer_print(&text, "option '--%%s' could be --%s", found[0]->name);
	for (size_t i = 1; i < count; i++)
		buffer_print(&text, "%s--%s", i + 1 < count ? ", " : " or ",
			     found[i]->name);
	refuse(reader, text.data, word);
	buffer_release(&text);
	*refused = true;
	return NULL;
}

/* An option that this command does not take. */
static int refuse_other(struct reader *reader, const struct option *option,
			char *argument)
{
	argument[strcspn(argument, "=")] = '\0';
	if (strcmp(argument + 2, option->other) == 0)
		return refuse(reader,
			      "'%s' is how long to wait for KEY, which this "
			      "command does not do: did you mean "
			      "--server-timeout?",
			      argument);
	return refuse(reader, "option '%s' is for other commands", argument);
}

/* argv[0] is a long option. How many arguments it took, or -1. */
static int read_long(struct reader *reader, char **argv)
{
	char *name = argv[0] + 2, *value = strchr(name, '=');
	size_t length = strcspn(name, "=");
	const struct option *option =
		options_find(name, length, reader->command->id);
	bool refused = false, abbreviated = option == NULL;
	int64_t unused;
	char as_given[40];
	int took = 1;

	if (option == NULL)
		option = find_abbreviated(reader, name, length, &refused);
	if (option == NULL)
		return refused ? -1 : refuse_long(reader, argv[0]);
	if (!(option->commands & reader->command->id))
		return refuse_other(reader, option, argv[0]);
	if (abbreviated)
		snprintf(as_given, sizeof(as_given), "--%s", option->name);
	else
		snprintf(as_given, sizeof(as_given), "--%.*s", (int)length,
			 name);
	/* without its '=' the time would be KEY, and KEY COMMAND */
	if (value == NULL && option->takes == MAY_TAKE_VALUE &&
	    argv[1] != NULL &&
	    duration_parse(argv[1], &unused) != DURATION_NONE)
		return refuse(reader,
			      "a time follows --poll after '=', a number of "
			      "attempts is --tries: '%s' (before a KEY of this "
			      "name put --)",
			      argv[1]);
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
	for (size_t i = 0; i < option_count; i++)
		if (options[i].letter == letter)
			return &options[i];
	return NULL;
}

/* argv[0] is "-nt5s" or the like. How many arguments it took, or -1. */
static int read_letters(struct reader *reader, char **argv)
{
	char *word = argv[0] + 1;
	size_t length = strcspn(word, "=");
	const struct option *whole =
		options_find(word, length, reader->command->id);

	/* -ttl would be -t tl */
	if (length > 1 && whole != NULL &&
	    (whole->commands & reader->command->id)) {
		word[length] = '\0';
		return refuse(reader,
			      "'%s' has one dash: a long option has two",
			      argv[0]);
	}
	for (char *letter = argv[0] + 1; *letter; letter++) {
		const struct option *option = find_letter(*letter);
		char as_given[3] = {'-', *letter, '\0'};
		char *value = letter + 1;
		int took = 1;

		if (*letter == '=' && letter > argv[0] + 1)
			return refuse(reader,
				      "'%s': a letter takes no value after '='",
				      argv[0]);
		if (option == NULL)
			return refuse_unknown(reader, as_given, as_given + 1);
		if (!(option->commands & reader->command->id))
			return refuse(reader,
				      "option '%s' is for other commands",
				      as_given);
		/* elsewhere -h is a host, and a job that printed help instead
		 * of running would seem to have succeeded */
		if (*letter == 'h' && (*value != '\0' || argv[1] != NULL))
			return refuse(
				reader,
				"-h means help, and only as the last word: "
				"a server is named by -S%s",
				"");
		if (option->takes != TAKES_VALUE) {
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

/* Slips that would otherwise be a lock of another name, and KEY the COMMAND. */
static int refuse_as_key(struct reader *reader, const char *word)
{
	static const char *const schemes[] = {"redis://", "rediss://", "redis+",
					      "unix://"};

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (strncmp(word, schemes[i], strlen(schemes[i])) == 0)
			return refuse(reader,
				      "'%s' is where KEY is: -S goes before "
				      "each server, or commas between them "
				      "(before a KEY of this name put --)",
				      word);
	/* U+2010 to U+2015 and U+2212, as typesetting makes of '-' */
	if ((strncmp(word, "\xe2\x80", 2) == 0 && word[2] >= '\x90' &&
	     word[2] <= '\x95') ||
	    strncmp(word, "\xe2\x88\x92", 3) == 0)
		return refuse(reader,
			      "'%s' begins with a dash that is not '-': type "
			      "it anew (before a KEY of this name put --)",
			      word);
	return 0;
}

static int set_key(struct reader *reader, const char *key)
{
	bool pattern = reader->command->id == COMMAND_LIST;

	if (*key == '\0')
		return refuse(reader, "%s is empty",
			      pattern ? "PATTERN" : "KEY");
	if (strlen(key) > KEY_LONGEST)
		return refuse(reader,
			      pattern ? "PATTERN '%s' has more than 4096 bytes"
				      : "KEY '%s' has more than 4096 bytes",
			      key);
	if (!pattern && script_is_reserved((struct argument){key, strlen(key)}))
		return refuse(reader,
			      "KEY '%s' could be the record of another KEY: "
			      "choose another name",
			      key);
	reader->settings->key = config_keep(reader->settings, key);
	return 0;
}

/* name: where the token is from */
static int set_token(struct reader *reader, const char *name, const char *token)
{
	char text[128];

	reader->settings->token = config_keep(reader->settings, token);
	if (*token != '\0' && strlen(token) <= TOKEN_LONGEST)
		return 0;
	snprintf(text, sizeof(text), "%s '%%s' must be 1 to %d bytes long",
		 name, TOKEN_LONGEST);
	return refuse(reader, text, token);
}

/* argv[0] is no option. How many arguments it took, 0 to stop, or -1. */
static int read_operand(struct reader *reader, char **argv)
{
	struct settings *settings = reader->settings;
	bool takes_token =
		reader->command->id & (COMMAND_RELEASE | COMMAND_EXTEND);

	if (reader->command->id == COMMAND_STATUS) {
		/* in place of arguments that have been read */
		settings->keys = reader->argv;
		settings->keys[settings->key_count++] = argv[0];
		return 1;
	}
	if (settings->key == NULL)
		return set_key(reader, argv[0]) < 0 ? -1 : 1;
	if (takes_token && settings->token == NULL)
		return set_token(reader, "TOKEN", argv[0]) < 0 ? -1 : 1;
	if (reader->command->id == COMMAND_ACQUIRE)
		return refuse(reader,
			      "one argument too many: '%s' (redlock run KEY "
			      "COMMAND holds KEY while COMMAND runs)",
			      argv[0]);
	if (reader->command->id == COMMAND_LIST)
		return refuse(reader,
			      "one argument too many: '%s' (PATTERN stands in "
			      "quotes, as the shell has patterns, too)",
			      argv[0]);
	return refuse(reader, "one argument too many: '%s'", argv[0]);
}

/* What follows KEY in `run`. */
static int read_command(struct reader *reader, char **argv)
{
	struct settings *settings = reader->settings;

	if (argv[0] != NULL && strcmp(argv[0], "--") == 0)
		argv++;
	else if (argv[0] != NULL && argv[0][0] == '-')
		return refuse(reader,
			      "options come before KEY: '%s' (or put "
			      "-- before COMMAND)",
			      argv[0]);
	if (settings->shell_command != NULL && argv[0] != NULL)
		return refuse(reader, "both -c and COMMAND '%s'", argv[0]);
	if (settings->shell_command == NULL && argv[0] == NULL)
		return refuse(reader, "COMMAND is missing: '%s' is KEY",
			      settings->key);
	if (argv[0] != NULL && argv[0][0] == '\0')
		return refuse(reader, "COMMAND is empty%s", "");
	settings->command = argv;
	return 0;
}

/* `status`: KEYs, or with -q a KEY and perhaps a TOKEN. */
static int check_keys(struct reader *reader)
{
	struct settings *settings = reader->settings;
	size_t count = settings->key_count;

	if (settings->quiet && count > 2)
		return refuse(reader, "one argument too many for -q: '%s'",
			      settings->keys[2]);
	if (settings->quiet && count == 2) {
		count = 1;
		if (set_token(reader, "TOKEN", settings->keys[1]) < 0)
			return -1;
	}
	while (count-- > 0)
		if (set_key(reader, settings->keys[count]) < 0)
			return -1;
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
	if (!*literal && reader->settings->key == NULL &&
	    refuse_as_key(reader, argv[0]) < 0)
		return -1;
	return read_operand(reader, argv);
}

int arguments_parse(struct settings *settings, const struct command *command,
		    char **argv, struct error *error)
{
	struct reader reader = {
		.settings = settings,
		.command = command,
		.argv = argv,
		.error = error,
	};
	bool literal = false;
	const char *token;

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
	if (command->id == COMMAND_STATUS && check_keys(&reader) < 0)
		return -1;
	if (settings->key == NULL &&
	    !(command->id & (COMMAND_LIST | COMMAND_DOCTOR)))
		return refuse(&reader, "KEY is missing%s", "");
	if (command->id == COMMAND_RUN && read_command(&reader, argv) < 0)
		return -1;
	if (!(command->id & (COMMAND_RELEASE | COMMAND_EXTEND)) ||
	    settings->token != NULL)
		return 0;
	token = getenv("REDLOCK_TOKEN");
	if (token == NULL)
		return refuse(&reader,
			      "TOKEN is missing, and REDLOCK_TOKEN is "
			      "not set%s",
			      "");
	return set_token(&reader, "REDLOCK_TOKEN", token);
}
