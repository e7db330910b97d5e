#include "url.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heap.h"
#include "output.h"

#define DEFAULT_PORT 6379
#define QUOTED_LONGEST 200

void url_release(struct url *url)
{
	if (url->password != NULL)
		explicit_bzero(url->password, strlen(url->password));
	free(url->user);
	free(url->password);
	free(url->host);
	free(url->path);
	free(url->name);
	*url = (struct url){0};
}

struct url url_copy(const struct url *url)
{
	struct url copy = *url;

	copy.user = heap_copy(url->user);
	copy.password = heap_copy(url->password);
	copy.host = heap_copy(url->host);
	copy.path = heap_copy(url->path);
	copy.name = heap_copy(url->name);
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

/* Whether what stands behind a ':' could be a port, and so be shown. */
static bool is_port(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits > 0 && digits <= 6 &&
	       (text[digits] == '\0' || text[digits] == '/');
}

/* A URL without '@' may still hold a password: its host was forgotten. */
static void hide_misplaced_secret(char *text)
{
	char *start = strstr(text, "://");
	char *secret = start != NULL ? strchr(start + 3, ':') : NULL;
	size_t length;

	if (secret == NULL || strpbrk(text, "@[") != NULL ||
	    is_port(secret + 1) || strncmp(text, "unix:", 5) == 0)
		return;
	length = strlen(++secret);
	memset(secret, '*', length);
	if (length > 3)
		secret[3] = '\0';
}

static int refuse(struct error *error, const char *text, const char *why)
{
	char *shown = heap_copy(text);

	url_hide_secret(shown);
	hide_misplaced_secret(shown);
	error_set(error, EXIT_USAGE, "server '%.*s%s': %s", QUOTED_LONGEST,
		  shown, strlen(shown) > QUOTED_LONGEST ? "..." : "", why);
	explicit_bzero(shown, strlen(shown));
	free(shown);
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

/* A number without sign or blank, at most limit; -1 otherwise. */
static long number_parse(const char *text, long limit)
{
	long value = 0;

	if (*text == '\0')
		return -1;
	for (; *text; text++) {
		if (!isdigit((unsigned char)*text))
			return -1;
		value = value * 10 + (*text - '0');
		if (value > limit)
			return -1;
	}
	return value;
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
	long db = number_parse(text, 65535);

	if (db < 0)
		return "the database is not a number from 0 to 65535";
	url->db = (uint32_t)db;
	return NULL;
}

static const char *parse_port(struct url *url, const char *text)
{
	long port = number_parse(text, 65535);

	if (port < 1)
		return "the port is not a number from 1 to 65535";
	url->port = (uint16_t)port;
	return NULL;
}

/* A "host", "host:port", "[v6]" or "[v6]:port" */
static const char *parse_host(struct url *url, char *text)
{
	const char *letters = "._-";
	char *port = NULL, *end;

	if (*text == '[') {
		letters = ".:%_-";
		end = strchr(++text, ']');
		if (end == NULL)
			return "a '[' without its ']'";
		*end++ = '\0';
		if (*end != '\0' && *end != ':')
			return "trailing text behind ']'";
		if (strchr(text, ':') == NULL)
			return "brackets are for IPv6 addresses";
		if (*end == ':')
			port = end + 1;
	} else if ((end = strchr(text, ':')) != NULL) {
		if (strchr(end + 1, ':') != NULL)
			return "an IPv6 address needs brackets: [::1]:6379";
		*end = '\0';
		port = end + 1;
	}
	if (*text == '\0')
		return "the host is missing";
	for (const char *c = text; *c; c++)
		if (!isalnum((unsigned char)*c) && strchr(letters, *c) == NULL)
			return "a host name cannot contain that";
	if (strlen(text) > 253)
		return "the host name is too long";
	url->host = heap_copy(text);
	url->port = DEFAULT_PORT;
	return port != NULL ? parse_port(url, port) : NULL;
}

static const char *parse_tcp(struct url *url, char *rest)
{
	const char *wrong;
	char *db;

	url->kind = URL_TCP;
	wrong = parse_login(url, &rest);
	if (wrong != NULL)
		return wrong;
	db = strchr(rest, '/');
	if (db != NULL)
		*db++ = '\0';
	wrong = parse_host(url, rest);
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
	if (strlen(rest) >= URL_PATH_SIZE)
		return "a socket's path can have 107 bytes at most";
	url->path = heap_copy(rest);
	if (query == NULL)
		return NULL;
	if (strncmp(query, "db=", 3) != 0)
		return "only ?db=N can follow a socket's path";
	return parse_db(url, query + 3);
}

static char *make_name(const struct url *url)
{
	struct buffer name = {0};
	int v6 = url->kind == URL_TCP && strchr(url->host, ':') != NULL;

	switch (url->kind) {
	case URL_TCP:
		buffer_print(&name, "%s://%s%s%s:%u",
			     url->tls ? "rediss" : "redis", v6 ? "[" : "",
			     url->host, v6 ? "]" : "", url->port);
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
	if (strcmp(copy, "local:") == 0) {
		url->kind = URL_LOCAL;
		return NULL;
	}
	return "a server is redis://host:port, rediss://host:port (TLS), "
	       "unix:///path or local:";
}

int url_parse(struct url *url, const char *text, struct error *error)
{
	const char *wrong;
	char *copy;

	*url = (struct url){0};
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return refuse(error, text, "blanks cannot be in a URL");
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
