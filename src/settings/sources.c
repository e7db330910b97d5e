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
#include "base/buffer.h"
#include "settings/suggest.h"

#define SYSTEM_FILE "/etc/redlock.conf"
#define NAMES_MAX 64

struct sources {
	struct settings *settings;
	const struct command *command;
	struct conffile files[CONFIG_FILES];
	size_t file_count;
	uint64_t denied; /* options that were given as "no" */
	struct error *error;
};

/* One section of a file, or the environment. */
struct source {
	struct sources *sources;
	struct conffile *file; /* NULL: the environment */
	bool counts;
	bool has_secret;
	uint64_t before;       /* what was given before it */
	uint64_t here, yes;    /* what it gives itself; not as "no" */
	struct origin here_is; /* where it is being read */
	struct settings aside; /* for what is not used */
};

/* --- one line ----------------------------------------------------------- */

static const struct option *find_option(const struct sources *sources,
					const char *name)
{
	const struct option *option = options_find_setting(name);

	if (option == NULL)
		option = options_find(name, strlen(name), sources->command->id);
	return option != NULL && strcmp(option->name, name) == 0 ? option
								 : NULL;
}

static int refuse_name(struct sources *sources, const char *name)
{
	const char *names[NAMES_MAX] = {NULL}, *nearest;
	const struct option *second;
	size_t count = 0;

	/* files that are older than this meaning of the name may exist */
	if (strcmp(name, "timeout") == 0) {
		error_set(sources->error, EXIT_CONFIG,
			  "'timeout' can mean two things: use server-timeout "
			  "for one round with the servers, wait for how long "
			  "to wait for KEY");
		return -1;
	}
	for (size_t i = 0; i < option_count; i++)
		if (!options[i].command_only)
			names[count++] = options[i].name;
	second = options_find(name, strlen(name), ~0U);
	nearest = second != NULL ? second->name
				 : suggest_nearest(name, names, count);
	error_set(sources->error, EXIT_CONFIG, "unknown option '%s'%s%s%s",
		  name, nearest != NULL ? ": did you mean " : "",
		  nearest != NULL ? nearest : "", nearest != NULL ? "?" : "");
	return -1;
}

/* Whether this option may stand here. */
static int check_option(struct source *source, const struct option *option)
{
	struct error *error = source->sources->error;
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

/* As options_set. The value of a flag is "yes" or "no"; an option whose value may
 * be left out takes these, too. */
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
	return options_secret(option) != SECRETS;
}

/* Where the line goes: to the settings, or aside (NULL). */
static struct settings *target_of(const struct source *source,
				  const struct option *option)
{
	const struct sources *sources = source->sources;
	uint64_t said = source->before & ~sources->denied;

	if (!source->counts || (source->before & options_bit(option)) ||
	    options_find_opposite(option, said) != NULL)
		return NULL;
	if (is_password(option)) /* take_passwords */
		return NULL;
	/* an option that names no command is for all of them, and doctor says where each
	 * one is from */
	if (option->commands != 0 && sources->command->id != COMMAND_DOCTOR &&
	    !((option->commands | option->unlisted) & sources->command->id))
		return NULL;
	return sources->settings;
}

/* How many passwords there are. */
static size_t secrets(const struct settings *settings)
{
	size_t count = 0;

	for (size_t kind = 0; kind < SECRETS; kind++)
		count += settings->secrets[kind].text != NULL;
	for (size_t i = 0; i < settings->server_count; i++)
		count += settings->servers[i].password != NULL ||
			 settings->servers[i].seed_password != NULL;
	return count;
}

static int refuse_opposite(const struct source *source, const char *name,
			   const struct option *opposite)
{
	struct error *error = source->sources->error;
	char variable[VARIABLE_NAME];

	if (source->file != NULL)
		error_set(error, EXIT_CONFIG, "'%s' cannot be used with '%s'",
			  name, opposite->name);
	else
		error_set(error, EXIT_CONFIG, "%s cannot be used with %s", name,
			  options_variable(opposite, variable));
	return -1;
}

/* name: what the option is called there. */
static int read_value(struct source *source, const struct option *option,
		      const char *name, char *value)
{
	struct sources *sources = source->sources;
	struct settings *target = target_of(source, option);
	bool no = option->takes != TAKES_VALUE && strcmp(value, "no") == 0;
	const struct option *opposite;
	char shown[URL_QUOTED];
	const char *wanted;
	size_t known;

	opposite = no ? NULL : options_find_opposite(option, source->yes);
	if (opposite != NULL)
		return refuse_opposite(source, name, opposite);
	if (!no)
		source->yes |= options_bit(option);
	if (target == NULL)
		target = &source->aside;
	else if (no)
		sources->denied |= options_bit(option);
	target->here = source->here_is;
	known = secrets(target);
	wanted = set_value(target, option, value);
	source->has_secret |= secrets(target) > known;
	if (wanted == NULL)
		return 0;
	if (*wanted == '\0')
		*sources->error = target->error;
	else
		error_set(sources->error, EXIT_CONFIG, "%s '%s' is not %s",
			  name, url_quote_any(value, shown), wanted);
	return -1;
}

