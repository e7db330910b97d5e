#include "environment.h"

#include <stdlib.h>
#include <string.h>

#include "heap.h"
#include "logins.h"
#include "options.h"

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

static int servers_from_environment(struct settings *settings,
				    struct error *error)
{
	const char *list = get("REDLOCK_SERVERS");
	char *copy;
	int result;

	if (list == NULL)
		return 0;
	if (settings->server_count > 0) {
		settings->only_tls = logins_are_only_tls(list);
		return 0;
	}
	copy = heap_copy(list);
	result = config_add_servers(settings, copy, error);
	free(copy);
	settings->named = "REDLOCK_SERVERS";
	return result < 0 ? blame_variable(error, "REDLOCK_SERVERS") : 0;
}

/* For the servers of -S and REDLOCK_SERVERS (logins.h); those of --set are there
 * before, those of a file later. */
static int password_from_environment(struct settings *settings,
				     struct error *error)
{
	const char *given = get("REDLOCK_PASSWORD");
	const char *path = get("REDLOCK_PASSWORD_FILE");

	if (given == NULL && path == NULL)
		return 0;
	if (settings->server_count == 0 || settings->set != NULL) {
		logins_spare(settings, given != NULL ? "REDLOCK_PASSWORD"
						     : "REDLOCK_PASSWORD_FILE");
		return 0;
	}
	if (given != NULL)
		return config_set_password(settings, given, error);
	settings->password = logins_read_file(path, error);
	return settings->password != NULL
		       ? 0
		       : blame_variable(error, "REDLOCK_PASSWORD_FILE");
}

static int options_from_environment(struct settings *settings,
				    struct error *error)
{
	static const struct {
		const char *variable, *option;
	} pairs[] = {
		{"REDLOCK_CACERT", "cacert"},
		{"REDLOCK_CRL", "crl"},
		{"REDLOCK_CERT", "cert"},
		{"REDLOCK_KEY_FILE", "key-file"},
		{"REDLOCK_SNI", "sni"},
		{"REDLOCK_SERVER_TIMEOUT", "server-timeout"},
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		const struct option *option = options_find(
			pairs[i].option, strlen(pairs[i].option), ~0U);
		char *value = getenv(pairs[i].variable);
		bool overruled = settings->tls.insecure &&
				 options_opposites(option) != 0;
		char shown[URL_QUOTED];
		const char *wanted;

		if (value == NULL || *value == '\0' || overruled ||
		    (settings->given & options_bit(option)))
			continue;
		wanted = options_set(settings, option, value);
		if (wanted == NULL)
			continue;
		error_set(error, EXIT_CONFIG, "%s '%s' is not %s",
			  pairs[i].variable, url_quote_any(value, shown),
			  wanted);
		return -1;
	}
	return 0;
}

static int max_ttl_from_environment(struct settings *settings,
				    struct error *error)
{
	const char *value = getenv("REDLOCK_MAX_TTL"), *wanted;
	const struct option *option = options_find_setting("max-ttl");
	char *copy;

	if (value == NULL || *value == '\0' ||
	    (settings->given & options_bit(option)))
		return 0;
	copy = heap_copy(value);
	wanted = options_set(settings, option, copy);
	free(copy);
	if (wanted == NULL)
		return 0;
	error_set(error, EXIT_CONFIG, "REDLOCK_MAX_TTL: '%.64s' is not %s",
		  value, wanted);
	return -1;
}

int environment_read(struct settings *settings, struct error *error)
{
	return options_from_environment(settings, error) < 0 ||
			       servers_from_environment(settings, error) < 0 ||
			       max_ttl_from_environment(settings, error) < 0 ||
			       password_from_environment(settings, error) < 0
		       ? -1
		       : 0;
}
