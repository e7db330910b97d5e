#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "settings/arguments.h"
#include "cmd/check.h"
#include "cmd/complete.h"
#include "cmd/last_words.h"
#include "cmd/metrics.h"
#include "cmd/print.h"
#include "cmd/run.h"
#include "cmd/version.h"
#include "settings/command.h"
#include "settings/config.h"
#include "settings/environment.h"
#include "settings/help.h"
#include "settings/options.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/signals.h"
#include "lock/names.h"
#include "settings/sources.h"
#include "settings/suggest.h"
#include "base/title.h"

const struct command commands[] = {
	{COMMAND_RUN, "run",
	 "run [OPTION ...] KEY [--] COMMAND [ARGUMENT ...]\n"
	 "       redlock run [OPTION ...] -c STRING KEY",
	 "hold KEY while COMMAND runs", cmd_run},
	{COMMAND_ACQUIRE, "acquire", "acquire [OPTION ...] KEY",
	 "take KEY and print its token", cmd_acquire},
	{COMMAND_RELEASE, "release", "release [OPTION ...] KEY [TOKEN]",
	 "release KEY", cmd_release},
	{COMMAND_EXTEND, "extend", "extend [OPTION ...] KEY [TOKEN]",
	 "renew KEY's lease", cmd_extend},
	{COMMAND_STATUS, "status",
	 "status [OPTION ...] KEY ...\n"
	 "       redlock status -q [OPTION ...] KEY [TOKEN]",
	 "show who holds KEY and who waits; with -q, by exit status only",
	 cmd_status},
	{COMMAND_LIST, "list", "list [OPTION ...] [PATTERN]",
	 "list the locks that are held", cmd_list},
	{COMMAND_HISTORY, "history", "history [OPTION ...] KEY",
	 "show how the last runs of KEY went", cmd_history},
	{COMMAND_CHECK, "check", "check [OPTION ...] KEY",
	 "check KEY as a plugin for Nagios, Icinga or Sensu", cmd_check},
	{COMMAND_WAIT, "wait", "wait [OPTION ...] KEY",
	 "wait until KEY is free, without taking it", cmd_wait},
	{COMMAND_BREAK, "break", "break [OPTION ...] KEY",
	 "ask KEY's holder to stop, and wait until it has", cmd_break},
	{COMMAND_DOCTOR, "doctor", "doctor [OPTION ...] [KEY]",
	 "test whether each server would grant a lock, and if not, why",
	 cmd_doctor},
	{COMMAND_FENCE, "fence", "fence [OPTION ...] FILE [FENCE]",
	 "fail if FILE has seen a larger fence", cmd_fence},
	{0, NULL, NULL, NULL, NULL},
};

static int print(struct buffer *text)
{
	int status = cmd_show(text->data, text->length);

	buffer_release(text);
	return status;
}

static int print_help(void)
{
	struct buffer text = {0};

	buffer_print(&text,
		     "usage: redlock COMMAND ...\n\n"
		     "A lock in Redis, on one server or a quorum of them, held "
		     "while a command runs.\n\n");
	for (const struct command *each = commands; each->name; each++)
		buffer_print(&text, "  %-9s %s\n", each->name, each->summary);
	buffer_print(&text,
		     "  %-9s open the manual of a command\n\n"
		     "redlock COMMAND --help lists its options; "
		     "redlock -V, --version its version.\n"
		     "Manuals: redlock(1), redlock-messages(7) (what a "
		     "message means, what to do),\n"
		     "redlock.conf(5), redlock.sh(1), redlock-servers(7), "
		     "redlock-protocol(7).\n",
		     "help");
	return print(&text);
}

static int print_command_help(const struct command *command, bool all)
{
	struct buffer text = {0};

	help_print(&text, command, all);
	return print(&text);
}

static bool has_page(const struct command *command)
{
	struct buffer search = {0};
	bool found;

	buffer_print(&search, "man -w redlock-%s >/dev/null 2>&1",
		     command->name);
	found = system(search.data) == 0; /* NOLINT: the name is our own */
	buffer_release(&search);
	return found;
}

/* Becomes man(1), unless it does not find the page. */
static int show_manual(const struct command *command)
{
	struct buffer page = {0};

	buffer_print(&page, "redlock-%s", command->name);
	if (has_page(command)) {
		signals_reset();
		execlp("man", "man", page.data, (char *)NULL);
	}
	log_notice("man(1) does not find %s(1), so these are the options",
		   page.data);
	buffer_release(&page);
	return print_command_help(command, true);
}

static int show_help(const struct command *command, enum help help)
{
	return help == HELP_MANUAL
		       ? show_manual(command)
		       : print_command_help(command, help == HELP_ALL);
}

