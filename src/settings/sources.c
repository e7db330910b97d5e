#include "settings/sources.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "settings/conffile.h"
#include "settings/environment.h"
#include "settings/logins.h"
#include "settings/options.h"
#include "base/output.h"
#include "settings/suggest.h"

#define SYSTEM_FILE "/etc/redlock.conf"
#define NAMES_MAX 64

struct reader {
	struct settings *settings;
	const struct command *command;
	struct conffile files[CONFIG_FILES];
	size_t file_count;
	uint64_t denied; /* options that were given as "no" */
	struct error *error;
};

/* One section of a file, or the environment. */
struct source {
	struct reader *reader;
	struct conffile *file; /* NULL: the environment */
	bool counts;
	bool has_secret;
	uint64_t before;       /* what was given before it */
	uint64_t here, yes;    /* what it gives itself; not as "no" */
	struct origin here_is; /* where it is being read */
	struct settings aside; /* for what is not used */
};

/* --- one line ----------------------------------------------------------- */

static const struct option *find_option(const struct reader *reader,
					const char *name)
{
	const struct option *option = options_find_setting(name);

	if (option == NULL)
		option = options_find(name, strlen(name), reader->command->id);
	return option != NULL && strcmp(option->name, name) == 0 ? option
								 : NULL;
}

static int refuse_name(struct reader *reader, const char *name)
{
	const char *names[NAMES_MAX], *nearest;
	size_t count = 0;

	/* its meaning depends on who wrote it: a file may be older than this */
	if (strcmp(name, "timeout") == 0) {
		error_set(reader->error, EXIT_CONFIG,
			  "'timeout' can mean two things: use server-timeout "
			  "for one round with the servers, wait for how long "
			  "to wait for KEY");
		return -1;
	}
	for (size_t i = 0; i < option_count; i++)
		if (!options[i].command_only)
			names[count++] = options[i].name;
	nearest = suggest_nearest(name, names, count);
	error_set(reader->error, EXIT_CONFIG, "unknown option '%s'%s%s%s", name,
		  nearest != NULL ? ": did you mean " : "",
		  nearest != NULL ? nearest : "", nearest != NULL ? "?" : "");
	return -1;
}

/* Whether this option may stand here. */
static int check_option(struct source *source, const struct option *option)
{
	struct error *error = source->reader->error;
	uint64_t bit = options_bit(option);

	if (option->command_only) {
		error_set(error, EXIT_CONFIG,
			  "'%s' is for the command line only", option->name);
		return -1;
	}
	if ((source->here & bit) && !option->repeats) {
		error_set(error, EXIT_CONFIG, "'%s' is given twice",
			  option->name);
		return -1;
	}
	source->here |= bit;
	return 0;
}

/* As options_set; flags are "yes" or "no", and so is an option whose value may
 * be left out. */
static const char *set_value(struct settings *settings,
			     const struct option *option, char *value)
{
	if (option->takes == TAKES_VALUE)
		return options_set(settings, option, value);
	if (strcmp(value, "no") == 0) {
		options_note(settings, option);
		return NULL;
	}
	if (strcmp(value, "yes") == 0)
		return options_set(settings, option, NULL);
	return option->takes == TAKES_NOTHING
		       ? "yes or no"
		       : options_set(settings, option, value);
}

static bool is_password(const struct option *option)
{
	return strcmp(option->name, "password") == 0 ||
	       strcmp(option->name, "password-file") == 0;
}

/* Where the line goes: to the settings, or (NULL) aside. */
static struct settings *target_of(const struct source *source,
				  const struct option *option)
{
	const struct reader *reader = source->reader;
	uint64_t said = source->before & ~reader->denied;

	if (!source->counts || (source->before & options_bit(option)) ||
	    (said & options_opposites(option)))
		return NULL;
	if (is_password(option)) /* take_password */
		return NULL;
	/* of those without a command all take it */
	if (option->commands != 0 && !(option->commands & reader->command->id))
		return NULL;
	return reader->settings;
}

/* How many passwords there are. */
static size_t secrets(const struct settings *settings)
{
	size_t count = settings->password != NULL;

	for (size_t i = 0; i < settings->server_count; i++)
		count += settings->servers[i].password != NULL;
	return count;
}

/* What this source has said before excludes the option. */
static int refuse_opposite(const struct source *source,
			   const struct option *option, const char *name)
{
	struct error *error = source->reader->error;
	uint64_t opposites = source->yes & options_opposites(option);
	char other[VARIABLE_NAME];

	if (source->file != NULL) {
		error_set(error, EXIT_CONFIG,
			  "'%s' cannot go with what stands above it", name);
		return -1;
	}
	for (size_t i = 0; i < option_count; i++)
		if (opposites & options_bit(&options[i]))
			options_variable(&options[i], other);
	error_set(error, EXIT_CONFIG, "%s cannot go with %s", name, other);
	return -1;
}

