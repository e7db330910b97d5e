/*
 * A server's URL: where it is, or which hosts know that, and the login.
 *
 *	redis://[[user]:password@]host[:port][/db]
 *	rediss://...	the same over TLS
 *	unix://[[user]:password@]/path[?db=N]
 *	redis+sentinel://[[user]:password@]host[:port][,...]/name[/db]
 *	rediss+sentinel://...	the same over TLS, to the Sentinels, too
 *	redis+cluster://[[user]:password@]host[:port][,...]
 *	rediss+cluster://...	the same over TLS
 *	local:
 *
 * The URL of Sentinels may end with ?sentinel=[user]:password, their own login,
 * and may have ?db=N instead of /db.
 *
 * Works on a copy and hands over only a whole result. User and password may be
 * percent-encoded (RFC 3986); errors and url->name never show them. If text is
 * no such URL, any part of it may be a password: errors quote the scheme and
 * the host at most (url_quote).
 */
#ifndef NET_URL_H
#define NET_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "net/endpoint.h"

#define URL_PATH_SIZE 108 /* of a Unix socket's path, with the NUL */

#define URL_QUOTED 520 /* bytes that url_quote needs */

#define SEEDS_MAX 8 /* hosts that know the server's address */

enum url_kind { URL_TCP, URL_UNIX, URL_LOCAL, URL_SENTINEL, URL_CLUSTER };

struct url {
	enum url_kind kind;
	bool tls;              /* rediss: all connections for this URL */
	char *user, *password; /* NULL if none was given */
	struct endpoint at;    /* URL_TCP, URL_UNIX */
	uint32_t db;
	struct endpoint *seeds; /* URL_SENTINEL, URL_CLUSTER */
	size_t seed_count;
	char *master; /* URL_SENTINEL: by this name they know it */
	/* URL_SENTINEL: their own login; NULL: they get the server's */
	char *seed_user, *seed_password;
	char *name;   /* for people: the URL without its secrets */
	char *advice; /* for a user who is refused: where the password is from, or
			 why there is none (logins.h); or NULL */
	char *seed_advice; /* the same for a user whom Sentinels refuse */
};

/* 0, or -1 with *error (EXIT_USAGE) and *url zeroed. */
int url_parse(struct url *url, const char *text, struct error *error);

/* Whether text begins as the URL of a server does, well-formed or not. */
bool url_is_meant(const char *text);

/* Cuts the first URL off a list of them, as strsep(3) does: at a comma, but for
 * those between hosts, after which no URL begins. */
char *url_separate(char **list);

/* Whether the rest of a list, as url_separate left it, is the end of a login:
 * its password has a comma. */
bool url_is_login_cut(const char *rest);

/* Whether they are one server by their text. The case of a host's letters, the
 * database and a '/' more make no difference. Two clusters with a host in common
 * are one, and so are two masters of the same name. */
bool url_is_same(const struct url *one, const struct url *other);

/* A copy of its own; without memory the process ends. */
struct url url_copy(const struct url *url);

/* The URL of a seed: as this one, over TLS or not. It has the login for seeds, or
 * else that of this URL. */
struct url url_seed(const struct url *url, size_t seed);

/* Frees what url holds; secrets are overwritten first. */
void url_release(struct url *url);

/* What an error may quote of text, a URL, well-formed or not: its scheme and
 * host, or a socket's path, and nothing that could be part of a login. */
const char *url_quote(const char *text, char shown[URL_QUOTED]);

/* The same for any text, as it may be a URL in the wrong place; of a text that
 * is none, the first 64 bytes. */
const char *url_quote_any(const char *text, char shown[URL_QUOTED]);

/* Makes the secrets in text (a URL, well-formed or not) unreadable, in place.
 * */
void url_hide_secret(char *text);

/* The same for the logins of all URLs in a text, which may become shorter. A user
 * without a password is one, too, as it may be a token. */
void url_hide_logins(char *text);

/* The same for a password, or NULL, wherever it stands. */
void url_hide_password(char *text, const char *password);

#endif