static const struct command *find_command(const char *name)
{
	for (const struct command *each = commands; each->name; each++)
		if (strcmp(each->name, name) == 0)
			return each;
	return NULL;
}

static const char *find_nearest(const char *name)
{
	const char *names[sizeof(commands) / sizeof(commands[0])];
	size_t count = 0;

	for (const struct command *each = commands; each->name; each++)
		names[count++] = each->name;
	names[count++] = "help";
	return suggest_nearest(name, names, count);
}

/* argv[0] is no command. */
static void complain_command(char **argv)
{
	const char *name = argv[0], *meant = suggest_command(name);
	char shown[URL_QUOTED];

	url_quote_any(name, shown);
	if (meant == NULL)
		meant = find_nearest(name);
	if (strcmp(name, "-h") == 0)
		log_error(
			"-h means help, and only as the last word: name a server with -S, after the command: redlock run -S URL "
			"KEY COMMAND");
	else if (name[0] == '-' && argv[1] == NULL)
		log_error("option '%s' is for a command: see redlock help; "
			  "the version is redlock --version",
			  shown);
	else if (name[0] == '-')
		log_error("option '%s' stands before the command: options come "
			  "after it, as in redlock run -n KEY COMMAND",
			  shown);
	else if (meant != NULL)
		log_error("unknown command '%s': did you mean %s?", name,
			  meant);
	else if (argv[1] != NULL && strcmp(name, "redlock") != 0)
		log_error("unknown command '%s': did you mean redlock run %s "
			  "...? See redlock help",
			  shown, shown);
	else
		log_error("unknown command '%s': see redlock help", shown);
}

/* Whether a word is --format, or was perhaps meant to be. */
static bool is_format(const char *word)
{
	static const char *const names[] = {"format"};
	const struct synonym *synonym;
	const char *name = word;
	char text[sizeof(synonym->word)];

	while (*name == '-' || (unsigned char)*name >= 0x80)
		name++;
	if (name == word)
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)strcspn(name, "="), name);
	synonym = suggest_option(text);
	return strncmp(word, "--fo", 4) == 0 ||
	       suggest_nearest(text, names, 1) != NULL ||
	       (synonym != NULL && suggest_text(synonym) == NULL &&
		strcmp(synonym->option, names[0]) == 0);
}

/* Whether an eval may read what we print: also if the mistake stands before --format, or
 * is in it or in its value. */
static bool wants_shell(char **argv)
{
	for (; *argv != NULL; argv++) {
		const char *value = strchr(*argv, '=');

		value = value != NULL ? value + 1 : argv[1];
		if (is_format(*argv) &&
		    (value == NULL || strcmp(value, "json") != 0))
			return true;
	}
	return false;
}

/* The `eval` of a misspelt acquire fails, too. */
static int refuse_command(char **argv)
{
	const struct settings settings = {
		.format = wants_shell(argv) ? FORMAT_SHELL : FORMAT_PEOPLE,
	};

	complain_command(argv);
	cmd_print_failure(&settings, EXIT_USAGE, false);
	return EXIT_USAGE;
}

static int refuse_more(const char *word, const char *argument)
{
	char shown[URL_QUOTED];

	log_error("%s: one argument too many: '%s'", word,
		  url_quote_any(argument, shown));
	return EXIT_USAGE;
}

/* Whether all that is left asks for help, too. */
static bool ends_help(char **argv)
{
	return argv[0] == NULL ||
	       (argv[1] == NULL &&
		(strcmp(argv[0], "-h") == 0 || strcmp(argv[0], "--help") == 0));
}

static int help(char **argv)
{
	const struct command *command;

	if (ends_help(argv) || strcmp(argv[0], "help") == 0)
		return print_help();
	if (strcmp(argv[0], "--complete") == 0)
		return cmd_complete(commands, argv + 1);
	command = find_command(argv[0]);
	if (command == NULL)
		return refuse_command((char *[]){argv[0], NULL});
	if (ends_help(argv + 1))
		return show_help(command, isatty(STDOUT_FILENO) ? HELP_MANUAL
								: HELP_PAGE);
	return refuse_more("help", argv[1]);
}

static void tell_unknown(void)
{
	struct buffer text = {0};
	size_t at = 0;

	while (environment_next_unknown(&at, &text)) {
		log_notice("%s", text.data);
		buffer_release(&text);
	}
}

/* The origins of the settings. */
static void tell_origins(const struct settings *settings)
{
	struct buffer text = {0};

	options_tell_origins(&text, settings);
	if (text.length > 0)
		log_step("settings: %s", text.data);
	buffer_release(&text);
}