/* name: what the option is called there. */
static int read_value(struct source *source, const struct option *option,
		      const char *name, char *value)
{
	struct reader *reader = source->reader;
	struct settings *target = target_of(source, option);
	bool no = option->takes != TAKES_VALUE && strcmp(value, "no") == 0;
	char shown[URL_QUOTED];
	const char *wanted;
	size_t known;

	if (!no && (source->yes & options_opposites(option)))
		return refuse_opposite(source, option, name);
	if (!no)
		source->yes |= options_bit(option);
	if (target == NULL)
		target = &source->aside;
	else if (no)
		reader->denied |= options_bit(option);
	target->here = source->here_is;
	known = secrets(target);
	wanted = set_value(target, option, value);
	source->has_secret |= secrets(target) > known;
	if (wanted == NULL)
		return 0;
	if (*wanted == '\0')
		*reader->error = target->error;
	else
		error_set(reader->error, EXIT_CONFIG, "%s '%s' is not %s", name,
			  url_quote_any(value, shown), wanted);
	return -1;
}

static int read_line(struct source *source, const struct conffile_line *line)
{
	struct reader *reader = source->reader;
	const struct option *option = find_option(reader, line->name);
	int result;

	source->here_is.line = line->number;

	if (option == NULL)
		result = refuse_name(reader, line->name);
	else if ((result = check_option(source, option)) == 0)
		result = read_value(source, option, option->name, line->value);
	if (result == 0)
		return 0;
	reader->error->code = EXIT_CONFIG;
	conffile_blame(source->file, line->number, reader->error);
	return -1;
}

/* --- one section -------------------------------------------------------- */

/* Where a section is, for people. */
static const char *name_section(const struct source *source, size_t section)
{
	const char *header = source->file->sections[section];
	struct buffer name = {0};
	const char *kept;

	buffer_print(&name, "%s", source->file->path);
	if (header != NULL)
		buffer_print(&name, " [%s]", header);
	kept = config_keep(source->reader->settings, name.data);
	buffer_release(&name);
	return kept;
}

/* A section that counts: its password is for its servers (logins.h). */
static int take_password(struct source *source, size_t section)
{
	struct reader *reader = source->reader;
	struct settings *settings = reader->settings, *aside = &source->aside;
	const struct option *server = find_option(reader, "server");
	const struct option *password;
	uint64_t added = settings->given & ~source->before;
	bool named = (added & options_bit(server)) != 0;
	char text[sizeof(reader->error->text)];

	if (named)
		settings->named = name_section(source, section);
	if (aside->password == NULL && aside->password_file == NULL)
		return 0;
	if (!named) {
		logins_spare(settings, name_section(source, section));
		return 0;
	}
	password = options_find_setting(
		aside->password != NULL ? "password" : "password-file");
	settings->here = options_origin(aside, password);
	options_note(settings, password);
	settings->password = aside->password;
	aside->password = NULL;
	if (aside->password_file == NULL)
		return 0;
	settings->password =
		logins_read_file(aside->password_file, reader->error);
	if (settings->password != NULL)
		return 0;
	memcpy(text, reader->error->text, sizeof(text));
	error_set(reader->error, EXIT_CONFIG, "%s: password-file: %s",
		  settings->named, text);
	return -1;
}

/* counts: it is used, where nothing has said otherwise before. */
static int read_section(struct reader *reader, size_t which, size_t section,
			bool counts)
{
	struct source source = {
		.reader = reader,
		.file = &reader->files[which],
		.counts = counts,
		.before = reader->settings->given,
		.here_is = {.place = BY_FILE, .file = (unsigned char)which},
	};
	int result = 0;

	config_init(&source.aside);
	for (size_t i = 0; i < source.file->count && result == 0; i++)
		if (source.file->lines[i].section == section)
			result = read_line(&source, &source.file->lines[i]);
	if (result == 0 && counts)
		result = take_password(&source, section);
	reader->settings->files[which].exposed |=
		source.has_secret && source.file->readable;
	config_release(&source.aside);
	return result;
}

/* Where the file has the set; 0: it has not. */
static size_t find_set(const struct conffile *file, const char *name)
{
	for (size_t i = 1; i < file->section_count; i++)
		if (strcmp(file->sections[i], name) == 0)
			return i;
	return 0;
}

static int refuse_set(struct reader *reader)
{
	const char *names[CONFIG_FILES * CONFFILE_SECTIONS], *nearest;
	const char *set = reader->settings->set;
	char shown[URL_QUOTED];
	size_t count = 0;

	for (size_t i = 0; i < reader->file_count; i++)
		for (size_t n = 1; n < reader->files[i].section_count; n++)
			names[count++] = reader->files[i].sections[n];
	nearest = suggest_nearest(set, names, count);
	error_set(reader->error, EXIT_CONFIG,
		  "--set '%s': no configuration file has this section",
		  url_quote_any(set, shown));
	for (size_t i = 0; i < reader->file_count; i++)
		error_append(reader->error, "%s%s", i == 0 ? ": " : ", ",
			     reader->files[i].path);
	if (nearest != NULL)
		error_append(reader->error, ": did you mean %s?", nearest);
	return -1;
}

