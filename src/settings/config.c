#include "settings/config.h"

#include <inttypes.h>

#include "base/duration.h"
#include "base/lease.h"
#include "settings/logins.h"
#include "settings/options.h"

#define DEFAULT_SERVER "redis://127.0.0.1:6379"
#define DEFAULT_TTL 30000

/* --- defaults ----------------------------------------------------------- */

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t default_quarantine(const struct settings *settings)
{
	if (settings->server_count < 3)
		return 0;
	if (settings->max_ttl != UNSET)
		return settings->max_ttl;
	return lease_quarantine(settings->ttl);
}

static void fill_defaults(struct settings *settings)
{
	if (settings->ttl == UNSET)
		settings->ttl = settings->max_ttl != UNSET
					? least(DEFAULT_TTL, settings->max_ttl)
					: DEFAULT_TTL;
	if (settings->server_timeout == UNSET)
		settings->server_timeout = lease_server_timeout(settings->ttl);
	if (settings->kill_after == UNSET)
		settings->kill_after = lease_kill_after(settings->ttl);
	if (settings->quarantine == UNSET)
		settings->quarantine = default_quarantine(settings);
}

/* Appends where these options are from, except for those on the command line: a
 * conflict may be with a file or a variable that the user does not see. If none is on the
 * command line, it is the configuration that is wrong. */
static int blame_origins(const struct settings *settings, const char *names,
			 struct error *error)
{
	const char *before = " (", *after = "";
	bool typed = false;

	for (size_t i = 0; i < option_count; i++) {
		const struct option *option = &options[i];
		struct buffer text = {0};

		if (!options_is_among(option, names))
			continue;
		typed |= options_is_typed(settings, option);
		if (options_is_typed(settings, option) ||
		    !options_has_origin(settings, option))
			continue;
		options_tell_origin(&text, settings, option);
		error_append(error, "%s%s from %s", before, option->name,
			     text.data);
		buffer_release(&text);
		before = ", ";
		after = ")";
	}
	error_append(error, "%s", after);
	if (!typed)
		error->code = EXIT_CONFIG;
	return -1;
}

/* A lease that a server forgets must not be longer than the quarantine. If
 * everybody has the same max-ttl, this check proves it. */
static int check_ttl(const struct settings *settings, struct error *error)
{
	char ttl[DURATION_TEXT], most[DURATION_TEXT];

	if (settings->max_ttl == UNSET || settings->ttl <= settings->max_ttl)
		return 0;
	error_set(error, EXIT_USAGE,
		  "a lease (-t) of %s is longer than max-ttl, which is %s",
		  duration_format(ttl, settings->ttl),
		  duration_format(most, settings->max_ttl));
	return blame_origins(settings, "ttl max-ttl", error);
}

/* A user who asks for TLS must not be left without it. */
static int check_tls(const struct settings *settings, struct error *error)
{
	for (size_t i = 0; i < option_count && !settings_have_tls(settings);
	     i++) {
		const struct option *option = &options[i];

		if (!option->for_tls || !options_is_typed(settings, option))
			continue;
		error_set(error, EXIT_USAGE,
			  "--%s is for rediss:// servers, but there is none",
			  option->name);
		return -1;
	}
	return 0;
}

static int check_pairs(const struct settings *settings, struct error *error)
{
	const bool cert = settings->tls.cert != NULL;
	const bool key_file = settings->tls.key_file != NULL;

	if (cert != key_file) {
		error_set(error, EXIT_USAGE,
			  "--cert and --key-file must be given together");
		return blame_origins(settings, "cert key-file", error);
	}
	if (settings->max_hold > 0 && settings->min_hold > settings->max_hold) {
		error_set(error, EXIT_USAGE,
			  "--min-hold is longer than --max-hold");
		return blame_origins(settings, "min-hold max-hold", error);
	}
	if (settings->remember != UNSET &&
	    settings->remember < settings->once_in) {
		error_set(error, EXIT_USAGE,
			  "--once-in is longer than --remember");
		return blame_origins(settings, "once-in remember", error);
	}
	return 0;
}

int config_finish(struct settings *settings, struct error *error)
{
	char standard[] = DEFAULT_SERVER;

	if (settings->server_count == 0 &&
	    settings_add_servers(settings, standard, error) < 0)
		return -1;
	if (logins_hand_out(settings, error) < 0 ||
	    check_tls(settings, error) < 0)
		return -1;
	settings_forget_passwords(settings);
	fill_defaults(settings);
	return check_pairs(settings, error) < 0 ||
			       check_ttl(settings, error) < 0
		       ? -1
		       : 0;
}

/* The lease that is long enough, with all else as it is. What was not given is as for a lease
 * of that length, and a longer lease has more drift. */
static void lengthen(struct settings *fit)
{
	const struct settings given = *fit;
	int64_t need;

	while (fit->ttl <= (need = lease_need(fit->ttl, fit->kill_after,
					      fit->server_timeout))) {
		fit->ttl = need + 1;
		if (given.server_timeout == lease_server_timeout(given.ttl))
			fit->server_timeout = lease_server_timeout(fit->ttl);
		if (given.kill_after == lease_kill_after(given.ttl))
			fit->kill_after = lease_kill_after(fit->ttl);
	}
}

int config_check_ttl(const struct settings *settings, struct error *error)
{
	struct settings fit;
	char most[DURATION_TEXT];

	if (settings->ttl > lease_need(settings->ttl, settings->kill_after,
				       settings->server_timeout))
		return 0;
	fit = *settings;
	lengthen(&fit);
	error_set(error, EXIT_USAGE,
		  "a lease (-t) of %" PRId64
		  " ms is too short to stop its holder "
		  "in time: it must be longer than %" PRId64 " ms = %" PRId64
		  " drift + %" PRId64 " to kill + %" PRId64 " --kill-after + "
		  "2 x %" PRId64 " --server-timeout",
		  settings->ttl, fit.ttl - 1, lease_drift(fit.ttl),
		  lease_margin(fit.ttl), fit.kill_after, fit.server_timeout);
	if (settings->max_ttl != UNSET && fit.ttl > settings->max_ttl)
		error_append(error, ", and max-ttl is %s",
			     duration_format(most, settings->max_ttl));
	else if (fit.ttl > LEASE_LONGEST)
		error_append(error, ", and no lease is longer than 24h");
	return blame_origins(settings, "ttl max-ttl kill-after server-timeout",
			     error);
}

int64_t config_validity_needed(const struct settings *settings)
{
	return lease_validity_needed(settings->ttl, settings->kill_after,
				     settings->server_timeout);
}
