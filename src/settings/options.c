#include "settings/options.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "show/server_facts.h"
#include "base/duration.h"
#include "base/signals.h"

#define RUN COMMAND_RUN
#define ACQUIRE COMMAND_ACQUIRE
#define RELEASE COMMAND_RELEASE
#define EXTEND COMMAND_EXTEND
#define WAIT COMMAND_WAIT
#define TAKING (RUN | ACQUIRE)
#define STATUS COMMAND_STATUS
#define LIST COMMAND_LIST
#define BREAK COMMAND_BREAK
#define DOCTOR COMMAND_DOCTOR
#define WAITING (TAKING | WAIT)
#define ALL (WAITING | RELEASE | EXTEND | STATUS | LIST | BREAK | DOCTOR)

#define WANT_DURATION "a DURATION such as 500ms, 30s or 1h30m"
#define DAY INT64_C(86400000)

/* wanted: what it is told if value is none, or not between these. */
static const char *set_between(struct settings *settings, void *field,
			       const char *value, int64_t least, int64_t most,
			       const char *wanted)
{
	int64_t *ms = field;
	char text[80];

	switch (duration_parse(value, ms)) {
	case DURATION_OK:
		return *ms < least || *ms > most ? wanted : NULL;
	case DURATION_UNCLEAR:
		snprintf(text, sizeof(text), "clear: %.20sms or %.20ss?", value,
			 value);
		return config_keep(settings, text);
	default:
		return wanted;
	}
}

static const char *set_duration(struct settings *settings, void *field,
				char *value)
{
	return set_between(settings, field, value, 0, DURATION_MAX,
			   WANT_DURATION);
}

static const char *set_positive(struct settings *settings, void *field,
				char *value)
{
	return set_between(settings, field, value, 1, DURATION_MAX,
			   WANT_DURATION " (more than 0)");
}

/* A longer lease would be renewed anyway; one of which the drift of clocks
 * leaves nothing holds nothing. */
static const char *set_ttl(struct settings *settings, void *field, char *value)
{
	return set_between(settings, field, value, lock_drift(1) + 1, DAY,
			   WANT_DURATION " (3ms to a day)");
}

/* A typing error must not leave a lock behind for years. */
static const char *set_hold(struct settings *settings, void *field, char *value)
{
	return set_between(settings, field, value, 0, DAY,
			   WANT_DURATION " (a day at most)");
}

static const char *set_flag(struct settings *settings, void *field, char *value)
{
	bool *flag = field;

	(void)settings;
	(void)value;
	*flag = true;
	return NULL;
}

static const char *set_text(struct settings *settings, void *field, char *value)
{
	const char **text = field;

	*text = config_keep(settings, value);
	return *value == '\0' ? "valid: it is empty" : NULL;
}

