#include "net/endpoint.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"

#define HOST_SIZE 254 /* bytes, with the NUL */

static const char *parse_port(struct endpoint *endpoint, const char *text)
{
	int64_t port;

	if (number_parse(text, 1, 65535, &port) < 0)
		return "the port is not a number from 1 to 65535";
	endpoint->port = (uint16_t)port;
	return NULL;
}

const char *endpoint_check_host(const char *text, const char *signs)
{
	if (*text == '\0')
		return "the host is missing";
	for (const char *c = text; *c; c++)
		if (!isalnum((unsigned char)*c) && strchr(signs, *c) == NULL)
			return "a host name cannot contain that";
	return strlen(text) >= HOST_SIZE ? "the host name is too long" : NULL;
}

/* "%25" in front of a zone is RFC 6874's way; alone it is zone 25. */
static void unescape_zone(char *host)
{
	char *zone = strchr(host, '%');

	if (zone != NULL && strncmp(zone, "%25", 3) == 0 && zone[3] != '\0')
		memmove(zone + 1, zone + 3, strlen(zone + 3) + 1);
}

const char *endpoint_parse(struct endpoint *endpoint, char *text)
{
	const char *wrong;
	const char *letters = "._-";
	char *port = NULL, *end;

	if (*text == '[') {
		letters = ".:%_-";
		end = strchr(++text, ']');
		if (end == NULL)
			return "a '[' without its ']'";
		*end++ = '\0';
		unescape_zone(text);
		if (*end != '\0' && *end != ':')
			return "trailing text after ']'";
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
	wrong = endpoint_check_host(text, letters);
	if (wrong != NULL)
		return wrong;
	endpoint->host = xstrdup(text);
	return port != NULL ? parse_port(endpoint, port) : NULL;
}

int endpoint_set(struct endpoint *endpoint, const char *host, const char *port)
{
	endpoint_release(endpoint);
	if (endpoint_check_host(host, ".:_-") != NULL ||
	    parse_port(endpoint, port) != NULL)
		return -1;
	endpoint->host = xstrdup(host);
	return 0;
}

int endpoint_read(struct endpoint *endpoint, const char *text, const char *host)
{
	const char *colon = strrchr(text, ':');
	char own[HOST_SIZE];

	if (colon == NULL || colon - text >= HOST_SIZE) {
		endpoint_release(endpoint);
		return -1;
	}
	snprintf(own, sizeof(own), "%.*s", (int)(colon - text), text);
	return endpoint_set(endpoint, own[0] != '\0' ? own : host, colon + 1);
}

const char *endpoint_format(char text[ENDPOINT_TEXT],
			    const struct endpoint *endpoint)
{
	bool v6 = strchr(endpoint->host, ':') != NULL;

	snprintf(text, ENDPOINT_TEXT, v6 ? "[%s]:%u" : "%s:%u", endpoint->host,
		 endpoint->port);
	return text;
}

bool endpoint_is_same(const struct endpoint *one, const struct endpoint *other)
{
	return one->host != NULL && other->host != NULL &&
	       one->port == other->port &&
	       strcasecmp(one->host, other->host) == 0;
}

bool endpoint_is_address(const struct endpoint *endpoint)
{
	const char *host = endpoint->host;

	return host != NULL && (strchr(host, ':') != NULL ||
				strspn(host, "0123456789.") == strlen(host));
}

struct endpoint endpoint_copy(const struct endpoint *endpoint)
{
	return (struct endpoint){
		.host = xstrdup(endpoint->host),
		.port = endpoint->port,
		.path = xstrdup(endpoint->path),
	};
}

void endpoint_release(struct endpoint *endpoint)
{
	free(endpoint->host);
	free(endpoint->path);
	*endpoint = (struct endpoint){0};
}
