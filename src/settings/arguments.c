#include "settings/arguments.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/number.h"
#include "base/tokens.h"
#include "settings/options.h"
#include "settings/suggest.h"

#define OPTIONS_MAX 64
#define NAME_LONGEST 40 /* of an option, for a suggestion */
#define ABBREVIATION_LEAST 3

struct parser {
	struct settings *settings;
	const struct command *command;
	char **argv;
	struct error *error;    /* settings->error, once there is one */
	const char *token_from; /* the name of its place */
	char quoted[URL_QUOTED];
};

/* What an error may show of an argument. It stays until the next one. */
static const char *quote(struct parser *parser, const char *argument)
{
	return url_quote_any(argument, parser->quoted);
}

static int refuse(struct parser *parser, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int refuse(struct parser *parser, const char *format, ...)
{
	char text[URL_QUOTED + 200];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	error_set(parser->error, EXIT_USAGE, "%s: %s: see redlock %s --help",
		  parser->command->name, text, parser->command->name);
	return -1;
}

static int set(struct parser *parser, const struct option *option, char *value,
	       const char *as_given)
{
	const char *wanted;

	if ((parser->settings->given & options_bit(option)) && !option->repeats)
		return refuse(parser, "option %s is given twice", as_given);
	wanted = options_set(parser->settings, option, value);
	if (wanted == NULL)
		return 0;
	/* a server that cannot be: what follows may say where to report it (--output) */
	if (*wanted == '\0') {
		if (parser->error != &parser->settings->error)
			*parser->error = parser->settings->error;
		parser->error = &parser->settings->error;
		return 0;
	}
	error_set(parser->error, EXIT_USAGE, "%s: %s '%s' is not %s",
		  parser->command->name, as_given,
		  quote(parser, value != NULL ? value : ""), wanted);
	return -1;
}

/* What other programs call an option of this command. dashes: how many are in
 * front of the name. */
static const struct synonym *find_synonym(const struct parser *parser,
					  const char *name, size_t dashes)
{
	const struct synonym *found = suggest_option(name);
	const struct option *option;

	if (found != NULL && (dashes == 1) != (name[1] == '\0'))
		return NULL;
	if (found == NULL || found->option[0] == '\0')
		return found;
	option = options_find(found->option, strlen(found->option),
			      parser->command->id);
	return option->commands & parser->command->id ? found : NULL;
}

static const char *find_nearest(const struct parser *parser, const char *name)
{
	const char *names[OPTIONS_MAX] = {NULL};
	size_t count = 0;

	for (size_t i = 0; i < option_count; i++) {
		if (!(options[i].commands & parser->command->id))
			continue;
		if (options[i].in_full &&
		    strncmp(options[i].name, name, strlen(name)) == 0)
			return options[i].name;
		names[count++] = options[i].name;
	}
	return suggest_nearest(name, names, count);
}

/* name: where the fence is from */
static int set_fence(struct parser *parser, const char *name, const char *text)
{
	if (number_parse(text, 1, FENCE_LARGEST, &parser->settings->fence) == 0)
		return 0;
	return refuse(parser, "%s '%s' must be a number from 1 to %lld", name,
		      quote(parser, text), (long long)FENCE_LARGEST);
}

/* An option that no command has. name: argument without its dashes. */
static int refuse_unknown(struct parser *parser, const char *argument,
			  const char *name)
{
	const struct synonym *synonym =
		find_synonym(parser, name, (size_t)(name - argument));
	const char *nearest = name[0] != '\0' && name[1] != '\0'
				      ? find_nearest(parser, name)
				      : NULL;

	if (parser->command->id == COMMAND_FENCE && name[-1] == '-' &&
	    isdigit((unsigned char)*name))
		return set_fence(parser, "FENCE", argument);
	if (synonym != NULL && suggest_needless(synonym))
		return refuse(parser,
			      "unknown option '%s', which is not needed: %s",
			      quote(parser, argument), suggest_text(synonym));
	if (synonym != NULL && suggest_text(synonym) != NULL)
		return refuse(parser, "unknown option '%s': did you mean %s?",
			      quote(parser, argument), suggest_text(synonym));
	if (synonym != NULL || nearest != NULL)
		return refuse(parser, "unknown option '%s': did you mean --%s?",
			      quote(parser, argument),
			      synonym != NULL ? synonym->option : nearest);
	return refuse(
		parser,
		"unknown option '%s' (put -- before a %s that begins with '-')",
		quote(parser, argument),
		parser->command->id == COMMAND_FENCE ? "FILE" : "KEY");
}

/* argv stays as it is, as wants_shell (redlock.c) looks at it afterwards. */
static int refuse_long(struct parser *parser, char *argument)
{
	char *end = argument + strcspn(argument, "="), was = *end;

	*end = '\0';
	refuse_unknown(parser, argument, argument + 2);
	*end = was;
	return -1;
}

/* The options of this command that begin with name. */
static size_t find_beginning(const struct parser *parser, const char *name,
			     size_t length,
			     const struct option *found[OPTIONS_MAX])
{
	size_t count = 0;

	for (size_t i = 0; i < option_count; i++) {
		const struct option *option = &options[i];

		if ((option->commands & parser->command->id) &&
		    !option->in_full &&
		    (strncmp(option->name, name, length) == 0 ||
		     strncmp(option->other, name, length) == 0))
			found[count++] = option;
	}
	return count;
}

/*
 * The option that is named by its first letters, as getopt_long(3) takes them.
 * NULL if there is none; *refused is set if that is an error. A word that means
 * something else in other programs (--max, --key) is no abbreviation. Neither
 * are fewer than three letters: --e 75 would be --exclusive on a KEY called 75.
 */
static const struct option *find_abbreviated(struct parser *parser,
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
	    find_synonym(parser, word, 2) != NULL)
		return NULL;
	count = find_beginning(parser, name, length, found);
	if (count == 0)
		return NULL;
	if (count == 1 && length >= ABBREVIATION_LEAST)
		return found[0];
	for (size_t i = 0; i < count; i++)
		buffer_print(&text, "%s--%s",
			     i == 0          ? ""
			     : i + 1 < count ? ", "
					     : " or ",
			     found[i]->name);
	refuse(parser, "option '--%s' could be %s", word, text.data);
	buffer_release(&text);
	*refused = true;
	return NULL;
}

