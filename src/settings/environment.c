#include "settings/environment.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "settings/logins.h"
#include "settings/options.h"
#include "base/buffer.h"
#include "settings/suggest.h"

#define PREFIX "REDLOCK_"
#define VARIABLES_MAX 64
#define SHORTEST 3 /* of a name that may be the beginning of another */

/* After the prefix: what redlock tells COMMAND, or prints for a shell. */
static const char told[][12] = {"KEY",  "TOKEN", "FENCE",    "FENCES",
				"SLOT", "HELD",  "UNLOCKED", "VALID_UNTIL"};

/* --- servers and their password ------------------------------------------ */

/* The value of a variable; NULL if it is empty or not set. */
static const char *get(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && *value != '\0' ? value : NULL;
}

/* Puts the variable's name in front of the error. */
static int blame_variable(struct error *error, const char *name)
{
	error->code = EXIT_CONFIG;
	error_prepend(error, "%s: ", name);
	return -1;
}

/* Notes that this option is from the environment. */
static void note(struct settings *settings, const char *name)
{
	settings->here.kind = BY_ENVIRONMENT;
	options_note(settings, options_find_variable(name));
}

int environment_read_servers(struct settings *settings, struct error *error)
{
	const char *list = getenv("REDLOCK_SERVERS");
	char *copy;
	int result;

	if (list == NULL)
		return 0;
	if (settings->server_count > 0) {
		/* those of --set have their own password */
		settings->only_tls =
			settings->set == NULL && logins_are_only_tls(list);
		return 0;
	}
	/* environment.h says why */
	if (*list == '\0') {
		error_set(error, EXIT_CONFIG,
			  "REDLOCK_SERVERS is empty: name the servers, or "
			  "unset it");
		return -1;
	}
	note(settings, "REDLOCK_SERVERS");
	copy = xstrdup(list);
	result = settings_add_servers(settings, copy, error);
	free(copy);
	settings->named = "REDLOCK_SERVERS";
	return result < 0 ? blame_variable(error, "REDLOCK_SERVERS") : 0;
}

static const char variables[SECRETS][2][VARIABLE_NAME] = {
	[SECRET_OF_SERVERS] = {"REDLOCK_PASSWORD", "REDLOCK_PASSWORD_FILE"},
	[SECRET_OF_SENTINELS] = {"REDLOCK_SENTINEL_PASSWORD",
				 "REDLOCK_SENTINEL_PASSWORD_FILE"},
};

static int read_password(struct settings *settings, enum secret_kind kind,
			 struct error *error)
{
	struct secret *secret = &settings->secrets[kind];
	const char *given = get(variables[kind][0]);
	const char *path = get(variables[kind][1]);
	const char *name = variables[kind][given == NULL];

	if (given == NULL && path == NULL)
		return 0;
	if (settings->server_count == 0 || settings->set != NULL) {
		if (kind == SECRET_OF_SERVERS)
			logins_spare(settings, name);
		return 0;
	}
	note(settings, name);
	secret->from = name;
	if (given != NULL)
		return settings_set_password(settings, kind, given, error);
	secret->text = logins_read_file(path, error);
	return secret->text != NULL ? 0 : blame_variable(error, name);
}

int environment_read_passwords(struct settings *settings, struct error *error)
{
	return read_password(settings, SECRET_OF_SERVERS, error) < 0 ||
			       read_password(settings, SECRET_OF_SENTINELS,
					     error) < 0
		       ? -1
		       : 0;
}

/* --- unknown variables --------------------------------------------------- */

/* Kubernetes sets such variables in every container for each service, and a
 * service may be called redlock. */
static bool is_of_service(const char *name, const char *value)
{
	const char *port = strstr(name, "_PORT");

	return strstr(name, "_SERVICE_HOST") != NULL ||
	       strstr(name, "_SERVICE_PORT") != NULL ||
	       (port != NULL && port[5] == '_' &&
		isdigit((unsigned char)port[6])) ||
	       (port != NULL && port[5] == '\0' &&
		strstr(value, "://") != NULL);
}

