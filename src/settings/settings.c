#include "settings/settings.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct kept {
	struct kept *next;
	char text[];
};

void settings_init(struct settings *settings)
{
	*settings = (struct settings){
		.server_timeout = UNSET,
		.ttl = UNSET,
		.quarantine = UNSET,
		.max_ttl = UNSET,
		.kill_after = UNSET,
		.remember = UNSET,
		.wait = UNSET,
		.permits = UNSET,
		.warn = {UNSET, UNSET, UNSET, UNSET},
		.most = {UNSET, UNSET, UNSET, UNSET},
		.conflict_code = EXIT_BUSY,
		.status_fd = -1,
	};
}

char *settings_keep(struct settings *settings, const char *text)
{
	size_t size = strlen(text) + 1;
	struct kept *kept = xcalloc(1, sizeof(*kept) + size);

	memcpy(kept->text, text, size);
	kept->next = settings->kept;
	settings->kept = kept;
	return kept->text;
}

size_t settings_key_count(const struct settings *settings)
{
	return 1 + settings->also_count;
}

const char *settings_key(const struct settings *settings, size_t i)
{
	return i == 0 ? settings->key : settings->also[i - 1];
}

size_t settings_key_index(const struct settings *settings, const char *key)
{
	size_t index = 0;

	for (size_t i = 0; i < settings_key_count(settings); i++)
		index += strcmp(settings_key(settings, i), key) < 0;
	return index;
}

static void forget(struct secret *secret)
{
	if (secret->text == NULL)
		return;
	explicit_bzero(secret->text, strlen(secret->text));
	free(secret->text);
	secret->text = NULL;
}

void settings_forget_passwords(struct settings *settings)
{
	for (size_t kind = 0; kind < SECRETS; kind++)
		forget(&settings->secrets[kind]);
}

void settings_release(struct settings *settings)
{
	struct kept *next;

	for (struct kept *kept = settings->kept; kept != NULL; kept = next) {
		next = kept->next;
		free(kept);
	}
	for (size_t i = 0; i < settings->server_count; i++)
		url_release(&settings->servers[i]);
	settings_forget_passwords(settings);
}

static int add_server(struct settings *settings, char *text,
		      struct error *error)
{
	struct url *url = &settings->servers[settings->server_count];

	if (*text == '\0') {
		error_set(error, EXIT_USAGE,
			  "an empty server address: is there a comma too "
			  "many, or a blank after one?");
		return -1;
	}
	if (settings->server_count == SERVERS_MAX) {
		error_set(error, EXIT_USAGE, "more than %d servers",
			  SERVERS_MAX);
		return -1;
	}
	if (url_parse(url, text, error) < 0)
		return -1;
	settings->server_count++;
	for (size_t i = 0; i + 1 < settings->server_count; i++) {
		const struct url *other = &settings->servers[i];

		if (!url_is_same(other, url))
			continue;
		if (strcmp(other->name, url->name) == 0)
			error_set(error, EXIT_CONFIG,
				  "server '%s' is named twice", url->name);
		else
			error_set(
				error, EXIT_CONFIG,
				"%s and %s are the same server: name it only once",
				other->name, url->name);
		return -1;
	}
	return 0;
}

int settings_add_servers(struct settings *settings, char *list,
			 struct error *error)
{
	size_t length = strlen(list);
	char *copy = xcalloc(length + 1, 1), *rest = copy, *text;
	int result = 0;

	memcpy(copy, list, length + 1);
	while (result == 0 && (text = url_separate(&rest)) != NULL) {
		if (rest == NULL || !url_is_login_cut(rest)) {
			result = add_server(settings, text, error);
			continue;
		}
		error_set(
			error, EXIT_USAGE,
			"server: a comma separates URLs: write %%2C for a comma in a password");
		result = -1;
	}
	/* anything in a text that is no URL may be a secret */
	if (result < 0)
		memset(list, '*', length);
	url_hide_secret(list);
	explicit_bzero(copy, length);
	free(copy);
	return result;
}

int settings_set_password(struct settings *settings, enum secret_kind kind,
			  const char *password, struct error *error)
{
	forget(&settings->secrets[kind]);
	if (*password == '\0') {
		error_set(error, EXIT_USAGE, "the password is empty");
		return -1;
	}
	settings->secrets[kind].text = xstrdup(password);
	return 0;
}

bool settings_have_tls(const struct settings *settings)
{
	for (size_t i = 0; i < settings->server_count; i++)
		if (settings->servers[i].tls)
			return true;
	return false;
}