/* An option that this command does not take. */
static int refuse_other(struct parser *parser, char *argument)
{
	argument[strcspn(argument, "=")] = '\0';
	if (find_synonym(parser, argument + 2, 2) != NULL)
		return refuse_unknown(parser, argument, argument + 2);
	if (strcmp(argument, "--timeout") == 0)
		return refuse(parser,
			      "'%s' is how long to wait for KEY, which this "
			      "command does not do: did you mean "
			      "--server-timeout?",
			      quote(parser, argument));
	return refuse(parser, "option '%s' is for other commands",
		      quote(parser, argument));
}

/* argv[0] is a long option. How many arguments it took, or -1. */
static int read_long(struct parser *parser, char **argv)
{
	char *name = argv[0] + 2, *value = strchr(name, '=');
	size_t length = strcspn(name, "=");
	const struct option *option =
		options_find(name, length, parser->command->id);
	bool refused = false, abbreviated = option == NULL;
	int64_t unused;
	char as_given[40];
	int took = 1;

	if (option == NULL)
		option = find_abbreviated(parser, name, length, &refused);
	if (option == NULL)
		return refused ? -1 : refuse_long(parser, argv[0]);
	if (!(option->commands & parser->command->id))
		return refuse_other(parser, argv[0]);
	if (abbreviated)
		snprintf(as_given, sizeof(as_given), "--%s", option->name);
	else
		snprintf(as_given, sizeof(as_given), "--%.*s", (int)length,
			 name);
	/* without an '=' the time would become KEY, and KEY COMMAND */
	if (value == NULL && option->takes == MAY_TAKE_VALUE &&
	    argv[1] != NULL &&
	    duration_parse(argv[1], &unused) != DURATION_NONE)
		return refuse(
			parser,
			"--poll takes a time after '='; a number of attempts is --tries: '%s' (put -- before a KEY of this name)",
			quote(parser, argv[1]));
	if (value != NULL)
		value++;
	if (value != NULL && option->takes == TAKES_NOTHING)
		return refuse(parser, "%s takes no value", as_given);
	if (value == NULL && option->takes == TAKES_VALUE) {
		value = argv[1];
		took = 2;
		if (value == NULL)
			return refuse(parser, "%s needs a value", as_given);
	}
	return set(parser, option, value, as_given) < 0 ? -1 : took;
}

