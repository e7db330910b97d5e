#include "net/url.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/output.h"
#include "net/endpoint.h"

#define DEFAULT_PORT 6379
#define SENTINEL_PORT 26379
#define SENTINEL "redis+sentinel://"
#define CLUSTER "redis+cluster://"
#define HOST_LONGEST 253
#define QUOTED_LONGEST 64 /* bytes of what is no URL in an error */
#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define LOGIN_IN_QUERY                                           \
	"a login goes before the host or the path, as in "       \
	"redis://user:password@host, or the password goes into " \
	"REDLOCK_PASSWORD; neither may follow '?'"

void url_release(struct url *url)
{
	if (url->password != NULL)
		explicit_bzero(url->password, strlen(url->password));
	free(url->user);
	free(url->password);
	free(url->host);
	free(url->path);
	for (size_t i = 0; i < url->seed_count; i++)
		url_release(&url->seeds[i]);
	free(url->seeds);
	free(url->master);
	free(url->name);
	free(url->advice);
	*url = (struct url){0};
}

/* The next step of a path: "a/" from "//./a/b"; NULL at its end. */
static const char *next_step(const char *path, size_t *length)
{
	do {
		path += strspn(path, "/");
		*length = strcspn(path, "/");
		if (*length != 1 || *path != '.')
			return *length > 0 ? path : NULL;
		path++;
	} while (true);
}

static bool is_same_path(const char *one, const char *other)
{
	size_t length, other_length;

	do {
		one = next_step(one, &length);
		other = next_step(other, &other_length);
		if (one == NULL || other == NULL)
			return one == other;
		if (length != other_length || memcmp(one, other, length) != 0)
			return false;
		one += length;
		other += length;
	} while (true);
}

/* A name may end with a dot: it is complete then. */
static bool is_same_host(const char *one, const char *other)
{
	size_t length = strlen(one), other_length = strlen(other);

	length -= length > 1 && one[length - 1] == '.';
	other_length -= other_length > 1 && other[other_length - 1] == '.';
	return length == other_length && strncasecmp(one, other, length) == 0;
}

bool url_is_same(const struct url *one, const struct url *other)
{
	if (one->kind != other->kind)
		return false;
	switch (one->kind) {
	case URL_TCP:
		return one->port == other->port &&
		       is_same_host(one->host, other->host);
	case URL_UNIX:
		return is_same_path(one->path, other->path);
	default:
		return strcmp(one->name, other->name) == 0;
	}
}

struct url url_copy(const struct url *url)
{
	struct url copy = *url;

	copy.user = heap_copy(url->user);
	copy.password = heap_copy(url->password);
	copy.host = heap_copy(url->host);
	copy.path = heap_copy(url->path);
	if (url->seeds != NULL)
		copy.seeds = heap_get(url->seed_count, sizeof(*copy.seeds));
	for (size_t i = 0; url->seeds != NULL && i < url->seed_count; i++)
		copy.seeds[i] = url_copy(&url->seeds[i]);
	copy.master = heap_copy(url->master);
	copy.name = heap_copy(url->name);
	copy.advice = heap_copy(url->advice);
	return copy;
}

void url_hide_secret(char *text)
{
	char *end = strrchr(text, '@');
	char *start = strstr(text, "://");
	size_t login, shown, rest;

	if (end == NULL)
		return;
	start = start != NULL && start < end ? start + 3 : text;
	login = (size_t)(end - start);
	shown = login < 3 ? login : 3;
	rest = strlen(end) + 1;
	/* its length is a secret too */
	memset(start, '*', login);
	memmove(start + shown, end, rest);
	memset(start + shown + rest, '\0', login - shown);
}

void url_hide_logins(char *text)
{
	for (; (text = strstr(text, "://")) != NULL; text += 3) {
		char *start = text + 3;
		size_t length = strcspn(start, " \t\n'\"");
		char *at = memrchr(start, '@', length);
		size_t login = at != NULL ? (size_t)(at - start) : 0;
		size_t shown = login < 3 ? login : 3;

		if (login == 0 || memchr(start, ':', login) == NULL)
			continue; /* a user, at most */
		memset(start, '*', shown);
		memmove(start + shown, at, strlen(at) + 1);
	}
}

void url_hide_password(char *text, const char *password)
{
	size_t length = password != NULL ? strlen(password) : 0;
	size_t shown = length < 3 ? length : 3;

	if (length == 0)
		return;
	for (; (text = strstr(text, password)) != NULL; text += shown) {
		const char *rest = text + length;

		memset(text, '*', shown);
		memmove(text + shown, rest, strlen(rest) + 1);
	}
}

