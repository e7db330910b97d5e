#include "net/url.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/number.h"
#include "net/endpoint.h"

#define DEFAULT_PORT 6379
#define SENTINEL_PORT 26379
#define SENTINEL "redis+sentinel://"
#define CLUSTER "redis+cluster://"
#define OF_SENTINELS "sentinel=" /* their login, after '?' */
#define HOST_LONGEST 253
#define QUOTED_LONGEST 64 /* bytes of what is no URL in an error */
#define BLANKS " \t\n\v\f\r"
#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define LOGIN_IN_QUERY                                           \
	"a login goes before the host or the path, as in "       \
	"redis://user:password@host, or the password goes into " \
	"REDLOCK_PASSWORD; neither may follow '?'"

/* Arrays, as each pointer would be relocated at each start. */
static const struct scheme {
	char text[20];
	enum url_kind kind;
	bool tls;
} schemes[] = {
	{"redis://", URL_TCP, false},
	{"rediss://", URL_TCP, true},
	{"unix://", URL_UNIX, false},
	{SENTINEL, URL_SENTINEL, false},
	{"rediss+sentinel://", URL_SENTINEL, true},
	{CLUSTER, URL_CLUSTER, false},
	{"rediss+cluster://", URL_CLUSTER, true},
	{"local:", URL_LOCAL, false},
};

#define SCHEMES (sizeof(schemes) / sizeof(schemes[0]))

/* The scheme that text begins with, or NULL. */
static const struct scheme *find_scheme(const char *text)
{
	for (size_t i = 0; i < SCHEMES; i++)
		if (strncmp(text, schemes[i].text, strlen(schemes[i].text)) ==
		    0)
			return &schemes[i];
	return NULL;
}

static const char *scheme_of(const struct url *url)
{
	size_t i = 0;

	while (schemes[i].kind != url->kind || schemes[i].tls != url->tls)
		i++;
	return schemes[i].text;
}