static const struct option *find_letter(char letter)
{
	for (size_t i = 0; i < option_count; i++)
		if (options[i].letter == letter ||
		    options[i].other_letter == letter)
			return &options[i];
	return NULL;
}

/* argv[0] is "-nt5s" or the like. How many arguments it took, or -1. */
static int read_letters(struct parser *parser, char **argv)
{
	char *word = argv[0] + 1;
	size_t length = strcspn(word, "=");
	const struct option *whole =
		options_find(word, length, parser->command->id);

	/* -ttl would be -t tl */
	if (length > 1 && whole != NULL &&
	    (whole->commands & parser->command->id)) {
		word[length] = '\0';
		return refuse(parser,
			      "'%s' has one dash: a long option has two",
			      quote(parser, argv[0]));
	}
	for (char *letter = argv[0] + 1; *letter; letter++) {
		const struct option *option = find_letter(*letter);
		char as_given[3] = {'-', *letter, '\0'};
		char *value = letter + 1;
		int took = 1;

		if (*letter == '=' && letter > argv[0] + 1)
			return refuse(parser, "%s takes no value",
				      (char[]){'-', letter[-1], '\0'});
		if (option == NULL ||
		    (!(option->commands & parser->command->id) &&
		     suggest_option(as_given + 1) != NULL))
			return refuse_unknown(parser, as_given, as_given + 1);
		if (!(option->commands & parser->command->id))
			return refuse(parser,
				      "option '%s' is for other commands",
				      as_given);
		/* elsewhere -h is a host, and a job that printed help instead
		 * of running would seem to have succeeded */
		if (*letter == 'h' && (*value != '\0' || argv[1] != NULL))
			return refuse(
				parser,
				"-h means help, and only as the last word: name a server with -S");
		if (option->takes != TAKES_VALUE) {
			if (set(parser, option, NULL, as_given) < 0)
				return -1;
			continue;
		}
		if (*value == '\0') {
			value = argv[1];
			took = 2;
		}
		if (value == NULL)
			return refuse(parser, "%s needs a value", as_given);
		return set(parser, option, value, as_given) < 0 ? -1 : took;
	}
	return 1;
}

/* Slips that would lock another name, and make KEY the COMMAND. */
static int refuse_as_key(struct parser *parser, const char *word)
{
	if (url_is_meant(word))
		return refuse(
			parser,
			"'%s' stands where KEY belongs: put -S before each server, or commas between them "
			"(put -- before a KEY of this name)",
			quote(parser, word));
	/* U+2010 to U+2015 and U+2212, as typesetting makes of '-' */
	if ((strncmp(word, "\xe2\x80", 2) == 0 && word[2] >= '\x90' &&
	     word[2] <= '\x95') ||
	    strncmp(word, "\xe2\x88\x92", 3) == 0)
		return refuse(parser,
			      "'%s' begins with a dash that is not '-': type "
			      "it anew (put -- before a KEY of this name)",
			      quote(parser, word));
	return 0;
}