static bool is_known(const char *name, const char *value)
{
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
		if (strcmp(name + strlen(PREFIX), told[i]) == 0)
			return true;
	return options_find_variable(name) != NULL ||
	       is_of_service(name, value);
}

static void put_as_option(const char *name, char text[VARIABLE_NAME])
{
	size_t i = 0;

	memset(text, '\0', VARIABLE_NAME);
	for (; i + 1 < VARIABLE_NAME && name[i] != '\0'; i++)
		text[i] = (char)(name[i] == '_'
					 ? '-'
					 : tolower((unsigned char)name[i]));
}

/* REDLOCK_SHARED, --shared: NULL if there is no such option. */
static const struct option *find_option(const char *name)
{
	char text[VARIABLE_NAME];

	put_as_option(name, text);
	return options_find(text, strlen(text), ~0U);
}

/* The variable for what other programs call name. */
static const char *find_meant(const char *name, char meant[VARIABLE_NAME])
{
	const struct synonym *synonym;
	const struct option *option;
	char word[VARIABLE_NAME];

	put_as_option(name, word);
	synonym = suggest_option(word);
	if (synonym == NULL || word[1] == '\0')
		return NULL;
	option = options_find(synonym->option, strlen(synonym->option), ~0U);
	if (option == NULL || *options_variable(option, meant) == '\0')
		return NULL;
	return meant + strlen(PREFIX);
}

/* A name that begins so, or is much like this one. */
static const char *find_nearest(const char *name, char nearest[VARIABLE_NAME])
{
	char names[VARIABLES_MAX][VARIABLE_NAME];
	const char *pointers[VARIABLES_MAX], *found = NULL;
	size_t count = 0;

	for (size_t i = 0; i < option_count; i++)
		if (*options_variable(&options[i], names[count]) != '\0') {
			pointers[count] = names[count] + strlen(PREFIX);
			count++;
		}
	for (size_t i = 0; found == NULL && i < count; i++)
		if (strlen(name) >= SHORTEST &&
		    strncmp(pointers[i], name, strlen(name)) == 0)
			found = pointers[i];
	if (found == NULL)
		found = suggest_nearest(name, pointers, count);
	if (found == NULL)
		return NULL;
	return memcpy(nearest, found, strlen(found) + 1);
}

static void explain(struct buffer *text, const char *name)
{
	static const char *const timeout = "TIMEOUT";
	const char *rest = name + strlen(PREFIX), *nearest;
	const struct option *option = find_option(rest);
	char found[VARIABLE_NAME];

	if (suggest_nearest(rest, &timeout, 1) != NULL)
		buffer_print(text,
			     "%s is ignored: did you mean REDLOCK_WAIT (for "
			     "KEY) or REDLOCK_SERVER_TIMEOUT (one round with "
			     "the servers)?",
			     name);
	else if (option != NULL && *options_variable(option, found) == '\0')
		buffer_print(
			text,
			option->command_only
				? "%s is ignored: --%s is for the command line only"
				: "%s is ignored: --%s is for the command line and files only",
			name, option->name);
	else if (option != NULL)
		buffer_print(text, "%s is ignored: did you mean %s?", name,
			     found);
	else if ((nearest = find_meant(rest, found)) != NULL ||
		 (nearest = find_nearest(rest, found)) != NULL)
		buffer_print(text, "%s is ignored: did you mean " PREFIX "%s?",
			     name, nearest);
	else
		buffer_print(text,
			     "%s is ignored, as it is no setting of redlock: "
			     "see ENVIRONMENT in redlock(1)",
			     name);
}

bool environment_next_unknown(size_t *at, struct buffer *text)
{
	const char *entry;
	bool unknown = false;

	while (!unknown && (entry = environ[*at]) != NULL) {
		char *name;

		(*at)++;
		if (strncmp(entry, PREFIX, strlen(PREFIX)) != 0)
			continue;
		name = xstrdup(entry);
		name[strcspn(name, "=")] = '\0';
		unknown = !is_known(name, entry + strlen(name));
		if (unknown)
			explain(text, name);
		free(name);
	}
	return unknown;
}