static int read_line(struct source *source, const struct conffile_line *line)
{
	struct sources *sources = source->sources;
	const struct option *option = find_option(sources, line->name);
	int result;

	source->here_is.line = line->number;

	if (option == NULL)
		result = refuse_name(sources, line->name);
	else if ((result = check_option(source, option)) == 0)
		result = read_value(source, option, option->name, line->value);
	if (result == 0)
		return 0;
	sources->error->code = EXIT_CONFIG;
	conffile_blame(source->file, line->number, sources->error);
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
	kept = settings_keep(source->sources->settings, name.data);
	buffer_release(&name);
	return kept;
}

/* The row of the table by which the source sets this password. */
static const struct option *find_password(const struct source *source,
					  enum secret_kind kind)
{
	const struct option *found = NULL;

	for (size_t i = 0; i < option_count; i++)
		if (options_secret(&options[i]) == kind &&
		    (source->here & options_bit(&options[i])))
			found = &options[i];
	return found;
}

/* Where it is, for people: file is that of a password-file, or NULL. */
static const char *name_place(struct settings *settings, enum secret_kind kind,
			      const char *file)
{
	struct buffer name = {0};
	const char *kept;

	if (file == NULL && kind == SECRET_OF_SENTINELS)
		buffer_print(&name, "the sentinel-password in %s",
			     settings->named);
	else
		buffer_print(&name, "the password in %s",
			     file != NULL ? file : settings->named);
	kept = settings_keep(settings, name.data);
	buffer_release(&name);
	return kept;
}

static int take_password(struct source *source, enum secret_kind kind)
{
	struct settings *settings = source->sources->settings;
	struct secret *secret = &settings->secrets[kind];
	struct secret *aside = &source->aside.secrets[kind];
	struct error *error = source->sources->error;
	const struct option *option = find_password(source, kind);

	if (option == NULL)
		return 0;
	settings->here = options_origin(&source->aside, option);
	options_note(settings, option);
	secret->from = name_place(settings, kind, aside->file);
	secret->text = aside->text;
	aside->text = NULL;
	if (aside->file == NULL)
		return 0;
	secret->text = logins_read_file(aside->file, error);
	if (secret->text != NULL)
		return 0;
	error_prepend(error, kind == SECRET_OF_SERVERS
				     ? "password-file: "
				     : "sentinel-password-file: ");
	conffile_blame(source->file, settings->here.line, error);
	return -1;
}

/* A section that counts: its passwords are for its servers (logins.h). */
static int take_passwords(struct source *source, size_t section)
{
	struct sources *sources = source->sources;
	struct settings *settings = sources->settings;
	const struct option *server = find_option(sources, "server");
	uint64_t added = settings->given & ~source->before;

	if (added & options_bit(server)) {
		settings->named = name_section(source, section);
		return take_password(source, SECRET_OF_SERVERS) < 0 ||
				       take_password(source,
						     SECRET_OF_SENTINELS) < 0
			       ? -1
			       : 0;
	}
	if (find_password(source, SECRET_OF_SERVERS) != NULL)
		logins_spare(settings, name_section(source, section));
	return 0;
}

/* counts: it is used, as far as nothing was said before. */
static int read_section(struct sources *sources, size_t which, size_t section,
			bool counts)
{
	struct source source = {
		.sources = sources,
		.file = &sources->files[which],
		.counts = counts,
		.before = sources->settings->given,
		.here_is = {.kind = BY_FILE, .file = (unsigned char)which},
	};
	int result = 0;

	settings_init(&source.aside);
	for (size_t i = 0; i < source.file->count && result == 0; i++)
		if (source.file->lines[i].section == section)
			result = read_line(&source, &source.file->lines[i]);
	if (result == 0 && counts)
		result = take_passwords(&source, section);
	sources->settings->files[which].exposed |=
		source.has_secret && source.file->readable;
	settings_release(&source.aside);
	return result;
}

/* Which section has this name; 0: none. */
static size_t find_set(const struct conffile *file, const char *name)
{
	for (size_t i = 1; i < file->section_count; i++)
		if (strcmp(file->sections[i], name) == 0)
			return i;
	return 0;
}