/* All sections, of which only that of --set counts. */
static int read_sets(struct reader *reader)
{
	struct settings *settings = reader->settings;
	bool found = false;

	for (size_t which = 0; which < reader->file_count; which++) {
		const struct conffile *file = &reader->files[which];
		size_t set = settings->set != NULL
				     ? find_set(file, settings->set)
				     : 0;

		found |= set > 0;
		for (size_t i = 1; i < file->section_count; i++)
			if (read_section(reader, which, i, i == set) < 0)
				return -1;
	}
	if (settings->set == NULL)
		return 0;
	if (!found)
		return refuse_set(reader);
	if (settings->server_count > 0)
		return 0;
	error_set(reader->error, EXIT_CONFIG, "--set '%s': [%s] has no server",
		  settings->set, settings->set);
	return -1;
}

/* --- the environment ---------------------------------------------------- */

/* entry: NAME=VALUE */
static int read_variable(struct source *source, char *entry)
{
	size_t length = strcspn(entry, "=");
	const struct option *option;
	char name[VARIABLE_NAME];

	if (entry[length] == '\0' || entry[length + 1] == '\0' ||
	    length >= sizeof(name))
		return 0;
	memcpy(name, entry, length);
	name[length] = '\0';
	option = options_find_variable(name);
	/* servers and passwords go together: environment.h */
	if (option == NULL || option->repeats || is_password(option) ||
	    (source->before & options_bit(option)))
		return 0;
	return read_value(source, option, name, entry + length + 1);
}

static int read_variables(struct reader *reader)
{
	struct source source = {
		.reader = reader,
		.counts = true,
		.before = reader->settings->given,
		.here_is = {.place = BY_ENVIRONMENT},
	};
	int result = 0;

	config_init(&source.aside);
	for (char **entry = environ; *entry != NULL && result == 0; entry++)
		if (strncmp(*entry, "REDLOCK_", strlen("REDLOCK_")) == 0)
			result = read_variable(&source, *entry);
	config_release(&source.aside);
	return result;
}

/* What the environment says counts as given, too. */
static int read_environment(struct reader *reader)
{
	struct settings *settings = reader->settings;

	return read_variables(reader) < 0 ||
			       environment_read_servers(settings,
							reader->error) < 0 ||
			       environment_read_password(settings,
							 reader->error) < 0
		       ? -1
		       : 0;
}

/* --- the files ---------------------------------------------------------- */

/* A directory of the user's own; NULL where there is none. */
static const char *find_home(void)
{
	const char *home = getenv("HOME");
	const struct passwd *user;

	if (home != NULL && *home == '/')
		return home;
	user = getpwuid(getuid());
	return user != NULL ? user->pw_dir : NULL;
}

static const char *find_user_file(struct settings *settings)
{
	const char *directory = getenv("XDG_CONFIG_HOME"), *below = "";
	struct buffer path = {0};

	if (getauxval(AT_SECURE))
		return NULL;
	if (directory == NULL || *directory != '/') {
		directory = find_home();
		below = "/.config";
	}
	if (directory == NULL)
		return NULL;
	buffer_print(&path, "%s%s/redlock.conf", directory, below);
	directory = config_keep(settings, path.data);
	buffer_release(&path);
	return directory;
}

static int read_file(struct reader *reader, const char *path, bool may_lack)
{
	struct conffile *file = &reader->files[reader->file_count];
	int result;

	if (path == NULL)
		return 0;
	result = conffile_read(file, path, may_lack, reader->error);
	if (file->path != NULL)
		reader->settings->files[reader->file_count++].path = path;
	return result;
}

static int read_files(struct reader *reader)
{
	const char *path = reader->settings->config;

	if (path != NULL)
		return read_file(reader, path, false);
	path = find_user_file(reader->settings);
	return read_file(reader, path, true) < 0 ||
			       read_file(reader, SYSTEM_FILE, true) < 0
		       ? -1
		       : 0;
}

static int read_all(struct reader *reader)
{
	if (read_files(reader) < 0 || read_sets(reader) < 0 ||
	    read_environment(reader) < 0)
		return -1;
	for (size_t which = 0; which < reader->file_count; which++)
		if (read_section(reader, which, 0, true) < 0)
			return -1;
	return 0;
}

int sources_read(struct settings *settings, const struct command *command,
		 struct error *error)
{
	struct reader reader = {
		.settings = settings, .command = command, .error = error};
	int result;

	settings->named = settings->server_count > 0 ? "-S" : NULL;
	if (settings->set != NULL && settings->server_count > 0) {
		error_set(error, EXIT_USAGE,
			  "-S and --set cannot be used together");
		return -1;
	}
	result = read_all(&reader);
	for (size_t which = 0; which < CONFIG_FILES; which++)
		conffile_release(&reader.files[which]);
	return result;
}
