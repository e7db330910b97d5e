/*
 * Settings: what the command line (arguments.h), the environment and the
 * configuration files (sources.h) say, checked and with the defaults filled in.
 *
 *	config_init, arguments_parse, sources_read, config_finish
 */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "lock/lock.h"
#include "server/quorum.h"
#include "net/tls.h"
#include "wait/waiter.h"

#define UNSET INT64_C(-1)
#define CONFIG_FILES 2
#define CONFIG_OPTIONS 64 /* as many as `given` has bits */

enum on_lost { ON_LOST_KILL, ON_LOST_WARN, ON_LOST_SIGNAL };
enum format { FORMAT_PEOPLE, FORMAT_SHELL, FORMAT_JSON };

/* A configuration file that was read. */
struct config_file {
	const char *path;
	bool exposed; /* others can read a password in it */
};

/* Where a setting is from. */
struct origin {
	enum { BY_COMMAND_LINE, BY_ENVIRONMENT, BY_FILE } place;
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
	char *password; /* owned; for those of them whose URL has none */
	const char *password_file; /* of a section of a file; NULL: none */
	const char *password_from; /* the variable that it is from, or NULL */
	const char *spare; /* where a password for other servers is, or NULL */
	bool only_tls;     /* -S is used, and REDLOCK_SERVERS names only TLS */
	struct url servers[SERVERS_MAX]; /* owned until config_quorum */
	size_t server_count;
	int64_t server_timeout, ttl, quarantine, kill_after; /* ms, UNSET */
	int64_t max_ttl;                                     /* ms, UNSET */
	int64_t min_hold, max_hold;                          /* ms, 0: none */
	struct tls_settings tls;
	struct patience patience;
	enum kind kind;
	int64_t permits;   /* UNSET */
	const char *owner; /* --token */
	int conflict_code;
	enum on_lost on_lost;
	int lost_signal;
	const char *label;
	const char *shell_command; /* -c */
	int status_fd;             /* -1: none */
	enum format format;
	bool nonblock, exclusive, shared, reentrant, quiet, verbose, help, yes,
		foreign;
	uint32_t accepted;  /* doctor's warnings: 1 << enum warning */
	bool help_all;      /* --help=all */
	struct error error; /* a server that could not be added */
	const char *key, *token;
	char **command; /* NULL-terminated; run: argv's own end */
	char **keys;    /* status */
	size_t key_count;
	struct kept *kept; /* owned: the texts above */
};

void config_init(struct settings *settings);

/* A copy that lives as long as the settings: what argv and the environment hold
 * may be overwritten (title.h). A failed allocation ends the process. */
char *config_keep(struct settings *settings, const char *text);

/* Adds the servers of a list with commas. What carries a password, or is no
 * URL, is made unreadable in list itself, which may be what ps(1) shows. */
int config_add_servers(struct settings *settings, char *list,
		       struct error *error);

/* The password for servers whose URL has none (logins.h). */
int config_set_password(struct settings *settings, const char *password,
			struct error *error);

/* At last: defaults, and whether all of it goes together. */
int config_finish(struct settings *settings, struct error *error);

/* What a run must hold: the ttl has room to renew and to stop COMMAND. */
int config_check_room(const struct settings *settings, struct error *error);

/* How much validity a run needs to begin with: to kill, and to be renewed. */
int64_t config_room(const struct settings *settings);

/* Hands the servers over to a quorum; `local:` is started where need be. */
int config_quorum(struct settings *settings, struct quorum *quorum,
		  struct error *error);

void config_release(struct settings *settings);

#endif
