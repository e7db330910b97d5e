#include "settings/config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "run/guard.h"
#include "base/alloc.h"
#include "net/local.h"
#include "settings/logins.h"
#include "settings/options.h"
#include "net/tls_load.h"

#define DEFAULT_SERVER "redis://127.0.0.1:6379"
#define DEFAULT_TTL 30000
#define DEFAULT_TIMEOUT 1000
#define QUARANTINE_LEAST 60000 /* ms: others may use a longer ttl than ours */
#define KILL_AFTER_LONGEST 5000
#define RENEWAL_TIME 500  /* ms that a first renewal is given */
#define LOCAL_START 10000 /* ms for a redis-server to come up */

struct kept {
	struct kept *next;
	char text[];
};

void config_init(struct settings *settings)
{
	*settings = (struct settings){
		.server_timeout = UNSET,
		.ttl = UNSET,
		.quarantine = UNSET,
		.max_ttl = UNSET,
		.kill_after = UNSET,
		.patience = {.limit = UNSET},
		.permits = UNSET,
		.conflict_code = EXIT_BUSY,
		.status_fd = -1,
	};
}

char *config_keep(struct settings *settings, const char *text)
{
	size_t size = strlen(text) + 1;
	struct kept *kept = heap_get(1, sizeof(*kept) + size);

	memcpy(kept->text, text, size);
	kept->next = settings->kept;
	settings->kept = kept;
	return kept->text;
}

static void forget(char **secret)
{
	if (*secret != NULL)
		explicit_bzero(*secret, strlen(*secret));
	free(*secret);
	*secret = NULL;
}

void config_release(struct settings *settings)
{
	struct kept *next;

	for (struct kept *kept = settings->kept; kept != NULL; kept = next) {
		next = kept->next;
		free(kept);
	}
	settings->kept = NULL;
	for (size_t i = 0; i < settings->server_count; i++)
		url_release(&settings->servers[i]);
	settings->server_count = 0;
	forget(&settings->password);
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
			error_set(error, EXIT_CONFIG,
				  "%s and %s are one server: name each only "
				  "once",
				  other->name, url->name);
		return -1;
	}
	return 0;
}

int config_add_servers(struct settings *settings, char *list,
		       struct error *error)
{
	size_t length = strlen(list);
	char *copy = heap_get(length + 1, 1), *rest = copy, *text;
	int result = 0;

	memcpy(copy, list, length + 1);
	while (result == 0 && (text = url_separate(&rest)) != NULL) {
		if (rest == NULL || !url_is_login_cut(rest)) {
			result = add_server(settings, text, error);
			continue;
		}
		error_set(error, EXIT_USAGE,
			  "server: a comma stands between URLs: write %%2C for "
			  "one in a password");
		result = -1;
	}
	/* a secret may be anywhere in what is no URL */
	if (result < 0)
		memset(list, '*', length);
	url_hide_secret(list);
	explicit_bzero(copy, length);
	free(copy);
	return result;
}

int config_set_password(struct settings *settings, const char *password,
			struct error *error)
{
	forget(&settings->password);
	if (*password == '\0') {
		error_set(error, EXIT_USAGE, "the password is empty");
		return -1;
	}
	settings->password = heap_copy(password);
	return 0;
}

/* --- defaults ----------------------------------------------------------- */

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static enum kind kind_of(const struct settings *settings)
{
	return settings->shared             ? KIND_SHARED
	       : settings->reentrant        ? KIND_REENTRANT
	       : settings->permits != UNSET ? KIND_PERMITS
					    : KIND_EXCLUSIVE;
}

static int64_t default_quarantine(const struct settings *settings)
{
	if (settings->server_count < 3)
		return 0;
	if (settings->max_ttl != UNSET)
		return settings->max_ttl;
	return settings->ttl > QUARANTINE_LEAST ? settings->ttl
						: QUARANTINE_LEAST;
}

static void fill_defaults(struct settings *settings)
{
	settings->kind = kind_of(settings);
	settings->patience.wait = !settings->nonblock;
	if (settings->ttl == UNSET)
		settings->ttl = settings->max_ttl != UNSET
					? least(DEFAULT_TTL, settings->max_ttl)
					: DEFAULT_TTL;
	/* a short lease leaves no time for two rounds of a second */
	if (settings->server_timeout == UNSET)
		settings->server_timeout =
			least(DEFAULT_TIMEOUT, settings->ttl / 6);
	if (settings->server_timeout < 1)
		settings->server_timeout = 1;
	if (settings->kill_after == UNSET)
		settings->kill_after =
			least(KILL_AFTER_LONGEST, settings->ttl / 6);
	if (settings->quarantine == UNSET)
		settings->quarantine = default_quarantine(settings);
}

/* What does not go together may have been said out of sight. */
static int blame_origins(const struct settings *settings, struct error *error)
{
	const char *before = " (", *after = "";

	for (size_t i = 0; i < option_count; i++) {
		const struct option *option = &options[i];
		struct buffer text = {0};

		if (!options_has_origin(settings, option) ||
		    options_is_typed(settings, option) || option->repeats)
			continue;
		options_tell_origin(&text, settings, option);
		error_append(error, "%s%s from %s", before, option->name,
			     text.data);
		buffer_release(&text);
		before = ", ";
		after = ")";
	}
	error_append(error, "%s", after);
	return -1;
}

