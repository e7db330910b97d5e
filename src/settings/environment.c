#include "settings/environment.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "settings/logins.h"
#include "settings/options.h"
#include "base/output.h"
#include "settings/suggest.h"
#include "settings/synonym.h"

#define PREFIX "REDLOCK_"
#define VARIABLES_MAX 64

/* After the prefix: what redlock tells COMMAND, or prints for a shell. */
static const char told[][12] = {"KEY",  "TOKEN", "FENCE",    "FENCES",
				"HELD", "SLOT",  "UNLOCKED", "VALID_UNTIL"};

/* --- servers and their password ------------------------------------------ */

/* NULL for an empty one, too. */
static const char *get(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && *value != '\0' ? value : NULL;
}

/* In front of what is wrong with a variable, its name. */
static int blame_variable(struct error *error, const char *name)
{
	char text[sizeof(error->text)];

	memcpy(text, error->text, sizeof(text));
	error_set(error, EXIT_CONFIG, "%s: %s", name, text);
	return -1;
}

/* Where REDLOCK_X is from. */
static void note(struct settings *settings, const char *name)
{
	settings->here.place = BY_ENVIRONMENT;
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
		settings->only_tls = logins_are_only_tls(list);
		return 0;
	}
	/* a script that lost them would lock on another server than the rest */
	if (*list == '\0') {
		error_set(error, EXIT_CONFIG,
			  "REDLOCK_SERVERS is empty: name the servers, or "
			  "unset it");
		return -1;
	}
	note(settings, "REDLOCK_SERVERS");
	copy = heap_copy(list);
	result = config_add_servers(settings, copy, error);
	free(copy);
	settings->named = "REDLOCK_SERVERS";
	return result < 0 ? blame_variable(error, "REDLOCK_SERVERS") : 0;
}

int environment_read_password(struct settings *settings, struct error *error)
{
	const char *given = get("REDLOCK_PASSWORD");
	const char *path = get("REDLOCK_PASSWORD_FILE");
	const char *name =
		given != NULL ? "REDLOCK_PASSWORD" : "REDLOCK_PASSWORD_FILE";

	if (given == NULL && path == NULL)
		return 0;
	if (settings->server_count == 0 || settings->set != NULL) {
		logins_spare(settings, name);
		return 0;
	}
	note(settings, name);
	settings->password_from = name;
	if (given != NULL)
		return config_set_password(settings, given, error);
	settings->password = logins_read_file(path, error);
	return settings->password != NULL
		       ? 0
		       : blame_variable(error, "REDLOCK_PASSWORD_FILE");
}

/* --- unknown variables --------------------------------------------------- */

/* A Kubernetes service has such variables in every container, and may well be
 * called redlock. */
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

/* What others call it. */
static const char *find_meant(const char *name, char meant[VARIABLE_NAME])
{
	const struct synonym *synonym;
	const struct option *option;
	char word[VARIABLE_NAME];

	put_as_option(name, word);
	synonym = synonym_find(word);
	if (synonym == NULL || word[1] == '\0')
		return NULL;
	option = options_find(synonym->option, strlen(synonym->option), ~0U);
	if (option == NULL || *options_variable(option, meant) == '\0')
		return NULL;
	return meant + strlen(PREFIX);
}

static const char *find_nearest(const char *name, char nearest[VARIABLE_NAME])
{
	char names[VARIABLES_MAX][VARIABLE_NAME];
	const char *pointers[VARIABLES_MAX], *found;
	size_t count = 0;

	for (size_t i = 0; i < option_count; i++)
		if (*options_variable(&options[i], names[count]) != '\0') {
			pointers[count] = names[count] + strlen(PREFIX);
			count++;
		}
	found = suggest_nearest(name, pointers, count);
	if (found == NULL)
		return NULL;
	return memcpy(nearest, found, strlen(found) + 1);
}

static void explain(struct buffer *text, const char *name)
{
	const char *rest = name + strlen(PREFIX), *nearest;
	const struct option *option = find_option(rest);
	char found[VARIABLE_NAME];

	if (strcmp(rest, "TIMEOUT") == 0)
		buffer_print(text,
			     "%s is ignored: did you mean REDLOCK_WAIT (for "
			     "KEY) or REDLOCK_SERVER_TIMEOUT (one round with "
			     "the servers)?",
			     name);
	else if (option != NULL && !option->repeats)
		buffer_print(text,
			     "%s is ignored: --%s is for the command line only",
			     name, option->name);
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
		name = heap_copy(entry);
		name[strcspn(name, "=")] = '\0';
		unknown = !is_known(name, entry + strlen(name));
		if (unknown)
			explain(text, name);
		free(name);
	}
	return unknown;
}
