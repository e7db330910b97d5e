#include "settings/options.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/bounds.h"
#include "base/duration.h"
#include "base/lease.h"
#include "base/number.h"
#include "base/signals.h"
#include "base/warning.h"

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
#define HISTORY COMMAND_HISTORY
#define CHECK COMMAND_CHECK
#define WAITING (TAKING | WAIT)
#define SEVERAL (TAKING | RELEASE | EXTEND | STATUS)
#define LOOKING (STATUS | LIST | HISTORY | CHECK)
#define ALL (WAITING | RELEASE | EXTEND | LOOKING | BREAK | DOCTOR)
#define EVERY (ALL | COMMAND_FENCE)

#define IN_RANGE "in range: "
#define DAY INT64_C(86400000)

/* range: the result if value is a duration, but not within these bounds. */
static const char *set_between(struct settings *settings, void *field,
			       const char *value, int64_t least, int64_t most,
			       const char *range)
{
	int64_t *ms = field;
	char text[80];

	switch (duration_parse(value, ms)) {
	case DURATION_OK:
		return *ms < least || *ms > most ? range : NULL;
	case DURATION_BEYOND:
		return range;
	case DURATION_UNCLEAR:
		snprintf(text, sizeof(text), "clear: %.20sms or %.20ss?", value,
			 value);
		return settings_keep(settings, text);
	default:
		return "a DURATION such as 500ms, 30s or 1h30m";
	}
}

static const char *set_duration(struct settings *settings, void *field,
				char *value)
{
	return set_between(settings, field, value, 0, DURATION_MAX,
			   IN_RANGE "0 to 36500d");
}

static const char *set_positive(struct settings *settings, void *field,
				char *value)
{
	return set_between(settings, field, value, 1, DURATION_MAX,
			   IN_RANGE "1ms to 36500d");
}

/* A longer lease would be renewed anyway. A shorter one is used up by the drift
 * of clocks. */
static const char *set_ttl(struct settings *settings, void *field, char *value)
{
	return set_between(settings, field, value, lease_shortest(), DAY,
			   IN_RANGE "3ms to a day");
}

/* A typing error must not leave a lock behind for years. */
static const char *set_hold(struct settings *settings, void *field, char *value)
{
	return set_between(settings, field, value, 0, DAY,
			   IN_RANGE "0 to a day");
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

	*text = settings_keep(settings, value);
	return *value == '\0' ? "valid: it is empty" : NULL;
}

/* OpenSSL matches an empty name, and one that begins with a dot, with many
 * hosts. */
