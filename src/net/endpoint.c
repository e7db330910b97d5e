#include "net/endpoint.h"

#include <ctype.h>
#include <string.h>

#include "base/alloc.h"

long place_number(const char *text, long limit)
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

static const char *parse_port(struct url *url, const char *text)
{
	long port = place_number(text, 65535);

	if (port < 1)
		return "the port is not a number from 1 to 65535";
	url->port = (uint16_t)port;
	return NULL;
}

const char *place_check_host(const char *text, const char *signs)
{
	if (*text == '\0')
		return "the host is missing";
	for (const char *c = text; *c; c++)
		if (!isalnum((unsigned char)*c) && strchr(signs, *c) == NULL)
			return "a host name cannot contain that";
	return strlen(text) > 253 ? "the host name is too long" : NULL;
}

/* "%25" in front of a zone is RFC 6874's way; alone it is zone 25. */
static void unescape_zone(char *host)
{
	char *zone = strchr(host, '%');

	if (zone != NULL && strncmp(zone, "%25", 3) == 0 && zone[3] != '\0')
		memmove(zone + 1, zone + 3, strlen(zone + 3) + 1);
}

const char *place_parse(struct url *url, char *text)
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
	wrong = place_check_host(text, letters);
	if (wrong != NULL)
		return wrong;
	url->host = heap_copy(text);
	return port != NULL ? parse_port(url, port) : NULL;
}

void place_print(struct buffer *name, const struct url *url)
{
	bool v6 = strchr(url->host, ':') != NULL;

	buffer_print(name, v6 ? "[%s]:%u" : "%s:%u", url->host, url->port);
}

int place_set(struct url *url, const char *host, const char *port)
{
	struct buffer name = {0};

	url_release(url);
	if (place_check_host(host, ".:_-") != NULL ||
	    parse_port(url, port) != NULL)
		return -1;
	url->host = heap_copy(host);
	place_print(&name, url);
	url->name = name.data;
	return 0;
}
