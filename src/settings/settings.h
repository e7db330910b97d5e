/*
 * The room settings/ reads what the user has said, on the command line, in the
 * environment and in configuration files, into one value: struct settings. It
 * does nothing else with it. Data goes one way:
 *
 *	settings_init			nothing has been said yet
 *	arguments_parse			the command line (arguments.h)
 *	sources_read			the rest (sources.h)
 *	config_finish			defaults, checks, passwords (config.h)
 *	settings_release
 *
 * Each of them reads through the table of options (options.h). cmd/ and
 * redlock.c enter here and make servers, a lock and a wait of the value. The room
 * includes base/ and net/url.h only.
 */
#ifndef SETTINGS_SETTINGS_H
#define SETTINGS_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bounds.h"
#include "base/error.h"
#include "net/url.h"

#define UNSET INT64_C(-1)
#define CONFIG_FILES 2
#define CONFIG_OPTIONS 64 /* as many as `given` has bits */

enum on_lost { ON_LOST_KILL, ON_LOST_WARN, ON_LOST_SIGNAL };
enum format { FORMAT_PEOPLE, FORMAT_SHELL, FORMAT_JSON, FORMAT_PROMETHEUS };
/* --help prints a page, --help=all all options; --help=man opens the manual. */
enum help { HELP_NONE, HELP_PAGE, HELP_ALL, HELP_MANUAL };

/* Of `check`; UNSET: none. */
struct thresholds {
	int64_t age, held, wait; /* ms */
	int64_t queue;
};

/* A configuration file that was read. */
struct config_file {
	const char *path;
	bool exposed; /* others can read a password in it */
};

/* Who is sent a password (logins.h). */
enum secret_kind { SECRET_OF_SERVERS, SECRET_OF_SENTINELS, SECRETS };

/* A password for those of the servers whose URL has none. */
struct secret {
	char *text;       /* owned, or NULL */
	const char *file; /* of a section of a file; NULL: none */
	const char *from; /* for people, if there is one: a variable, or
			   * "the password in FILE" */
};

/* Where a setting is from. */
struct origin {
	enum { BY_COMMAND_LINE, BY_ENVIRONMENT, BY_FILE } kind;
	unsigned char file; /* BY_FILE: which of settings->files, and where */
	unsigned line;
};

struct settings {
	uint64_t given; /* options that something has set: options_bit */
	struct origin origins[CONFIG_OPTIONS];  /* of those that are given */
	struct origin here;                     /* what is read now */
	struct config_file files[CONFIG_FILES]; /* a path NULL: no more */
	const char *config, *set;               /* --config, --set */
	const char
		*named; /* where the servers are, for people; NULL: nowhere */
	struct secret secrets[SECRETS];
	const char *spare; /* where a password for other servers is, or NULL */
	bool only_tls;     /* -S is used, and REDLOCK_SERVERS names only TLS */
	struct url servers[SERVERS_MAX]; /* owned */
	size_t server_count;
	int64_t server_timeout, ttl, quarantine, kill_after; /* ms, UNSET */
	int64_t max_ttl;                                     /* ms, UNSET */
	int64_t min_hold, max_hold;                          /* ms, 0: none */
	int64_t once_in;                                     /* ms, 0: none */
	int64_t remember;                                    /* ms, UNSET */
	int64_t wait;                                        /* ms, UNSET */
	bool poll;           /* --poll or --tries */
	int64_t poll_pause;  /* ms, 0: growing pauses */
	unsigned long tries; /* 0: any number */
	struct {
		const char *cacert, *crl, *cert, *key_file, *sni; /* or NULL */
		bool insecure;
	} tls;
	int64_t permits;   /* UNSET */
	int64_t replicas;  /* 0: none */
	const char *owner; /* --token */
	pid_t pid;         /* acquire: whom a keeper follows; 0: nobody */
	int conflict_code;
	enum on_lost on_lost;
	int lost_signal;
	bool kill_group; /* on_lost: the group that --pid leads */
	const char *label;
	const char *shell_command; /* -c */
	bool unlocked; /* COMMAND runs without a lock if no quorum is reached */
	int status_fd; /* -1: none */
	enum format format;
	const char *output; /* the file for FORMAT_PROMETHEUS, or NULL */
	bool understood;    /* the command line, with its KEYs, makes sense */
	bool syslog;
	bool nonblock, exclusive, shared, reentrant, quiet, verbose, yes,
		foreign, now;
	const char *reason; /* break: NULL: none */
	struct thresholds warn, most;
	uint32_t accepted; /* doctor's warnings: 1 << enum warning */
	enum help help;
	struct error error;               /* a server that could not be added */
	const char *key, *token;          /* of several keys: tokens.h */
	const char *also[LOCKS_MOST - 1]; /* the keys of --also */
	size_t also_count;
	const char *file; /* fence */
	int64_t fence;    /* 1 to FENCE_LARGEST */
	char **command;   /* NULL-terminated; run: argv's own end */
	char **keys;      /* status */
	size_t key_count;
	struct kept *kept; /* owned: the texts above */
};

void settings_init(struct settings *settings);

/* A copy that lives as long as the settings. argv and the environment cannot be
 * relied on, as a process title overwrites them (title.h). */
char *settings_keep(struct settings *settings, const char *text);

/* The keys of a command: KEY is the first, then those of --also. */
size_t settings_key_count(const struct settings *settings);
const char *settings_key(const struct settings *settings, size_t i);

/* The index of key in their bytewise order, by which locks are taken. */
size_t settings_key_index(const struct settings *settings, const char *key);

/* Adds the servers of a list with commas. A password in the list, or a list that
 * is wrong, is made unreadable in place, as ps(1) may show it. */
int settings_add_servers(struct settings *settings, char *list,
			 struct error *error);

/* The password for servers, or for Sentinels, whose URL has none (logins.h). */
int settings_set_password(struct settings *settings, enum secret_kind kind,
			  const char *password, struct error *error);

void settings_forget_passwords(struct settings *settings);

bool settings_have_tls(const struct settings *settings);

void settings_release(struct settings *settings);

#endif