static bool is_scheme(const char *text, size_t length)
{
	static const char *const schemes[] = {
		"redis",          "rediss",        "unix",
		"redis+sentinel", "redis+cluster", "local",
	};

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (strlen(schemes[i]) == length &&
		    strncmp(schemes[i], text, length) == 0)
			return true;
	return false;
}

/* "redis://", or of what goes on otherwise "redis:". */
static size_t scheme_length(const char *text)
{
	size_t length = strspn(text, LETTERS "+");

	if (strncmp(text + length, "://", 3) == 0)
		return length + 3;
	return text[length] == ':' && is_scheme(text, length) ? length + 1 : 0;
}

/* The length of the host at text, in its brackets; 0 if it is none. */
static size_t host_length(const char *text)
{
	bool v6 = *text == '[';
	size_t length = strcspn(text, v6 ? "]" : ":/?#,");

	if (length > HOST_LONGEST ||
	    strspn(text, v6 ? LETTERS DIGITS "[:.%_-" : LETTERS DIGITS "._-") <
		    length)
		return 0;
	if (v6)
		length = text[length] == ']' ? length + 1 : 0;
	return length;
}

/* The host in what is behind a scheme; NULL if an '@' may be within a secret. */
static const char *find_host(const char *text)
{
	const char *at = strrchr(text, '@');

	if (at == NULL)
		return text;
	return text + strcspn(text, "/?#") < at ? NULL : at + 1;
}

static size_t path_length(const char *text)
{
	size_t length = strcspn(text, "?");

	return *text != '/' || length > HOST_LONGEST ||
			       strspn(text, LETTERS DIGITS "/._-+~") < length
		       ? 0
		       : length;
}

/* The host, or the path, behind a scheme; NULL if there is none to be quoted. */
static const char *find_quoted(const char *text, size_t scheme, size_t *length)
{
	const char *rest = text + scheme, *host;

	if (strncmp(text, "unix://", 7) == 0) {
		*length = path_length(rest);
		return rest;
	}
	if (strncmp(text, "local:", 6) == 0 || rest[-1] != '/')
		return NULL;
	host = find_host(rest);
	if (host != NULL)
		*length = host_length(host);
	return host;
}

const char *url_quote(const char *text, char shown[URL_QUOTED])
{
	size_t scheme = scheme_length(text), length = 0;
	const char *host = NULL;
	bool whole;

	if (scheme > HOST_LONGEST)
		scheme = 0;
	if (scheme > 0)
		host = find_quoted(text, scheme, &length);
	whole = host == NULL ? text[scheme] == '\0'
			     : host == text + scheme && host[length] == '\0';
	snprintf(shown, URL_QUOTED, "%.*s%.*s%s", (int)scheme, text,
		 (int)length, host != NULL ? host : "", whole ? "" : "...");
	return shown;
}

const char *url_quote_any(const char *text, char shown[URL_QUOTED])
{
	if (strstr(text, "://") != NULL)
		return url_quote(text, shown);
	snprintf(shown, URL_QUOTED, "%.*s%s", QUOTED_LONGEST, text,
		 strlen(text) > QUOTED_LONGEST ? "..." : "");
	return shown;
}