static void release_secret(char *secret)
{
	if (secret != NULL)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

void url_release(struct url *url)
{
	release_secret(url->password);
	release_secret(url->seed_password);
	free(url->user);
	free(url->seed_user);
	endpoint_release(&url->at);
	for (size_t i = 0; i < url->seed_count; i++)
		endpoint_release(&url->seeds[i]);
	free(url->seeds);
	free(url->master);
	free(url->name);
	free(url->advice);
	free(url->seed_advice);
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

static bool have_same_seed(const struct url *one, const struct url *other)
{
	for (size_t i = 0; i < one->seed_count; i++)
		for (size_t k = 0; k < other->seed_count; k++)
			if (one->seeds[i].port == other->seeds[k].port &&
			    is_same_host(one->seeds[i].host,
					 other->seeds[k].host))
				return true;
	return false;
}

bool url_is_same(const struct url *one, const struct url *other)
{
	if (one->kind != other->kind)
		return false;
	switch (one->kind) {
	case URL_TCP:
		return one->at.port == other->at.port &&
		       is_same_host(one->at.host, other->at.host);
	case URL_UNIX:
		return is_same_path(one->at.path, other->at.path);
	case URL_SENTINEL:
		return strcmp(one->master, other->master) == 0 &&
		       have_same_seed(one, other);
	case URL_CLUSTER:
		return have_same_seed(one, other);
	default:
		return true;
	}
}

struct url url_copy(const struct url *url)
{
	struct url copy = *url;

	copy.user = xstrdup(url->user);
	copy.password = xstrdup(url->password);
	copy.at = endpoint_copy(&url->at);
	if (url->seeds != NULL)
		copy.seeds = xcalloc(url->seed_count, sizeof(*copy.seeds));
	for (size_t i = 0; url->seeds != NULL && i < url->seed_count; i++)
		copy.seeds[i] = endpoint_copy(&url->seeds[i]);
	copy.master = xstrdup(url->master);
	copy.seed_user = xstrdup(url->seed_user);
	copy.seed_password = xstrdup(url->seed_password);
	copy.name = xstrdup(url->name);
	copy.advice = xstrdup(url->advice);
	copy.seed_advice = xstrdup(url->seed_advice);
	return copy;
}

struct url url_seed(const struct url *url, size_t seed)
{
	bool own = url->seed_password != NULL;
	char name[ENDPOINT_TEXT];

	return (struct url){
		.tls = url->tls,
		.user = xstrdup(own ? url->seed_user : url->user),
		.password = xstrdup(own ? url->seed_password : url->password),
		.at = endpoint_copy(&url->seeds[seed]),
		.name = xstrdup(endpoint_format(name, &url->seeds[seed])),
	};
}

/* What stands between them becomes "***", as its length is a secret, too. */
static void hide(char *start, const char *end)
{
	size_t length = (size_t)(end - start);
	size_t shown = length < 3 ? length : 3;
	size_t rest = strlen(end) + 1;

	memset(start, '*', length);
	memmove(start + shown, end, rest);
	memset(start + shown + rest, '\0', length - shown);
}

/* The login of Sentinels in text, after '?' or '&'; NULL if there is none. */
static char *find_seed_login(const char *text)
{
	const char *at = text;

	while ((at = strstr(at, OF_SENTINELS)) != NULL) {
		at += strlen(OF_SENTINELS);
		if (at - text > (int)strlen(OF_SENTINELS) &&
		    strchr("?&", at[-1 - (int)strlen(OF_SENTINELS)]) != NULL)
			return (char *)at;
	}
	return NULL;
}

void url_hide_secret(char *text)
{
	char *seed = find_seed_login(text);
	char *end, *start;

	/* whatever follows it may be a part of it */
	if (seed != NULL)
		hide(seed, seed + strlen(seed));
	end = strrchr(text, '@');
	start = strstr(text, "://");
	if (end != NULL)
		hide(start != NULL && start < end ? start + 3 : text, end);
}

void url_hide_logins(char *text)
{
	for (; (text = strstr(text, "://")) != NULL; text += 3) {
		char *start = text + 3;
		char *end = start + strcspn(start, BLANKS);
		char *seed = find_seed_login(start), *at;

		if (seed != NULL && seed < end) {
			while (end > seed && strchr("'\"", end[-1]) != NULL)
				end--;
			hide(seed, end);
			end = seed;
		}
		/* a password may have quotes, and what should be %XX in it */
		at = memrchr(start, '@', (size_t)(end - start));
		/* without a ':' it is a user alone, which a path may follow */
		if (at != NULL &&
		    memchr(start, ':', (size_t)(at - start)) == NULL)
			at = memrchr(start, '@', strcspn(start, BLANKS "/?#"));
		if (at != NULL)
			hide(start, at);
	}
}

void url_hide_password(char *text, const char *password)
{
	size_t length = password != NULL ? strlen(password) : 0;

	if (length == 0)
		return;
	for (; (text = strstr(text, password)) != NULL;
	     text += length < 3 ? length : 3)
		hide(text, text + length);
}

static bool is_scheme(const char *text, size_t length)
{
	for (size_t i = 0; i < SCHEMES; i++)
		if (strcspn(schemes[i].text, ":") == length &&
		    strncmp(schemes[i].text, text, length) == 0)
			return true;
	return false;
}

bool url_is_meant(const char *text)
{
	return strncmp(text + strspn(text, LETTERS "+"), "://", 3) == 0 &&
	       is_scheme(text, strcspn(text, "+:"));
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

/* The host in what follows a scheme; NULL if an '@' may be within a secret. */
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

/* The host, or the path, after a scheme; NULL if there is none to be quoted. */
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
	int high, low;

	for (; *text; text++) {
		if (*text != '%') {
			*to++ = *text;
			continue;
		}
		high = hex_value(text[1]);
		low = high < 0 ? -1 : hex_value(text[2]);
		if (low < 0)
			return -1;
		*to = (char)(high * 16 + low);
		if (*to++ == '\0')
			return -1;
		text += 2;
	}
	*to = '\0';
	return 0;
}

/* "user:password", ":password" or "user", which is changed. NULL, or what is
 * wrong; what was found until then is the caller's, too. */
static const char *read_login(char *text, char **user, char **password)
{
	char *secret = strchr(text, ':');

	if (secret != NULL)
		*secret++ = '\0';
	if (strpbrk(text, "/?#") != NULL)
		return "a user can contain '/', '?' and '#' only as %2F, %3F "
		       "and %23";
	if (percent_decode(text) < 0 ||
	    (secret != NULL && percent_decode(secret) < 0))
		return "a broken percent-escape in the login";
	if (*text != '\0')
		*user = xstrdup(text);
	if (secret != NULL) {
		*password = xstrdup(secret);
		explicit_bzero(secret, strlen(secret));
	}
	return NULL;
}

/* Cuts "user:password@" off *rest. NULL, or what is wrong. */
static const char *parse_login(struct url *url, char **rest)
{
	char *at = strrchr(*rest, '@');
	const char *wrong;

	if (at == NULL)
		return NULL;
	*at = '\0';
	/* after the first host, these would be lost: h1,user:password@h2 */
	if (strchr(*rest, ',') != NULL)
		return "the login goes before the first host, once, and a "
		       "comma in it is %2C";
	wrong = read_login(*rest, &url->user, &url->password);
	*rest = at + 1;
	if (wrong == NULL && url->user == NULL &&
	    (url->password == NULL || *url->password == '\0'))
		wrong = "an empty login before '@'";
	return wrong;
}

static const char *parse_db(struct url *url, const char *text)
{
	int64_t db;

	if (number_parse(text, 0, 65535, &db) < 0)
		return "the database is not a number from 0 to 65535";
	url->db = (uint32_t)db;
	return NULL;
}

static const char by_commas[] = "separate servers by commas, not ';'";

static const char *parse_tcp(struct url *url, char *rest)
{
	const char *wrong;
	char *db;

	url->at.port = DEFAULT_PORT;
	wrong = parse_login(url, &rest);
	if (wrong != NULL)
		return wrong;
	if (strchr(rest, ';') != NULL)
		return by_commas;
	if (strchr(rest, '?') != NULL)
		return "'?' cannot follow this: a database is "
		       "redis://host:port/N";
	if (rest[0] == '/' && isalpha((unsigned char)rest[1]))
		return "a socket is unix:///path";
	db = strchr(rest, '/');
	if (db != NULL)
		*db++ = '\0';
	wrong = endpoint_parse(&url->at, rest);
	if (wrong == NULL && db != NULL && *db != '\0')
		wrong = parse_db(url, db);
	return wrong;
}

static const char *parse_unix(struct url *url, char *rest)
{
	const char *wrong, *next;
	char *query;

	if (*rest != '/') {
		wrong = parse_login(url, &rest);
		if (wrong != NULL)
			return wrong;
	}
	next = strchr(rest, ';');
	if (next != NULL && strstr(next, "://") != NULL)
		return by_commas;
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
	url->at.path = xstrdup(rest);
	if (query == NULL)
		return NULL;
	if (strncmp(query, "db=", 3) != 0)
		return "only ?db=N can follow a socket's path";
	return parse_db(url, query + 3);
}

/* Hosts that know the server's address, and nothing after them. */
static const char *parse_seeds(struct url *url, char *rest, uint16_t port)
{
	url->seeds = xcalloc(SEEDS_MAX, sizeof(*url->seeds));
	for (char *text; (text = strsep(&rest, ",")) != NULL;) {
		struct endpoint *seed = &url->seeds[url->seed_count];
		const char *wrong;

		if (url->seed_count == SEEDS_MAX)
			return "more than 8 hosts";
		seed->port = port;
		wrong = endpoint_parse(seed, text);
		for (size_t i = 0; wrong == NULL && i < url->seed_count; i++)
			if (endpoint_is_same(&url->seeds[i], seed))
				wrong = "a host is named twice";
		url->seed_count++;
		if (wrong != NULL)
			return wrong;
	}
	return NULL;
}

static const char *parse_seed_login(struct url *url, char *text)
{
	const char *wrong;

	/* twice: a part of a password, maybe, whose '&' was not escaped */
	if (url->seed_user != NULL || url->seed_password != NULL)
		return "'sentinel=' is given twice";
	wrong = read_login(text, &url->seed_user, &url->seed_password);
	if (wrong == NULL &&
	    (url->seed_password == NULL ? url->seed_user == NULL
					: *url->seed_password == '\0'))
		wrong = "'sentinel=' needs user:password, :password or user";
	return wrong;
}

/* "db=N" and "sentinel=login", with '&' between them. db: it is set already. */
static const char *parse_query(struct url *url, char *query, bool db)
{
	const char *wrong = NULL;
	char *text;

	while (wrong == NULL && (text = strsep(&query, "&")) != NULL) {
		if (strncmp(text, "db=", 3) == 0) {
			wrong = db ? "the database is given twice"
				   : parse_db(url, text + 3);
			db = true;
		} else if (strncmp(text, OF_SENTINELS, strlen(OF_SENTINELS)) ==
			   0) {
			wrong = parse_seed_login(url,
						 text + strlen(OF_SENTINELS));
		} else {
			wrong = "only db=N and sentinel=user:password can "
				"follow '?', with '&' between them";
		}
	}
	return wrong;
}

static const char *parse_sentinel(struct url *url, char *rest)
{
	const char *wrong, *seed_login = find_seed_login(rest);
	char *name, *db, *query;

	if (seed_login != NULL && strchr(seed_login, '@') != NULL)
		return "an '@' after 'sentinel=' is %40";
	wrong = parse_login(url, &rest);
	if (wrong != NULL)
		return wrong;
	query = strchr(rest, '?');
	if (query != NULL)
		*query++ = '\0';
	name = strchr(rest, '/');
	if (name == NULL)
		return url->tls ? "the master's name is missing: "
				  "rediss+sentinel://host:port/name"
				: "the master's name is missing: " SENTINEL
				  "host:port/name";
	*name++ = '\0';
	db = strchr(name, '/');
	if (db != NULL)
		*db++ = '\0';
	wrong = parse_seeds(url, rest, SENTINEL_PORT);
	if (wrong != NULL)
		return wrong;
	if (endpoint_check_host(name, "._-") != NULL)
		return "a master's name has only letters, digits, '.', '-' "
		       "and '_'";
	url->master = xstrdup(name);
	if (db != NULL && *db != '\0')
		wrong = parse_db(url, db);
	if (wrong == NULL && query != NULL)
		wrong = parse_query(url, query, db != NULL && *db != '\0');
	return wrong;
}

static const char *parse_cluster(struct url *url, char *rest)
{
	const char *wrong;
	char *slash;

	wrong = parse_login(url, &rest);
	if (wrong != NULL)
		return wrong;
	slash = strchr(rest, '/');
	if ((slash != NULL && slash[1] != '\0') || strchr(rest, '?') != NULL)
		return "a cluster has no databases and no path";
	if (slash != NULL)
		*slash = '\0';
	return parse_seeds(url, rest, DEFAULT_PORT);
}

static char *make_name(const struct url *url)
{
	struct buffer name = {0};
	char text[ENDPOINT_TEXT];

	buffer_print(&name, "%s", scheme_of(url));
	switch (url->kind) {
	case URL_SENTINEL:
	case URL_CLUSTER:
		for (size_t i = 0; i < url->seed_count; i++)
			buffer_print(&name, i > 0 ? ",%s" : "%s",
				     endpoint_format(text, &url->seeds[i]));
		if (url->master != NULL)
			buffer_print(&name, "/%s", url->master);
		if (url->db != 0)
			buffer_print(&name, "/%u", url->db);
		break;
	case URL_TCP:
		buffer_print(&name, "%s", endpoint_format(text, &url->at));
		if (url->db != 0)
			buffer_print(&name, "/%u", url->db);
		break;
	case URL_UNIX:
		buffer_print(&name, "%s", url->at.path);
		if (url->db != 0)
			buffer_print(&name, "?db=%u", url->db);
		break;
	case URL_LOCAL:
		break;
	}
	return name.data;
}

static const char *parse_copy(struct url *url, char *copy)
{
	const struct scheme *scheme = find_scheme(copy);
	char *rest;

	if (scheme == NULL ||
	    (scheme->kind == URL_LOCAL && strcmp(copy, scheme->text) != 0))
		return "a URL is redis://host:port, rediss://host:port (TLS), "
		       "unix:///path, " SENTINEL "host:port/name, " CLUSTER
		       "host:port (both also as rediss+...) or local:";
	url->kind = scheme->kind;
	url->tls = scheme->tls;
	rest = copy + strlen(scheme->text);
	switch (scheme->kind) {
	case URL_TCP:
		return parse_tcp(url, rest);
	case URL_UNIX:
		return parse_unix(url, rest);
	case URL_SENTINEL:
		return parse_sentinel(url, rest);
	case URL_CLUSTER:
		return parse_cluster(url, rest);
	default:
		return NULL;
	}
}

static bool has_hosts(const char *text)
{
	const struct scheme *scheme = find_scheme(text);

	return scheme != NULL &&
	       (scheme->kind == URL_SENTINEL || scheme->kind == URL_CLUSTER);
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

/* As other programs write it: here it would be taken for a path, or what stands
 * before an '@' in it for a login. */
static bool has_login_in_query(const char *text)
{
	const char *query = strchr(text, '?');

	return query != NULL && (strstr(query, "?password=") != NULL ||
				 strstr(query, "&password=") != NULL ||
				 strstr(query, "?username=") != NULL ||
				 strstr(query, "&username=") != NULL);
}

int url_parse(struct url *url, const char *text, struct error *error)
{
	const char *wrong;
	char *copy;

	*url = (struct url){0};
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return refuse(
				error, text,
				"a URL cannot contain blanks: separate servers by commas");
	if (*text == '"' || *text == '\'')
		return refuse(error, text, "write the URL without quotes here");
	if (has_login_in_query(text))
		return refuse(error, text, LOGIN_IN_QUERY);
	copy = xstrdup(text);
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