static int set_key(struct parser *parser, const char *key)
{
	bool pattern = parser->command->id == COMMAND_LIST;

	if (*key == '\0')
		return refuse(parser,
			      pattern ? "PATTERN is empty" : "KEY is empty");
	if (strlen(key) > KEY_LONGEST)
		return refuse(parser,
			      pattern ? "PATTERN '%s' has more than %d bytes"
				      : "KEY '%s' has more than %d bytes",
			      quote(parser, key), KEY_LONGEST);
	parser->settings->key = settings_keep(parser->settings, key);
	return 0;
}

/* name: where the token is from */
static int set_token(struct parser *parser, const char *name, const char *token)
{
	parser->settings->token = settings_keep(parser->settings, token);
	parser->token_from = name;
	return 0;
}

/* Once all keys are known. */
static int check_token(struct parser *parser)
{
	const struct settings *settings = parser->settings;
	size_t keys = settings_key_count(settings);
	size_t tokens = tokens_count(settings->token, keys);
	char token[TOKEN_LONGEST + 1];

	if (tokens > 1 && keys == 1)
		return refuse(parser,
			      "%s is for %zu keys, but only one is named",
			      parser->token_from, tokens);
	if (tokens > 1 && tokens != keys)
		return refuse(parser, "%s is for %zu keys, but %zu are named",
			      parser->token_from, tokens, keys);
	for (size_t i = 0; i < keys; i++)
		if (!tokens_pick(settings->token, keys, i, token))
			return refuse(
				parser, "%s '%s' must be 1 to %d bytes long",
				parser->token_from,
				quote(parser, settings->token), TOKEN_LONGEST);
	return 0;
}

static int check_also(struct parser *parser)
{
	const struct settings *settings = parser->settings;
	size_t count = settings_key_count(settings);

	for (size_t i = 1; i < count; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(settings_key(settings, i),
				   settings_key(settings, k)) == 0)
				return refuse(parser, "KEY '%s' is named twice",
					      quote(parser,
						    settings_key(settings, i)));
	return 0;
}

/* `fence`: FILE, and perhaps FENCE. */
static int read_file_or_fence(struct parser *parser, const char *argument)
{
	struct settings *settings = parser->settings;

	if (settings->file != NULL && settings->fence != 0)
		return refuse(parser, "one argument too many: '%s'",
			      quote(parser, argument));
	if (settings->file != NULL)
		return set_fence(parser, "FENCE", argument) < 0 ? -1 : 1;
	if (*argument == '\0')
		return refuse(parser, "FILE is empty");
	if (url_is_meant(argument))
		return refuse(parser, "FILE '%s' is the URL of a server",
			      quote(parser, argument));
	settings->file = settings_keep(settings, argument);
	return 1;
}

static int finish_fence(struct parser *parser)
{
	const char *fence = getenv("REDLOCK_FENCE");

	if (parser->settings->file == NULL)
		return refuse(parser, "FILE is missing");
	if (parser->settings->fence != 0)
		return 0;
	if (fence == NULL)
		return refuse(parser, "FENCE is missing, and REDLOCK_FENCE is "
				      "not set");
	return set_fence(parser, "REDLOCK_FENCE", fence);
}