static int refuse(struct error *error, const char *text, const char *why)
{
	char shown[URL_QUOTED];

	if (scheme_length(text) > 0)
		error_set(error, EXIT_USAGE, "server '%s': %s",
			  url_quote(text, shown), why);
	else
		error_set(error, EXIT_USAGE, "server: %s", why);
	return -1;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes %XX in place; -1 for a broken one and for %00. */
static int percent_decode(char *text)
{
	char *to = text;

	for (; *text; text++) {
		if (*text != '%') {
			*to++ = *text;
			continue;
		}
		if (hex_value(text[1]) < 0 || hex_value(text[2]) < 0)
			return -1;
		*to = (char)(hex_value(text[1]) << 4 | hex_value(text[2]));
		if (*to++ == '\0')
			return -1;
		text += 2;
	}
	*to = '\0';
	return 0;
}

/* Cuts "user:password@" off *rest. NULL, or what is wrong. */
static const char *parse_login(struct url *url, char **rest)
{
	char *at = strrchr(*rest, '@');
	char *user = *rest, *password;

	if (at == NULL)
		return NULL;
	*at = '\0';
	*rest = at + 1;
	password = strchr(user, ':');
	if (password != NULL)
		*password++ = '\0';
	if (strpbrk(user, "/?#") != NULL)
		return "a user can contain '/', '?' and '#' only as %2F, %3F "
		       "and %23";
	if (percent_decode(user) < 0 ||
	    (password != NULL && percent_decode(password) < 0))
		return "a broken percent-escape in the login";
	if (*user != '\0')
		url->user = heap_copy(user);
	if (password != NULL) {
		url->password = heap_copy(password);
		explicit_bzero(password, strlen(password));
	}
	if (*user == '\0' && (password == NULL || *url->password == '\0'))
		return "an empty login before '@'";
	return NULL;
}

static const char *parse_db(struct url *url, const char *text)
{
	long db = place_number(text, 65535);

	if (db < 0)
		return "the database is not a number from 0 to 65535";
	url->db = (uint32_t)db;
	return NULL;
}

static const char *parse_tcp(struct url *url, char *rest)
{
	const char *wrong;
	char *db;

	url->kind = URL_TCP;
	url->port = DEFAULT_PORT;
	wrong = parse_login(url, &rest);
	if (wrong != NULL)
		return wrong;
	if (strchr(rest, ';') != NULL)
		return "commas stand between servers, not ';'";
	if (strchr(rest, '?') != NULL)
		return "'?' is for unix:// only: a database is "
		       "redis://host:port/N";
	if (rest[0] == '/' && isalpha((unsigned char)rest[1]))
		return "a socket is unix:///path";
	db = strchr(rest, '/');
	if (db != NULL)
		*db++ = '\0';
	wrong = place_parse(url, rest);
	if (wrong == NULL && db != NULL && *db != '\0')
		wrong = parse_db(url, db);
	return wrong;
}

static const char *parse_unix(struct url *url, char *rest)
{
	const char *wrong;
	char *query;

	url->kind = URL_UNIX;
	if (*rest != '/') {
		wrong = parse_login(url, &rest);
		if (wrong != NULL)
			return wrong;
	}
	query = strchr(rest, '?');
	if (query != NULL)
		*query++ = '\0';
	if (*rest != '/')
		return "a socket's path starts with '/': unix:///run/redis.sock";
	if (strchr(rest, ':') != NULL &&
	    strstr(strchr(rest, ':'), "@/") != NULL)
		return "a login goes before the path: "
		       "unix://user:password@/path";
	if (strlen(rest) >= URL_PATH_SIZE)
		return "a socket's path can have 107 bytes at most";
	url->path = heap_copy(rest);
	if (query == NULL)
		return NULL;
	if (strncmp(query, "db=", 3) != 0)
		return "only ?db=N can follow a socket's path";
	return parse_db(url, query + 3);
}

/* Hosts that know where the server is, and nothing behind them. */
static const char *parse_seeds(struct url *url, char *rest, uint16_t port)
{
	url->seeds = heap_get(SEEDS_MAX, sizeof(*url->seeds));
	for (char *text; (text = strsep(&rest, ",")) != NULL;) {
		struct url *seed = &url->seeds[url->seed_count];
		struct buffer name = {0};
		const char *wrong;

		if (url->seed_count == SEEDS_MAX)
			return "it takes 8 hosts at most";
		seed->port = port;
		wrong = place_parse(seed, text);
		if (wrong != NULL) {
			url_release(seed);
			return wrong;
		}
		place_print(&name, seed);
		seed->name = name.data;
		for (size_t i = 0; i < url->seed_count; i++)
			if (strcmp(url->seeds[i].name, seed->name) == 0)
				wrong = "a host is named twice";
		url->seed_count++;
		if (wrong != NULL)
			return wrong;
	}
	return NULL;
}

static const char *parse_sentinel(struct url *url, char *rest)
{
	const char *wrong;
	char *name, *db;

	url->kind = URL_SENTINEL;
	wrong = parse_login(url, &rest);
	if (wrong != NULL)
		return wrong;
	name = strchr(rest, '/');
	if (name == NULL)
		return "the master's name is missing: " SENTINEL
		       "host:port/name";
	*name++ = '\0';
	db = strchr(name, '/');
	if (db != NULL)
		*db++ = '\0';
	wrong = parse_seeds(url, rest, SENTINEL_PORT);
	if (wrong != NULL)
		return wrong;
	if (place_check_host(name, "._-") != NULL)
		return "a master's name has only letters, digits, '.', '-' "
		       "and '_'";
	url->master = heap_copy(name);
	return db != NULL && *db != '\0' ? parse_db(url, db) : NULL;
}

static const char *parse_cluster(struct url *url, char *rest)
{
	const char *wrong;
	char *slash;

	url->kind = URL_CLUSTER;
	wrong = parse_login(url, &rest);
	if (wrong != NULL)
		return wrong;
	slash = strchr(rest, '/');
	if (slash != NULL && slash[1] != '\0')
		return "a cluster has no databases and no path";
	if (slash != NULL)
		*slash = '\0';
	return parse_seeds(url, rest, DEFAULT_PORT);
}

static char *make_name(const struct url *url)
{
	struct buffer name = {0};

	switch (url->kind) {
	case URL_SENTINEL:
	case URL_CLUSTER:
		buffer_print(&name, "%s",
			     url->kind == URL_CLUSTER ? CLUSTER : SENTINEL);
		for (size_t i = 0; i < url->seed_count; i++)
			buffer_print(&name, i > 0 ? ",%s" : "%s",
				     url->seeds[i].name);
		if (url->master != NULL)
			buffer_print(&name, "/%s", url->master);
		if (url->db != 0)
			buffer_print(&name, "/%u", url->db);
		break;
	case URL_TCP:
		buffer_print(&name, url->tls ? "rediss://" : "redis://");
		place_print(&name, url);
		if (url->db != 0)
			buffer_print(&name, "/%u", url->db);
		break;
	case URL_UNIX:
		buffer_print(&name, "unix://%s", url->path);
		if (url->db != 0)
			buffer_print(&name, "?db=%u", url->db);
		break;
	case URL_LOCAL:
		buffer_print(&name, "local:");
		break;
	}
	return name.data;
}

static const char *parse_copy(struct url *url, char *copy)
{
	if (strncmp(copy, "redis://", 8) == 0)
		return parse_tcp(url, copy + 8);
	if (strncmp(copy, "rediss://", 9) == 0) {
		url->tls = true;
		return parse_tcp(url, copy + 9);
	}
	if (strncmp(copy, "unix://", 7) == 0)
		return parse_unix(url, copy + 7);
	if (strncmp(copy, SENTINEL, strlen(SENTINEL)) == 0)
		return parse_sentinel(url, copy + strlen(SENTINEL));
	if (strncmp(copy, CLUSTER, strlen(CLUSTER)) == 0)
		return parse_cluster(url, copy + strlen(CLUSTER));
	if (strcmp(copy, "local:") == 0) {
		url->kind = URL_LOCAL;
		return NULL;
	}
	return "a URL is redis://host:port, rediss://host:port (TLS), "
	       "unix:///path, " SENTINEL "host:port/name, " CLUSTER
	       "host:port or local:";
}

static bool has_hosts(const char *text)
{
	return strncmp(text, SENTINEL, strlen(SENTINEL)) == 0 ||
	       strncmp(text, CLUSTER, strlen(CLUSTER)) == 0;
}

static bool begins_url(const char *text)
{
	size_t scheme = strspn(text, "abcdefghijklmnopqrstuvwxyz+");

	return strncmp(text + scheme, "://", 3) == 0 ||
	       strcmp(text, "local:") == 0 || strncmp(text, "local:,", 7) == 0;
}

char *url_separate(char **list)
{
	char *first = *list, *comma = first;

	if (first == NULL || !has_hosts(first))
		return strsep(list, ",");
	do
		comma = strchr(comma + 1, ',');
	while (comma != NULL && !begins_url(comma + 1));
	if (comma != NULL)
		*comma++ = '\0';
	*list = comma;
	return first;
}

bool url_is_login_cut(const char *rest)
{
	while (rest != NULL && !begins_url(rest)) {
		size_t length = strcspn(rest, ",");

		if (memchr(rest, '@', length) != NULL)
			return true;
		rest = rest[length] == ',' ? rest + length + 1 : NULL;
	}
	return false;
}

/* As other programs have it: where it stands, it would be taken for a path, or
 * what is before an '@' in it for a login. */
static bool has_login_in_query(const char *text)
{
	const char *query = strchr(text, '?');

	return query != NULL && (strstr(query, "password=") != NULL ||
				 strstr(query, "username=") != NULL);
}

int url_parse(struct url *url, const char *text, struct error *error)
{
	const char *wrong;
	char *copy;

	*url = (struct url){0};
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return refuse(error, text,
				      "a URL cannot contain blanks: commas "
				      "stand between servers");
	if (*text == '"' || *text == '\'')
		return refuse(error, text, "a URL stands without quotes here");
	if (has_login_in_query(text))
		return refuse(error, text, LOGIN_IN_QUERY);
	copy = heap_copy(text);
	wrong = parse_copy(url, copy);
	explicit_bzero(copy, strlen(text));
	free(copy);
	if (wrong != NULL) {
		url_release(url);
		return refuse(error, text, wrong);
	}
	url->name = make_name(url);
	return 0;
}