static void tell_files(const struct settings *settings)
{
	for (size_t i = 0; i < CONFIG_FILES; i++) {
		const struct config_file *file = &settings->files[i];

		if (file->path == NULL)
			break;
		log_step("settings: %s", file->path);
		if (file->exposed)
			log_notice("%s: others can read the password in it: "
				   "chmod 600",
				   file->path);
	}
}

static bool is_reserved(const char *key)
{
	return names_are_reserved((struct argument){key, strlen(key)});
}

/* No lock may have a KEY whose name belongs to another KEY. */
static int check_keys(struct settings *settings, const struct command *command,
		      struct error *error)
{
	const char *key = settings->key;
	char shown[URL_QUOTED];

	if (key == NULL || command->id == COMMAND_LIST)
		return 0;
	for (size_t i = 0; i < settings->key_count && !is_reserved(key); i++)
		key = settings->keys[i];
	for (size_t i = 0; i < settings->also_count && !is_reserved(key); i++)
		key = settings->also[i];
	if (!is_reserved(key))
		return 0;
	settings->understood = false;
	error_set(error, EXIT_USAGE,
		  "%s: KEY '%s' could be the record of another KEY: choose "
		  "another name",
		  command->name, url_quote_any(key, shown));
	return -1;
}

static int read_settings(struct settings *settings,
			 const struct command *command, char **argv,
			 struct error *error)
{
	bool wrong = arguments_parse(settings, command, argv, error) < 0;

	if (!wrong &&
	    (settings->help != HELP_NONE || command->id == COMMAND_FENCE))
		return 0;
	if (wrong && command->id == COMMAND_ACQUIRE && wants_shell(argv))
		settings->format = FORMAT_SHELL;
	/* a complaint may have to wait for its reader, too */
	last_words_prepare(settings);
	return wrong || check_keys(settings, command, error) < 0 ||
			       sources_read(settings, command, error) < 0 ||
			       config_finish(settings, error) < 0
		       ? -1
		       : 0;
}

/* The exit status. */
static int complain(const struct command *command, const struct error *error)
{
	if (command->id == COMMAND_CHECK)
		return check_tell_unknown(error->text);
	log_error("%s", error->text);
	return error->code;
}

/* 0, or the exit status: then it has said why. A function of its own: of a smaller
 * stack fewer pages are touched. */
__attribute__((noinline)) static int get_settings(struct settings *settings,
						  const struct command *command,
						  char **argv)
{
	struct error error;

	if (read_settings(settings, command, argv, &error) == 0)
		return 0;
	return complain(command, &error);
}

static int run_command(const struct command *command, char **argv)
{
	struct settings settings;
	int status;

	settings_init(&settings);
	status = get_settings(&settings, command, argv);
	if (status != 0) {
		cmd_print_failure(&settings, status, false);
		run_tell_failure(&settings, status);
		if (settings.format == FORMAT_PROMETHEUS &&
		    (settings.understood || status != EXIT_USAGE))
			metrics_tell_nothing(&settings,
					     command->id == COMMAND_DOCTOR);
	} else if (settings.help) {
		status = show_help(command, settings.help);
	} else {
		/* a monitor may show a warning instead of the result */
		log_init(settings.verbose ? LOG_VERBOSE
			 : settings.quiet || command->id == COMMAND_CHECK
				 ? LOG_QUIET
				 : LOG_NORMAL);
		tell_unknown();
		tell_files(&settings);
		tell_origins(&settings);
		status = command->main(&settings);
	}
	settings_release(&settings);
	return status;
}

/* A closed standard descriptor would be given to a socket of ours, and
 * COMMAND's error messages to the server. Writing to it still fails, and
 * COMMAND finds it closed again. */
static void occupy_standard_descriptors(void)
{
	struct pollfd standard[] = {{.fd = 0}, {.fd = 1}, {.fd = 2}};
	int fd;

	if (poll(standard, 3, 0) == 0)
		return; /* all are open: none is POLLNVAL */
	do
		fd = descriptors_nowhere(O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* What exit(3) does besides is of no use here, and has a dozen pages copied that the
 * guard shares. */
static void leave(int status)
{
	log_end();
#ifdef __SANITIZE_ADDRESS__
	exit(status); /* it looks for leaks */
#else
	_exit(status);
#endif
}

int main(int argc, char **argv)
{
	const struct command *command;

	title_init(argc, argv);
	signals_init();
	occupy_standard_descriptors();
	log_init(LOG_NORMAL);
	if (argc < 2) {
		log_error("a command is missing: see redlock help");
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
		return argc == 2 ? cmd_version()
				 : refuse_more(argv[1], argv[2]);
	if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0)
		return help(argv + 2);
	if (strcmp(argv[1], "-h") == 0 && argc == 2)
		return print_help();
	command = find_command(argv[1]);
	leave(command != NULL ? run_command(command, argv + 2)
			      : refuse_command(argv + 1));
}