/* OpenSSL takes an empty name, and one that begins with a dot, for many. */
static const char *set_host(struct settings *settings, void *field, char *value)
{
	size_t length = strspn(value, ":.abcdefghijklmnopqrstuvwxyz0123456789-_"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

	if (length == 0 || length > 253 || value[length] != '\0' ||
	    value[0] == '.')
		return "the name or the address of a host";
	return set_text(settings, field, value);
}

/* Plain digits, up to most: no sign, no blank. */
static int parse_number(const char *value, long most, long *number)
{
	if (*value == '\0' || strspn(value, "0123456789") != strlen(value))
		return -1;
	errno = 0;
	*number = strtol(value, NULL, 10);
	return errno != 0 || *number > most ? -1 : 0;
}

static const char *set_server(struct settings *settings, void *field,
			      char *value)
{
	(void)field;
	return config_add_servers(settings, value, &settings->error) < 0 ? ""
									 : NULL;
}

static const char *set_password(struct settings *settings, void *field,
				char *value)
{
	(void)field;
	return config_set_password(settings, value, &settings->error) < 0
		       ? ""
		       : NULL;
}

static const char *set_conflict(struct settings *settings, void *field,
				char *value)
{
	long number;

	(void)field;
	if (parse_number(value, 255, &number) < 0)
		return "a number from 0 to 255";
	settings->conflict_code = (int)number;
	return NULL;
}

static const char *set_poll(struct settings *settings, void *field, char *value)
{
	settings->patience.poll = true;
	return value == NULL ? NULL : set_positive(settings, field, value);
}

static const char *set_tries(struct settings *settings, void *field,
			     char *value)
{
	long number;

	(void)field;
	if (parse_number(value, INT_MAX, &number) < 0 || number == 0)
		return "a number from 1 on";
	settings->patience.poll = true;
	settings->patience.tries = (unsigned long)number;
	return NULL;
}

static const char *set_permits(struct settings *settings, void *field,
			       char *value)
{
	long number;

	(void)field;
	if (parse_number(value, PERMITS_MOST, &number) < 0 || number == 0)
		return "a number from 1 to 100000";
	settings->permits = number;
	return NULL;
}

static const char *set_owner(struct settings *settings, void *field,
			     char *value)
{
	if (!token_is_plain(value))
		return "1 to 256 ASCII characters without blanks, '%' and '='";
	return set_text(settings, field, value);
}

static const char *set_on_lost(struct settings *settings, void *field,
			       char *value)
{
	(void)field;
	if (strcmp(value, "kill") == 0) {
		settings->on_lost = ON_LOST_KILL;
		return NULL;
	}
	if (strcmp(value, "warn") == 0) {
		settings->on_lost = ON_LOST_WARN;
		return NULL;
	}
	settings->on_lost = ON_LOST_SIGNAL;
	settings->lost_signal = signals_parse(value);
	return settings->lost_signal == 0 ? "kill, warn or a signal's name"
					  : NULL;
}

static const char *set_status_fd(struct settings *settings, void *field,
				 char *value)
{
	long number;
	int flags;

	(void)field;
	if (parse_number(value, INT_MAX, &number) < 0)
		return "the number of an open descriptor";
	flags = fcntl((int)number, F_GETFL);
	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
		return "the number of a descriptor that is open for writing";
	settings->status_fd = (int)number;
	return NULL;
}

static const char *set_format(struct settings *settings, void *field,
			      char *value)
{
	(void)field;
	settings->format = strcmp(value, "shell") == 0  ? FORMAT_SHELL
			   : strcmp(value, "json") == 0 ? FORMAT_JSON
							: FORMAT_PEOPLE;
	return settings->format == FORMAT_PEOPLE ? "shell or json" : NULL;
}

static const char *set_json(struct settings *settings, void *field, char *value)
{
	(void)field;
	settings->format = FORMAT_JSON;
	return strcmp(value, "json") == 0 ? NULL : "json";
}

static const char *set_accept(struct settings *settings, void *field,
			      char *value)
{
	(void)field;
	return checkup_read_names(value, &settings->accepted) < 0
		       ? "of " WARNING_NAMES
		       : NULL;
}

static const char *set_help(struct settings *settings, void *field, char *value)
{
	(void)field;
	settings->help = true;
	settings->help_all = value != NULL;
	return value == NULL || strcmp(value, "all") == 0 ? NULL : "all";
}

#define FIELD(name) offsetof(struct settings, name)

const struct option options[] = {
	{'S', "server", TAKES_VALUE, "URL", ALL, set_server, 0,
	 "a server; again, or with commas, for more", true},
	{0, "password", TAKES_VALUE, "PASSWORD", 0, set_password, 0, NULL},
	{0, "password-file", TAKES_VALUE, "FILE", 0, set_text,
	 FIELD(password_file), NULL},
	{0, "config", TAKES_VALUE, "FILE", ALL, set_text, FIELD(config),
	 "the settings (the usual redlock.conf files)", .command_only = true},
	{0, "set", TAKES_VALUE, "NAME", ALL, set_text, FIELD(set),
	 "the servers of section [NAME] of the settings", .command_only = true},
	{0, "server-timeout", TAKES_VALUE, "DURATION", ALL, set_positive,
	 FIELD(server_timeout), "time for one round with the servers (1s)"},
	{0, "cacert", TAKES_VALUE, "FILE", ALL, set_text, FIELD(tls.cacert),
	 "rediss: trusted authorities (the system's)", .for_tls = true},
	{0, "crl", TAKES_VALUE, "FILE", ALL, set_text, FIELD(tls.crl),
	 "rediss: lists of revoked certificates", .for_tls = true},
	{0, "cert", TAKES_VALUE, "FILE", ALL, set_text, FIELD(tls.cert),
	 "rediss: our own certificate", .for_tls = true},
	{0, "key-file", TAKES_VALUE, "FILE", ALL, set_text, FIELD(tls.key_file),
	 "rediss: the private key of --cert", .for_tls = true},
	{0, "sni", TAKES_VALUE, "NAME", ALL, set_host, FIELD(tls.sni),
	 "rediss: the servers' name (the URL's host)", .for_tls = true},
	{0, "insecure", TAKES_NOTHING, "", ALL, set_flag, FIELD(tls.insecure),
	 "rediss: do not verify the servers", .for_tls = true, .in_full = true},
	{'t', "ttl", TAKES_VALUE, "DURATION", TAKING | EXTEND | DOCTOR, set_ttl,
	 FIELD(ttl), "the lease (30s; extend: the lock's own)"},
	{'n', "nonblock", TAKES_NOTHING, "", TAKING, set_flag, FIELD(nonblock),
	 "do not wait"},
	{'w', "wait", TAKES_VALUE, "DURATION", WAITING, set_duration,
	 FIELD(patience.limit), "wait no longer than this (for ever)",
	 .other = "timeout"},
	{'E', "conflict-exit-code", TAKES_VALUE, "N", WAITING, set_conflict, 0,
	 "exit status if others hold KEY (75)", .command_only = true},
	{'x', "exclusive", TAKES_NOTHING, "", TAKING, set_flag,
	 FIELD(exclusive), "one holder at a time (the default)",
	 .command_only = true},
	{'s', "shared", TAKES_NOTHING, "", TAKING, set_flag, FIELD(shared),
	 "any number of shared holders, or one exclusive",
	 .command_only = true},
	{'P', "permits", TAKES_VALUE, "N", TAKING | DOCTOR, set_permits, 0,
	 "up to N holders at a time", .command_only = true},
	{'r', "reentrant", TAKES_NOTHING, "", TAKING, set_flag,
	 FIELD(reentrant), "an owner may hold KEY more than once",
	 .command_only = true},
	{0, "token", TAKES_VALUE, "TOKEN", ACQUIRE, set_owner, FIELD(owner),
	 "with -r: who owns the lock (a fresh token)", .command_only = true},
	{0, "poll", MAY_TAKE_VALUE, "DURATION", TAKING, set_poll,
	 FIELD(patience.every),
	 "no queue: ask again, ever later (up to 128ms)"},
	{0, "tries", TAKES_VALUE, "N", TAKING, set_tries, 0,
	 "give up after N attempts"},
	{0, "quarantine", TAKES_VALUE, "DURATION", WAITING | STATUS | DOCTOR,
	 set_duration, FIELD(quarantine),
	 "no vote for servers that started in this time"},
	{0, "max-ttl", TAKES_VALUE, "DURATION", 0, set_ttl, FIELD(max_ttl),
	 NULL},
	{0, "label", TAKES_VALUE, "TEXT", TAKING, set_text, FIELD(label),
	 "the purpose that others see (the command line)"},
	{'k', "kill-after", TAKES_VALUE, "DURATION", RUN, set_duration,
	 FIELD(kill_after), "time from SIGTERM to SIGKILL (ttl/6, up to 5s)"},
	{0, "min-hold", TAKES_VALUE, "DURATION", RUN, set_hold, FIELD(min_hold),
	 "keep KEY this long even if COMMAND ends sooner"},
	{0, "max-hold", TAKES_VALUE, "DURATION", RUN, set_positive,
	 FIELD(max_hold), "stop COMMAND after this long (exit status 124)"},
	{0, "on-lost", TAKES_VALUE, "kill|warn|SIGNAL", RUN, set_on_lost, 0,
	 "what to do to COMMAND if the lock is lost (kill)"},
	{'c', "command", TAKES_VALUE, "STRING", RUN, set_text,
	 FIELD(shell_command), "run STRING with $SHELL -c",
	 .command_only = true},
	{0, "status-fd", TAKES_VALUE, "N", RUN, set_status_fd, 0,
	 "write how it went to descriptor N, as JSON", .command_only = true},
	{0, "format", TAKES_VALUE, "shell|json", ACQUIRE, set_format, 0,
	 "for eval, or for programs", .command_only = true},
	{0, "format", TAKES_VALUE, "json", STATUS | LIST | DOCTOR, set_json, 0,
	 "for programs: one JSON object a line", .command_only = true},
	{0, "accept", TAKES_VALUE, "NAME", DOCTOR, set_accept, 0,
	 "leave out this warning; more with commas"},
	{'y', "yes", TAKES_NOTHING, "", BREAK, set_flag, FIELD(yes),
	 "do not ask", .command_only = true},
	{0, "foreign", TAKES_NOTHING, "", BREAK, set_flag, FIELD(foreign),
	 "delete KEY even if it is not a lock", .command_only = true},
	{'q', "quiet", TAKES_NOTHING, "", ALL, set_flag, FIELD(quiet),
	 "print only errors", .command_only = true},
	{'v', "verbose", TAKES_NOTHING, "", ALL, set_flag, FIELD(verbose),
	 "print each step with its time"},
	{'h', "help", MAY_TAKE_VALUE, "all", ALL, set_help, 0,
	 "this text; all: all options, in groups", .command_only = true,
	 .in_full = true},
};

const size_t option_count = sizeof(options) / sizeof(options[0]);

_Static_assert(sizeof(options) / sizeof(options[0]) <= CONFIG_OPTIONS,
	       "settings->given has so many bits");

static bool is_same(const char *text, const char *name, size_t length)
{
	return strlen(text) == length && memcmp(text, name, length) == 0;
}

static bool is_named(const struct option *option, const char *name,
		     size_t length)
{
	return is_same(option->name, name, length) ||
	       (length > 0 && is_same(option->other, name, length));
}

const struct option *options_find(const char *name, size_t length,
				  unsigned wanted)
{
	const struct option *found = NULL;

	for (size_t i = 0; i < option_count; i++)
		if (options[i].commands != 0 &&
		    is_named(&options[i], name, length) &&
		    (found == NULL || (options[i].commands & wanted)))
			found = &options[i];
	return found;
}

const struct option *options_find_setting(const char *name)
{
	for (size_t i = 0; i < option_count; i++)
		if (options[i].commands == 0 &&
		    strcmp(options[i].name, name) == 0)
			return &options[i];
	return NULL;
}

const char *options_variable(const struct option *option,
			     char name[VARIABLE_NAME])
{
	name[0] = '\0';
	if (option->command_only || option->in_full)
		return name;
	snprintf(name, VARIABLE_NAME, "REDLOCK_%s%s", option->name,
		 option->repeats ? "S" : "");
	for (char *c = name; *c; c++)
		*c = (char)(*c == '-' ? '_' : toupper((unsigned char)*c));
	return name;
}

const struct option *options_find_variable(const char *name)
{
	char each[VARIABLE_NAME];

	for (size_t i = 0; i < option_count; i++)
		if (*options_variable(&options[i], each) != '\0' &&
		    strcmp(name, each) == 0)
			return &options[i];
	return NULL;
}

uint64_t options_bit(const struct option *option)
{
	return UINT64_C(1) << (option - options);
}

static uint64_t bit_of(const char *name)
{
	for (size_t i = 0; i < option_count; i++)
		if (strcmp(options[i].name, name) == 0)
			return options_bit(&options[i]);
	return 0;
}

uint64_t options_opposites(const struct option *option)
{
	static const char *const pairs[][2] = {
		{"nonblock", "wait"},          {"nonblock", "poll"},
		{"nonblock", "tries"},         {"quiet", "verbose"},
		{"insecure", "cacert"},        {"insecure", "crl"},
		{"password", "password-file"},
	};
	uint64_t bits = 0;

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		for (size_t side = 0; side < 2; side++)
			if (strcmp(option->name, pairs[i][side]) == 0)
				bits |= bit_of(pairs[i][!side]);
	return bits;
}

void options_note(struct settings *settings, const struct option *option)
{
	uint64_t bit = options_bit(option);

	if (!(settings->given & bit))
		settings->origins[option - options] = settings->here;
	settings->given |= bit;
}

const char *options_set(struct settings *settings, const struct option *option,
			char *value)
{
	options_note(settings, option);
	return option->set(settings, (char *)settings + option->field, value);
}

struct origin options_origin(const struct settings *settings,
			     const struct option *option)
{
	return settings->origins[option - options];
}

static bool is_given(const struct settings *settings,
		     const struct option *option)
{
	return (settings->given & options_bit(option)) != 0;
}

bool options_is_typed(const struct settings *settings,
		      const struct option *option)
{
	return is_given(settings, option) &&
	       options_origin(settings, option).place == BY_COMMAND_LINE;
}

bool options_has_origin(const struct settings *settings,
			const struct option *option)
{
	return is_given(settings, option) && !option->command_only;
}

void options_tell_origin(struct buffer *text, const struct settings *settings,
			 const struct option *option)
{
	struct origin origin = options_origin(settings, option);
	char name[VARIABLE_NAME];

	switch (origin.place) {
	case BY_COMMAND_LINE:
		buffer_print(text, "the command line");
		break;
	case BY_ENVIRONMENT:
		buffer_print(text, "%s", options_variable(option, name));
		break;
	case BY_FILE:
		buffer_print(text, "%s:%u", settings->files[origin.file].path,
			     origin.line);
	}
}

void options_tell_origins(struct buffer *text, const struct settings *settings)
{
	const char *separator = "";

	for (size_t i = 0; i < option_count; i++) {
		if (!options_has_origin(settings, &options[i]))
			continue;
		buffer_print(text, "%s%s from ", separator, options[i].name);
		options_tell_origin(text, settings, &options[i]);
		separator = ", ";
	}
}