static const char *set_host(struct settings *settings, void *field, char *value)
{
	size_t length = strspn(value, ":.abcdefghijklmnopqrstuvwxyz0123456789-_"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

	if (length == 0 || length > 253 || value[length] != '\0' ||
	    value[0] == '.')
		return "the name or the address of a host";
	return set_text(settings, field, value);
}

static const char *set_server(struct settings *settings, void *field,
			      char *value)
{
	(void)field;
	return settings_add_servers(settings, value, &settings->error) < 0
		       ? ""
		       : NULL;
}

static const char *set_password(struct settings *settings, void *field,
				char *value)
{
	(void)field;
	return settings_set_password(settings, SECRET_OF_SERVERS, value,
				     &settings->error) < 0
		       ? ""
		       : NULL;
}

static const char *set_sentinel_password(struct settings *settings, void *field,
					 char *value)
{
	(void)field;
	return settings_set_password(settings, SECRET_OF_SENTINELS, value,
				     &settings->error) < 0
		       ? ""
		       : NULL;
}

static const char *set_conflict(struct settings *settings, void *field,
				char *value)
{
	int64_t number;

	(void)field;
	if (number_parse(value, 0, 255, &number) < 0)
		return "a number from 0 to 255";
	settings->conflict_code = (int)number;
	return NULL;
}

static const char *set_poll(struct settings *settings, void *field, char *value)
{
	settings->poll = true;
	return value == NULL ? NULL : set_positive(settings, field, value);
}

static const char *set_tries(struct settings *settings, void *field,
			     char *value)
{
	int64_t number;

	(void)field;
	if (number_parse(value, 1, INT_MAX, &number) < 0)
		return "a number from 1 to 2147483647";
	settings->poll = true;
	settings->tries = (unsigned long)number;
	return NULL;
}

static const char *set_permits(struct settings *settings, void *field,
			       char *value)
{
	(void)field;
	return number_parse(value, 1, PERMITS_MOST, &settings->permits) < 0
		       ? "a number from 1 to 10000"
		       : NULL;
}

static const char *set_queue(struct settings *settings, void *field,
			     char *value)
{
	(void)settings;
	return number_parse(value, 0, INT_MAX, field) < 0
		       ? "a number from 0 to 2147483647"
		       : NULL;
}

static const char *set_replicas(struct settings *settings, void *field,
				char *value)
{
	(void)field;
	return number_parse(value, 0, REPLICAS_MOST, &settings->replicas) < 0
		       ? "a number from 0 to 1000"
		       : NULL;
}

static const char *set_owner(struct settings *settings, void *field,
			     char *value)
{
	if (!bounds_allow_token(value))
		return "1 to 256 ASCII characters without blanks, '%' and '='";
	return set_text(settings, field, value);
}

/* Its password would be shown as a part of a path. */
static const char *set_file(struct settings *settings, void *field, char *value)
{
	return url_is_meant(value) ? "a FILE, but the URL of a server"
				   : set_text(settings, field, value);
}

static const char *set_also(struct settings *settings, void *field, char *value)
{
	(void)field;
	if (*value == '\0' || strlen(value) > KEY_LONGEST)
		return "a KEY of 1 to 4096 bytes";
	if (url_is_meant(value))
		return "a KEY, but the URL of a server: put -S before it";
	if (settings->also_count == LOCKS_MOST - 1)
		return "taken: 16 keys are as many as can be taken together";
	settings->also[settings->also_count++] = settings_keep(settings, value);
	return NULL;
}

static const char *set_pid(struct settings *settings, void *field, char *value)
{
	int64_t number;

	(void)field;
	if (number_parse(value, 1, INT_MAX, &number) < 0)
		return "the number of a process, such as $$";
	settings->pid = (pid_t)number;
	return NULL;
}

static const char *set_on_lost(struct settings *settings, void *field,
			       char *value)
{
	(void)field;
	settings->kill_group = strcmp(value, "kill-group") == 0;
	if (strcmp(value, "kill") == 0 || settings->kill_group) {
		settings->on_lost = ON_LOST_KILL;
		return NULL;
	}
	if (strcmp(value, "warn") == 0) {
		settings->on_lost = ON_LOST_WARN;
		return NULL;
	}
	settings->on_lost = ON_LOST_SIGNAL;
	settings->lost_signal = signals_parse(value);
	return settings->lost_signal == 0
		       ? "kill, kill-group, warn or a signal's name"
		       : NULL;
}

static const char *set_status_fd(struct settings *settings, void *field,
				 char *value)
{
	int64_t number;
	int flags;

	(void)field;
	if (number_parse(value, 0, INT_MAX, &number) < 0)
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

static const char *set_json_or_prometheus(struct settings *settings,
					  void *field, char *value)
{
	(void)field;
	settings->format = strcmp(value, "prometheus") == 0 ? FORMAT_PROMETHEUS
							    : FORMAT_JSON;
	return settings->format == FORMAT_PROMETHEUS ||
			       strcmp(value, "json") == 0
		       ? NULL
		       : "json or prometheus";
}

static const char *set_unreachable(struct settings *settings, void *field,
				   char *value)
{
	(void)field;
	settings->unlocked = strcmp(value, "run") == 0;
	return settings->unlocked || strcmp(value, "fail") == 0 ? NULL
								: "fail or run";
}

static const char *set_accept(struct settings *settings, void *field,
			      char *value)
{
	(void)field;
	return warning_read_names(value, &settings->accepted) < 0
		       ? "one of " WARNING_NAMES
		       : NULL;
}

static const char *set_help(struct settings *settings, void *field, char *value)
{
	(void)field;
	settings->help = value == NULL               ? HELP_PAGE
			 : strcmp(value, "all") == 0 ? HELP_ALL
			 : strcmp(value, "man") == 0 ? HELP_MANUAL
						     : HELP_NONE;
	return settings->help == HELP_NONE ? "all or man" : NULL;
}

#define FIELD(name) offsetof(struct settings, name)

const struct option options[] = {
	{'S', "server", TAKES_VALUE, "URL", ALL, set_server, 0,
	 "a server; for more, repeat it or use commas", true},
	{0, "password", TAKES_VALUE, "PASSWORD", 0, set_password, 0, NULL,
	 .excludes = "password-file"},
	{0, "password-file", TAKES_VALUE, "FILE", 0, set_file,
	 FIELD(secrets[SECRET_OF_SERVERS].file), NULL},
	{0, "sentinel-password", TAKES_VALUE, "PASSWORD", 0,
	 set_sentinel_password, 0, NULL, .excludes = "sentinel-password-file"},
	{0, "sentinel-password-file", TAKES_VALUE, "FILE", 0, set_file,
	 FIELD(secrets[SECRET_OF_SENTINELS].file), NULL},
	{0, "config", TAKES_VALUE, "FILE", ALL, set_file, FIELD(config),
	 "the settings (the usual redlock.conf files)", .command_only = true},
	{0, "set", TAKES_VALUE, "NAME", ALL, set_text, FIELD(set),
	 "the servers of section [NAME] of the settings", .command_only = true},
	{0, "server-timeout", TAKES_VALUE, "DURATION", ALL, set_positive,
	 FIELD(server_timeout), "time for one round with the servers (1s)"},
	{0, "cacert", TAKES_VALUE, "FILE", ALL, set_file, FIELD(tls.cacert),
	 "rediss: trusted authorities (the system's)", .for_tls = true},
	{0, "crl", TAKES_VALUE, "FILE", ALL, set_file, FIELD(tls.crl),
	 "rediss: lists of revoked certificates", .for_tls = true},
	{0, "cert", TAKES_VALUE, "FILE", ALL, set_file, FIELD(tls.cert),
	 "rediss: our own certificate", .for_tls = true},
	{0, "key-file", TAKES_VALUE, "FILE", ALL, set_file, FIELD(tls.key_file),
	 "rediss: the private key of --cert", .for_tls = true},
	{0, "sni", TAKES_VALUE, "NAME", ALL, set_host, FIELD(tls.sni),
	 "rediss: the servers' name (the URL's host)", .for_tls = true},
	{0, "insecure", TAKES_NOTHING, "", ALL, set_flag, FIELD(tls.insecure),
	 "rediss: do not verify the servers", .for_tls = true, .in_full = true,
	 .excludes = "cacert crl"},
	{'t', "ttl", TAKES_VALUE, "DURATION", TAKING | EXTEND | DOCTOR, set_ttl,
	 FIELD(ttl), "length of the lease (30s)",
	 .unlisted = WAIT, /* KEY could be taken with that */
	 .special = EXTEND,
	 .special_help = "length of the lease (as acquired, or else 30s)"},
	{'n', "nonblock", TAKES_NOTHING, "", TAKING, set_flag, FIELD(nonblock),
	 "do not wait", .other = "nb", .excludes = "wait poll tries"},
	{'w', "wait", TAKES_VALUE, "DURATION", WAITING, set_duration,
	 FIELD(wait), "wait no longer than this (for ever)",
	 .other = "timeout"},
	{'E', "conflict-exit-code", TAKES_VALUE, "N", WAITING, set_conflict, 0,
	 "exit status if others hold KEY (75)", .command_only = true},
	{'x', "exclusive", TAKES_NOTHING, "", TAKING, set_flag,
	 FIELD(exclusive), "one holder at a time (the default)",
	 .command_only = true, .other_letter = 'e',
	 .excludes = "shared permits reentrant"},
	{'s', "shared", TAKES_NOTHING, "", TAKING, set_flag, FIELD(shared),
	 "any number of shared holders, or one exclusive", .command_only = true,
	 .excludes = "permits reentrant"},
	{'P', "permits", TAKES_VALUE, "N", TAKING | DOCTOR, set_permits, 0,
	 "up to N holders at a time, in slots 1 to N", .command_only = true,
	 .excludes = "reentrant"},
	{'r', "reentrant", TAKES_NOTHING, "", TAKING, set_flag,
	 FIELD(reentrant), "an owner may hold KEY more than once",
	 .command_only = true},
	{0, "token", TAKES_VALUE, "TOKEN", ACQUIRE, set_owner, FIELD(owner),
	 "with -r: the token of the owner (a new one)", .command_only = true},
	{0, "poll", MAY_TAKE_VALUE, "DURATION", TAKING, set_poll,
	 FIELD(poll_pause),
	 "do not queue; ask again after this pause (random, up to 128ms)"},
	{0, "tries", TAKES_VALUE, "N", TAKING, set_tries, 0,
	 "give up after N attempts"},
	{0, "quarantine", TAKES_VALUE, "DURATION", WAITING | STATUS | DOCTOR,
	 set_duration, FIELD(quarantine),
	 "no vote for servers up for less than this"},
	{0, "also", TAKES_VALUE, "KEY", SEVERAL, set_also, 0,
	 "another KEY to act on; repeat it for more", true,
	 .command_only = true, .special = STATUS,
	 .special_help = "with -q: another KEY; repeat it for more"},
	{0, "replicas", TAKES_VALUE, "N", TAKING | EXTEND | DOCTOR,
	 set_replicas, 0, "a lock counts once N replicas have it (0)"},
	{0, "max-ttl", TAKES_VALUE, "DURATION", 0, set_ttl, FIELD(max_ttl),
	 NULL},
	{0, "label", TAKES_VALUE, "TEXT", TAKING, set_text, FIELD(label),
	 "the purpose that others see (the command line)"},
	{'p', "pid", TAKES_VALUE, "PID", ACQUIRE, set_pid, 0,
	 "renew KEY in the background while PID lives", .command_only = true},
	{'k', "kill-after", TAKES_VALUE, "DURATION", TAKING, set_duration,
	 FIELD(kill_after), "time from SIGTERM to SIGKILL (ttl/6, up to 5s)",
	 .for_pid = true},
	{0, "min-hold", TAKES_VALUE, "DURATION", RUN, set_hold, FIELD(min_hold),
	 "keep KEY this long even if COMMAND ends sooner"},
	{0, "once-in", TAKES_VALUE, "DURATION", RUN, set_positive,
	 FIELD(once_in),
	 "do not run COMMAND if a run that succeeded began less than this ago",
	 .command_only = true},
	{0, "remember", TAKES_VALUE, "DURATION", TAKING, set_duration,
	 FIELD(remember), "how long KEY's history and fence are kept (7d)"},
	{0, "max-hold", TAKES_VALUE, "DURATION", TAKING, set_positive,
	 FIELD(max_hold), "stop COMMAND after this long (status 124)",
	 .for_pid = true, .special = ACQUIRE,
	 .special_help = "stop PID after this long"},
	{0, "on-lost", TAKES_VALUE, "kill|kill-group|warn|SIGNAL", TAKING,
	 set_on_lost, 0,
	 "what to do to COMMAND if the lock is lost (kill; kill-group is "
	 "the same)",
	 .for_pid = true, .special = ACQUIRE,
	 .special_help = "what to do to PID if the lock is lost (kill); "
			 "kill-group: stop its process group"},
	{0, "unreachable", TAKES_VALUE, "fail|run", RUN, set_unreachable, 0,
	 "what to do if no quorum of servers is reached (fail); run: start "
	 "COMMAND without the lock"},
	{'c', "command", TAKES_VALUE, "STRING", RUN, set_text,
	 FIELD(shell_command), "run STRING with $SHELL -c",
	 .command_only = true},
	{0, "status-fd", TAKES_VALUE, "N", RUN, set_status_fd, 0,
	 "at the end write JSON to descriptor N", .command_only = true},
	{0, "format", TAKES_VALUE, "shell|json", ACQUIRE, set_format, 0,
	 "for eval, or for programs", .command_only = true},
	{0, "format", TAKES_VALUE, "json", STATUS | HISTORY, set_json, 0,
	 "for programs: JSON, an object a line", .command_only = true},
	{0, "format", TAKES_VALUE, "json|prometheus", LIST | DOCTOR,
	 set_json_or_prometheus, 0,
	 "for programs: JSON, an object a line; or metrics",
	 .command_only = true},
	{0, "output", TAKES_VALUE, "FILE", LIST | DOCTOR, set_file,
	 FIELD(output), "write the metrics to FILE, replacing it",
	 .command_only = true},
	{0, "accept", TAKES_VALUE, "NAME", DOCTOR, set_accept, 0,
	 "leave out this warning; commas for more"},
	{0, "syslog", TAKES_NOTHING, "", TAKING | BREAK, set_flag,
	 FIELD(syslog), "log to syslog what happens to KEY"},
	{0, "max-age", TAKES_VALUE, "DURATION", CHECK, set_duration,
	 FIELD(most.age), "critical if the last success is older",
	 .command_only = true},
	{0, "max-held", TAKES_VALUE, "DURATION", CHECK, set_duration,
	 FIELD(most.held), "critical if KEY is held for longer",
	 .command_only = true},
	{0, "max-wait", TAKES_VALUE, "DURATION", CHECK, set_duration,
	 FIELD(most.wait), "critical if somebody has waited for longer",
	 .command_only = true},
	{0, "max-queue", TAKES_VALUE, "N", CHECK, set_queue, FIELD(most.queue),
	 "critical if more than N wait", .command_only = true},
	{0, "warn-age", TAKES_VALUE, "DURATION", CHECK, set_duration,
	 FIELD(warn.age), "a warning if the last success is older",
	 .command_only = true},
	{0, "warn-held", TAKES_VALUE, "DURATION", CHECK, set_duration,
	 FIELD(warn.held), "a warning if KEY is held for longer",
	 .command_only = true},
	{0, "warn-wait", TAKES_VALUE, "DURATION", CHECK, set_duration,
	 FIELD(warn.wait), "a warning if somebody has waited for longer",
	 .command_only = true},
	{0, "warn-queue", TAKES_VALUE, "N", CHECK, set_queue, FIELD(warn.queue),
	 "a warning if more than N wait", .command_only = true},
	{'y', "yes", TAKES_NOTHING, "", BREAK, set_flag, FIELD(yes),
	 "do not ask the user", .command_only = true},
	{0, "reason", TAKES_VALUE, "TEXT", BREAK, set_text, FIELD(reason),
	 "the reason, which the holders are told", .command_only = true},
	{0, "now", TAKES_NOTHING, "", BREAK, set_flag, FIELD(now),
	 "take KEY away at once; its holder may run on up to ttl/3",
	 .command_only = true},
	{0, "foreign", TAKES_NOTHING, "", BREAK, set_flag, FIELD(foreign),
	 "delete KEY even if it is not a lock", .command_only = true},
	{'q', "quiet", TAKES_NOTHING, "", EVERY, set_flag, FIELD(quiet),
	 "print only what is wrong", .command_only = true,
	 .excludes = "verbose", .special = ACQUIRE | LIST | HISTORY,
	 .special_help = "print only what is wrong, and the result"},
	{'v', "verbose", TAKES_NOTHING, "", EVERY, set_flag, FIELD(verbose),
	 "print each step with its time"},
	{'h', "help", MAY_TAKE_VALUE, "all|man", EVERY, set_help, 0,
	 "this text; all: all options; man: the manual", .command_only = true,
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

const char *options_help(const struct option *option, unsigned command)
{
	return command & option->special ? option->special_help : option->help;
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

enum secret_kind options_secret(const struct option *option)
{
	static const char names[SECRETS][2][sizeof(option->name)] = {
		[SECRET_OF_SERVERS] = {"password", "password-file"},
		[SECRET_OF_SENTINELS] = {"sentinel-password",
					 "sentinel-password-file"},
	};
	enum secret_kind kind = SECRET_OF_SERVERS;

	while (kind < SECRETS && strcmp(option->name, names[kind][0]) != 0 &&
	       strcmp(option->name, names[kind][1]) != 0)
		kind++;
	return kind;
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

bool options_is_among(const struct option *option, const char *names)
{
	size_t length = strlen(option->name);

	for (; *names != '\0'; names += strspn(names, " ")) {
		size_t word = strcspn(names, " ");

		if (word == length && memcmp(names, option->name, word) == 0)
			return true;
		names += word;
	}
	return false;
}

const struct option *options_find_opposite(const struct option *option,
					   uint64_t given)
{
	for (size_t i = 0; i < option_count; i++)
		if ((given & options_bit(&options[i])) &&
		    (options_is_among(option, options[i].excludes) ||
		     options_is_among(&options[i], option->excludes)))
			return &options[i];
	return NULL;
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
	       options_origin(settings, option).kind == BY_COMMAND_LINE;
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

	switch (origin.kind) {
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