/* No lease that a server forgets may be longer than the quarantine: with a
 * max-ttl that everybody has in common that is a proof. */
static int check_ttl(const struct settings *settings, struct error *error)
{
	char ttl[DURATION_TEXT], most[DURATION_TEXT];

	if (settings->max_ttl == UNSET || settings->ttl <= settings->max_ttl)
		return 0;
	error_set(error, EXIT_USAGE,
		  "a lease (-t) of %s is longer than max-ttl, which is %s",
		  duration_format(ttl, settings->ttl),
		  duration_format(most, settings->max_ttl));
	return blame_origins(settings, error);
}

static bool has_tls(const struct settings *settings)
{
	for (size_t i = 0; i < settings->server_count; i++)
		if (settings->servers[i].tls)
			return true;
	return false;
}

/* One who asks for TLS is not to be left without it. */
static int check_tls(const struct settings *settings, struct error *error)
{
	for (size_t i = 0; i < option_count && !has_tls(settings); i++) {
		const struct option *option = &options[i];

		if (!option->for_tls || !options_is_typed(settings, option))
			continue;
		error_set(error, EXIT_USAGE,
			  "--%s is for rediss:// servers, and there is none",
			  option->name);
		return -1;
	}
	return 0;
}

static int check(const struct settings *settings, struct error *error)
{
	const char *wrong = NULL;

	if (settings->nonblock && settings->patience.limit != UNSET)
		wrong = "-n does not wait: it cannot go with -w";
	else if (settings->nonblock && settings->patience.poll)
		wrong = "-n does not wait: it cannot go with --poll or "
			"--tries";
	else if (settings->exclusive + settings->shared + settings->reentrant +
			 (settings->permits != UNSET) >
		 1)
		wrong = "-x, -s, -r and -P exclude each other";
	else if (settings->owner != NULL && !settings->reentrant)
		wrong = "--token is for -r: a lock of another kind has a fresh "
			"token each time";
	else if (settings->quiet && settings->verbose)
		wrong = "-q and -v cannot be used together";
	else if (settings->tls.insecure && settings->tls.cacert != NULL)
		wrong = "--insecure trusts everybody: it cannot go with "
			"--cacert";
	else if (settings->tls.insecure && settings->tls.crl != NULL)
		wrong = "--insecure trusts everybody: it cannot go with --crl";
	else if ((settings->tls.cert != NULL) !=
		 (settings->tls.key_file != NULL))
		wrong = "--cert and --key-file must be given together";
	else if (settings->max_hold > 0 &&
		 settings->min_hold > settings->max_hold)
		wrong = "--min-hold is longer than --max-hold";
	if (wrong == NULL)
		return 0;
	error_set(error, EXIT_USAGE, "%s", wrong);
	return blame_origins(settings, error);
}

int config_finish(struct settings *settings, struct error *error)
{
	char standard[] = DEFAULT_SERVER;

	if (settings->server_count == 0 &&
	    config_add_servers(settings, standard, error) < 0)
		return -1;
	if (logins_hand_out(settings, error) < 0 ||
	    check_tls(settings, error) < 0)
		return -1;
	forget(&settings->password);
	fill_defaults(settings);
	return check(settings, error) < 0 || check_ttl(settings, error) < 0 ? -1
									    : 0;
}

int config_check_room(const struct settings *settings, struct error *error)
{
	int64_t drift = lock_drift(settings->ttl);
	int64_t margin = guard_margin(settings->ttl);
	int64_t need = drift + margin + settings->kill_after +
		       2 * settings->server_timeout;
	char most[DURATION_TEXT];

	if (settings->ttl > need)
		return 0;
	error_set(error, EXIT_USAGE,
		  "a lease (-t) of %" PRId64 " ms is too short to stop COMMAND "
		  "in time: it must be longer than %" PRId64 " ms = %" PRId64
		  " drift + %" PRId64 " to kill + %" PRId64 " --kill-after + "
		  "2 x %" PRId64 " --server-timeout",
		  settings->ttl, need, drift, margin, settings->kill_after,
		  settings->server_timeout);
	/* a longer one would be refused, too */
	if (settings->ttl == settings->max_ttl)
		error_append(error, ", and max-ttl is %s",
			     duration_format(most, settings->max_ttl));
	return blame_origins(settings, error);
}

int64_t config_room(const struct settings *settings)
{
	return guard_margin(settings->ttl) + settings->kill_after +
	       least(settings->server_timeout, RENEWAL_TIME);
}

int config_quorum(struct settings *settings, struct quorum *quorum,
		  struct error *error)
{
	if (has_tls(settings) && tls_load(&settings->tls, error) < 0)
		return -1;
	for (size_t i = 0; i < settings->server_count; i++)
		if (settings->servers[i].kind == URL_LOCAL &&
		    local_resolve(&settings->servers[i],
				  deadline_in(LOCAL_START), error) < 0)
			return -1;
	quorum_init(quorum, settings->servers, settings->server_count,
		    settings->server_timeout, settings->quarantine > 0);
	settings->server_count = 0;
	return 0;
}