static int refuse_set(struct sources *sources)
{
	const char *names[CONFIG_FILES * CONFFILE_SECTIONS] = {NULL}, *nearest;
	const char *set = sources->settings->set;
	char shown[URL_QUOTED];
	size_t count = 0;

	for (size_t i = 0; i < sources->file_count; i++)
		for (size_t n = 1; n < sources->files[i].section_count; n++)
			names[count++] = sources->files[i].sections[n];
	nearest = suggest_nearest(set, names, count);
	error_set(sources->error, EXIT_CONFIG,
		  "--set '%s': no configuration file has this section",
		  url_quote_any(set, shown));
	for (size_t i = 0; i < sources->file_count; i++)
		error_append(sources->error, "%s%s", i == 0 ? ": " : ", ",
			     sources->files[i].path);
	if (nearest != NULL)
		error_append(sources->error, ": did you mean %s?", nearest);
	return -1;
}

/* Reads all sections; only that of --set counts. */
static int read_sets(struct sources *sources)
{
	struct settings *settings = sources->settings;
	bool found = false;

	for (size_t which = 0; which < sources->file_count; which++) {
		const struct conffile *file = &sources->files[which];
		size_t set = settings->set != NULL
				     ? find_set(file, settings->set)
				     : 0;

		found |= set > 0;
		for (size_t i = 1; i < file->section_count; i++)
			if (read_section(sources, which, i, i == set) < 0)
				return -1;
	}
	if (settings->set == NULL)
		return 0;
	if (!found)
		return refuse_set(sources);
	if (settings->server_count > 0)
		return 0;
	error_set(sources->error, EXIT_CONFIG, "--set '%s': [%s] has no server",
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

static int read_variables(struct sources *sources)
{
	struct source source = {
		.sources = sources,
		.counts = true,
		.before = sources->settings->given,
		.here_is = {.kind = BY_ENVIRONMENT},
	};
	int result = 0;

	settings_init(&source.aside);
	for (char **entry = environ; *entry != NULL && result == 0; entry++)
		if (strncmp(*entry, "REDLOCK_", strlen("REDLOCK_")) == 0)
			result = read_variable(&source, *entry);
	settings_release(&source.aside);
	return result;
}

/* What the environment says counts as given from here on. */
static int read_environment(struct sources *sources)
{
	struct settings *settings = sources->settings;

	return read_variables(sources) < 0 ||
			       environment_read_servers(settings,
							sources->error) < 0 ||
			       environment_read_passwords(settings,
							  sources->error) < 0
		       ? -1
		       : 0;
}

/* --- the files ---------------------------------------------------------- */

/* The user's home directory, or NULL. */
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
	directory = settings_keep(settings, path.data);
	buffer_release(&path);
	return directory;
}

static int read_file(struct sources *sources, const char *path, bool may_lack)
{
	struct conffile *file = &sources->files[sources->file_count];
	int result;

	if (path == NULL)
		return 0;
	result = conffile_read(file, path, may_lack, sources->error);
	if (file->path != NULL)
		sources->settings->files[sources->file_count++].path = path;
	return result;
}

static int read_files(struct sources *sources)
{
	const char *path = sources->settings->config;

	if (path != NULL)
		return read_file(sources, path, false);
	path = find_user_file(sources->settings);
	return read_file(sources, path, true) < 0 ||
			       read_file(sources, SYSTEM_FILE, true) < 0
		       ? -1
		       : 0;
}

static int read_all(struct sources *sources)
{
	if (read_files(sources) < 0 || read_sets(sources) < 0 ||
	    read_environment(sources) < 0)
		return -1;
	for (size_t which = 0; which < sources->file_count; which++)
		if (read_section(sources, which, 0, true) < 0)
			return -1;
	return 0;
}

int sources_read(struct settings *settings, const struct command *command,
		 struct error *error)
{
	struct sources sources = {
		.settings = settings, .command = command, .error = error};
	int result;

	settings->named = settings->server_count > 0 ? "-S" : NULL;
	result = read_all(&sources);
	for (size_t which = 0; which < CONFIG_FILES; which++)
		conffile_release(&sources.files[which]);
	return result;
}

void sources_list_sets(struct settings *settings, struct buffer *names)
{
	struct error error;
	struct sources sources = {.settings = settings, .error = &error};

	read_files(&sources);
	for (size_t i = 0; i < sources.file_count; i++)
		for (size_t n = 1; n < sources.files[i].section_count; n++)
			buffer_print(names, "%s\n",
				     sources.files[i].sections[n]);
	for (size_t i = 0; i < CONFIG_FILES; i++)
		conffile_release(&sources.files[i]);
}