/* argv[0] is no option. How many arguments it took, 0 to stop, or -1. */
static int read_operand(struct parser *parser, char **argv)
{
	struct settings *settings = parser->settings;
	bool takes_token =
		parser->command->id & (COMMAND_RELEASE | COMMAND_EXTEND);

	if (parser->command->id == COMMAND_FENCE)
		return read_file_or_fence(parser, argv[0]);
	if (parser->command->id == COMMAND_STATUS) {
		/* argv has room: these arguments have been read */
		settings->keys = parser->argv;
		settings->keys[settings->key_count++] = argv[0];
		return 1;
	}
	if (settings->key == NULL)
		return set_key(parser, argv[0]) < 0 ? -1 : 1;
	if (takes_token && settings->token == NULL)
		return set_token(parser, "TOKEN", argv[0]) < 0 ? -1 : 1;
	if (parser->command->id == COMMAND_ACQUIRE)
		return refuse(parser,
			      "one argument too many: '%s' (redlock run KEY "
			      "COMMAND holds KEY while COMMAND runs)",
			      quote(parser, argv[0]));
	if (parser->command->id == COMMAND_LIST)
		return refuse(
			parser,
			"one argument too many: '%s' (put PATTERN in quotes, or the shell expands it)",
			quote(parser, argv[0]));
	return refuse(parser, "one argument too many: '%s'",
		      quote(parser, argv[0]));
}

/* What follows KEY in `run`. */
static int read_command(struct parser *parser, char **argv)
{
	struct settings *settings = parser->settings;

	if (argv[0] != NULL && strcmp(argv[0], "--") == 0)
		argv++;
	else if (argv[0] != NULL && argv[0][0] == '-')
		return refuse(parser,
			      "options come before KEY: '%s' (or put "
			      "-- before COMMAND)",
			      quote(parser, argv[0]));
	if (settings->shell_command != NULL && argv[0] != NULL)
		return refuse(parser, "both -c and COMMAND '%s'",
			      quote(parser, argv[0]));
	if (settings->shell_command == NULL && argv[0] == NULL)
		return refuse(parser, "COMMAND is missing: '%s' is KEY",
			      quote(parser, settings->key));
	if (argv[0] != NULL && argv[0][0] == '\0')
		return refuse(parser, "COMMAND is empty");
	settings->command = argv;
	return 0;
}

/* `status -q` prints nothing, and asks only whether KEY is held. */
static int check_quiet(struct parser *parser)
{
	for (size_t i = 0; i < option_count; i++)
		if ((parser->settings->given & options_bit(&options[i])) &&
		    options_is_among(&options[i], "format quarantine"))
			return refuse(parser, "-q cannot be used with --%s",
				      options[i].name);
	return 0;
}

/* `status`: KEYs, or with -q a KEY and perhaps a TOKEN. */
static int check_keys(struct parser *parser)
{
	struct settings *settings = parser->settings;
	size_t count = settings->key_count;

	if (settings->quiet && check_quiet(parser) < 0)
		return -1;
	if (!settings->quiet && settings->also_count > 0)
		return refuse(parser, "--also is for status -q");
	if (settings->quiet && count > 2)
		return refuse(parser, "one argument too many for -q: '%s'",
			      quote(parser, settings->keys[2]));
	if (settings->quiet && count == 2) {
		settings->key_count = count = 1;
		if (set_token(parser, "TOKEN", settings->keys[1]) < 0)
			return -1;
	}
	while (count-- > 0)
		if (set_key(parser, settings->keys[count]) < 0)
			return -1;
	return 0;
}

static int read_argument(struct parser *parser, char **argv, bool *literal)
{
	if (!*literal && strcmp(argv[0], "--") == 0) {
		*literal = true;
		return 1;
	}
	if (!*literal && strncmp(argv[0], "--", 2) == 0)
		return read_long(parser, argv);
	if (!*literal && argv[0][0] == '-' && argv[0][1] != '\0')
		return read_letters(parser, argv);
	if (!*literal && parser->settings->key == NULL &&
	    parser->command->id != COMMAND_FENCE &&
	    refuse_as_key(parser, argv[0]) < 0)
		return -1;
	return read_operand(parser, argv);
}

/* As it is written: -n, or --poll. */
static const char *shown_as(const struct option *option,
			    char text[NAME_LONGEST])
{
	if (option->letter != 0)
		snprintf(text, NAME_LONGEST, "-%c", option->letter);
	else
		snprintf(text, NAME_LONGEST, "--%s", option->name);
	return text;
}

