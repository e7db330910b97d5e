#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>

#include "settings/arguments.h"
#include "cmd/session.h"
#include "settings/command.h"
#include "settings/config.h"
#include "settings/environment.h"
#include "settings/help.h"
#include "settings/options.h"
#include "base/signals.h"
#include "settings/sources.h"
#include "settings/suggest.h"
#include "settings/synonym.h"
#include "base/title.h"

#ifndef VERSION
#define VERSION "0"
#endif

const struct command commands[] = {
	{COMMAND_RUN, "run",
	 "run [OPTION ...] KEY [--] COMMAND [ARGUMENT ...]\n"
	 "       redlock run [OPTION ...] -c STRING KEY",
	 "hold KEY while COMMAND runs", cmd_run},
	{COMMAND_ACQUIRE, "acquire", "acquire [OPTION ...] KEY",
	 "take KEY and print its token", cmd_acquire},
	{COMMAND_RELEASE, "release", "release [OPTION ...] KEY [TOKEN]",
	 "give KEY back", cmd_release},
	{COMMAND_EXTEND, "extend", "extend [OPTION ...] KEY [TOKEN]",
	 "renew KEY's lease", cmd_extend},
	{COMMAND_STATUS, "status",
	 "status [OPTION ...] KEY ...\n"
	 "       redlock status -q [OPTION ...] KEY [TOKEN]",
	 "show who holds KEY and who waits for it; with -q, by exit status",
	 cmd_status},
	{COMMAND_LIST, "list", "list [OPTION ...] [PATTERN]",
	 "list the locks that are held", cmd_list},
	{COMMAND_WAIT, "wait", "wait [OPTION ...] KEY",
	 "wait until KEY is free, and take nothing", cmd_wait},
	{COMMAND_BREAK, "break", "break [OPTION ...] KEY",
	 "take KEY away from whoever holds it", cmd_break},
	{COMMAND_DOCTOR, "doctor", "doctor [OPTION ...] [KEY]",
	 "test whether each server would grant a lock, and if not, why",
	 cmd_doctor},
	{0, NULL, NULL, NULL, NULL},
};

static int print(struct buffer *text)
{
	int status = cmd_show(text->data, text->length);

	buffer_release(text);
	return status;
}

static int print_version(void)
{
	struct buffer text = {0};

	buffer_print(&text, "redlock %s\n", VERSION);
	return print(&text);
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
		     "  %-9s show how a command is used\n\n"
		     "redlock COMMAND --help lists its options; "
		     "redlock --version shows the version.\n"
		     "Manuals: redlock(1), redlock-messages(7) (what a "
		     "message means, what to do),\n"
		     "redlock.conf(5), redlock-servers(7), "
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
	const char *name = argv[0], *meant = synonym_of_command(name);
	char shown[URL_QUOTED];

	url_quote_any(name, shown);
	if (meant == NULL)
		meant = find_nearest(name);
	if (strcmp(name, "-h") == 0)
		log_error(
			"-h means help, and only as the last word: a server is "
			"named by -S, after the command: redlock run -S URL "
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

/* Also if the mistake stands before it. */
static bool wants_shell(char **argv)
{
	for (; *argv != NULL; argv++)
		if (strcmp(*argv, "--format=shell") == 0 ||
		    (strcmp(*argv, "--format") == 0 && argv[1] != NULL &&
		     strcmp(argv[1], "shell") == 0))
			return true;
	return false;
}

/* The `eval` of a misspelt acquire fails, too. */
static int refuse_command(char **argv)
{
	const struct settings settings = {
		.format = wants_shell(argv) ? FORMAT_SHELL : FORMAT_PEOPLE,
	};

	complain_command(argv);
	cmd_print_failure(&settings, EXIT_USAGE);
	return EXIT_USAGE;
}

static int help(char **argv)
{
	const struct command *command;
	char shown[URL_QUOTED];

	if (argv[0] == NULL || strcmp(argv[0], "help") == 0)
		return print_help();
	command = find_command(argv[0]);
	if (command == NULL)
		return refuse_command((char *[]){argv[0], NULL});
	if (argv[1] == NULL)
		return print_command_help(command, false);
	log_error("help: one argument too many: '%s'",
		  url_quote_any(argv[1], shown));
	return EXIT_USAGE;
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

/* Where the settings are from. */
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

static int run_command(const struct command *command, char **argv)
{
	struct settings settings;
	struct error error;
	int status;

	config_init(&settings);
	if (arguments_parse(&settings, command, argv, &error) < 0 ||
	    (!settings.help && (sources_read(&settings, command, &error) < 0 ||
				config_finish(&settings, &error) < 0))) {
		log_error("%s", error.text);
		status = error.code;
		if (command->id == COMMAND_ACQUIRE && wants_shell(argv))
			settings.format = FORMAT_SHELL;
		cmd_print_failure(&settings, status);
	} else if (settings.help) {
		status = print_command_help(command, settings.help_all);
	} else {
		log_init(settings.quiet     ? LOG_QUIET
			 : settings.verbose ? LOG_VERBOSE
					    : LOG_NORMAL);
		tell_unknown();
		tell_files(&settings);
		tell_origins(&settings);
		status = command->main(&settings);
	}
	config_release(&settings);
	return status;
}

/* A closed standard descriptor would be given to a socket of ours, and
 * COMMAND's error messages to the server. Writing to it still fails, and
 * COMMAND finds it closed again. */
static void occupy_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
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
		return print_version();
	if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0)
		return help(argv + 2);
	if (strcmp(argv[1], "-h") == 0 && argc == 2)
		return print_help();
	command = find_command(argv[1]);
	return command != NULL ? run_command(command, argv + 2)
			       : refuse_command(argv + 1);
}