/* A warning that is never given is a slip. */
static int check_thresholds(struct parser *parser)
{
	const struct thresholds *warn = &parser->settings->warn;
	const struct thresholds *most = &parser->settings->most;
	const struct {
		const char *name;
		int64_t warn, most;
	} each[] = {
		{"age", warn->age, most->age},
		{"held", warn->held, most->held},
		{"wait", warn->wait, most->wait},
		{"queue", warn->queue, most->queue},
	};

	for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++)
		if (each[i].most != UNSET && each[i].warn > each[i].most)
			return refuse(parser, "--warn-%s is more than --max-%s",
				      each[i].name, each[i].name);
	return 0;
}

static int check_options(struct parser *parser)
{
	const struct settings *settings = parser->settings;
	char one[NAME_LONGEST], other[NAME_LONGEST];

	for (size_t i = 0; i < option_count; i++) {
		const struct option *option = &options[i], *opposite;

		if (!(settings->given & options_bit(option)))
			continue;
		if (option->for_pid && settings->pid == 0 &&
		    parser->command->id == COMMAND_ACQUIRE)
			return refuse(parser, "--%s is for acquire --pid",
				      option->name);
		opposite = options_find_opposite(option, settings->given);
		if (opposite != NULL)
			return refuse(parser, "%s cannot be used with %s",
				      shown_as(option, one),
				      shown_as(opposite, other));
	}
	if (settings->output != NULL && settings->format != FORMAT_PROMETHEUS)
		return refuse(parser, "--output is for --format prometheus");
	/* no column says this, as --set finds servers in files */
	if (settings->set != NULL && settings->server_count > 0)
		return refuse(parser, "-S cannot be used with --set");
	if (settings->owner != NULL && !settings->reentrant)
		return refuse(parser,
			      "--token is for -r: a lock of another kind has a "
			      "fresh token each time");
	return 0;
}

/* TOKEN, or what the environment says of it. */
static int finish_token(struct parser *parser)
{
	const char *token = getenv("REDLOCK_TOKEN");

	if (parser->settings->token == NULL &&
	    (parser->command->id & (COMMAND_RELEASE | COMMAND_EXTEND))) {
		if (token == NULL)
			return refuse(parser,
				      "TOKEN is missing, and REDLOCK_TOKEN is "
				      "not set");
		if (set_token(parser, "REDLOCK_TOKEN", token) < 0)
			return -1;
	}
	return parser->settings->token != NULL ? check_token(parser) : 0;
}

static int parse(struct parser *parser, char **argv)
{
	struct settings *settings = parser->settings;
	const struct command *command = parser->command;
	bool literal = false;

	while (*argv != NULL && !settings->help) {
		int took = read_argument(parser, argv, &literal);

		if (took < 0)
			return -1;
		argv += took;
		if (command->id == COMMAND_RUN && settings->key != NULL)
			break;
	}
	if (settings->help)
		return 0;
	if (check_options(parser) < 0 || check_thresholds(parser) < 0)
		return -1;
	if (command->id == COMMAND_STATUS && check_keys(parser) < 0)
		return -1;
	if (command->id == COMMAND_FENCE)
		return finish_fence(parser);
	if (settings->key == NULL &&
	    !(command->id & (COMMAND_LIST | COMMAND_DOCTOR)))
		return refuse(parser, "KEY is missing");
	if (check_also(parser) < 0)
		return -1;
	if (command->id == COMMAND_RUN && read_command(parser, argv) < 0)
		return -1;
	return finish_token(parser);
}

int arguments_parse(struct settings *settings, const struct command *command,
		    char **argv, struct error *error)
{
	struct parser parser = {
		.settings = settings,
		.command = command,
		.argv = argv,
		.error = error,
	};

	settings->understood = parse(&parser, argv) == 0;
	return settings->understood && parser.error == error ? 0 : -1;
}
