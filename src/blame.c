#include "blame.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "discovery.h"
#include "duration.h"

#define SHOWN_LONGEST 160 /* bytes of a server's error text */
#define REPEATED ", with args beginning with:"

int blame(struct server *server, int code, bool passing, const char *format,
	  ...)
{
	const struct discovery *discovery = server->discovery;
	va_list arguments;
	int length = 0;

	/* the URL does not say where it is */
	if (discovery != NULL && discovery->found)
		length = snprintf(server->why, sizeof(server->why),
				  "%.99s: ", discovery->place.name);
	va_start(arguments, format);
	vsnprintf(server->why + length, sizeof(server->why) - (size_t)length,
		  format, arguments);
	va_end(arguments);
	server->why_code = code;
	server->why_passing = passing;
	server->why_spoken = server->why_slow = false;
	return -1;
}

/* A server may repeat what it was asked, so that a login comes back where AUTH
 * is no command, or to somebody who means no good. */
static void copy_shown(char shown[SHOWN_LONGEST + 1], const char *text,
		       const char *secret)
{
	static const char hidden[] = "***";
	size_t length = secret != NULL ? strlen(secret) : 0, used = 0;
	const char *end = strstr(text, REPEATED);

	if (end == NULL)
		end = text + strlen(text);
	while (text < end && used < SHOWN_LONGEST) {
		if (length == 0 || strncmp(text, secret, length) != 0) {
			shown[used++] = *text++;
			continue;
		}
		text += length;
		for (size_t i = 0; hidden[i] != '\0' && used < SHOWN_LONGEST;
		     i++)
			shown[used++] = hidden[i];
	}
	/* our own words may follow */
	while (used > 0 && shown[used - 1] == '.')
		used--;
	shown[used] = '\0';
}

int blame_refusal(struct server *server, struct refusal refusal)
{
	char shown[SHOWN_LONGEST + 1];

	copy_shown(shown, refusal.text, server->url.password);
	blame(server, refusal.code, refusal.passing, "%s",
	      shown[0] != '\0' ? shown : "an empty error");
	server->why_spoken = true;
	return -1;
}

int blame_unasked(struct server *server, const struct reply *reply)
{
	/* an error that nobody asked for is why it hangs up */
	if (reply->failure != NULL)
		return blame_refusal(server, reply_sort(reply->failure));
	return blame(server, EXIT_UNREACHED, true,
		     "a reply that nobody asked for");
}

void blame_reply(struct server *server, struct reply *reply)
{
	struct refusal refusal;

	if (server_is_barred(server)) {
		reply->failure = server->why;
	} else if (reply->failure != NULL) {
		refusal = reply_sort(reply->failure);
		/* a guest's login says better why it is refused */
		if (!server->login_failed || refusal.code != EXIT_REFUSED)
			blame_refusal(server, refusal);
	}
}

int blame_discovery(struct server *server)
{
	char why[DISCOVERY_WHY];
	const struct server *seed = discovery_explain(server->discovery, why);

	if (seed == NULL)
		return blame(server, EXIT_UNREACHED, true, "%s", why);
	blame(server, seed->why_code, seed->why_passing, "%s", why);
	server->why_spoken = seed->why_spoken && seed->why_code == EXIT_REFUSED;
	return -1;
}

void server_blame(struct server *server, const char *why)
{
	blame(server, EXIT_UNREACHED, true, "%s", why);
}

/* What is still on its way, to the server or from it. */
static int blame_slowness(struct server *server, int64_t waited_ms)
{
	size_t bytes = stream_backlog(&server->stream, waited_ms / 2);
	char text[DURATION_TEXT];

	duration_format(text, waited_ms);
	if (bytes > 0)
		blame(server, EXIT_UNREACHED, true,
		      "a slow link: %zu bytes were not delivered within %s",
		      bytes, text);
	else if (server->unparsed > 0 &&
		 clock_ms() - server->heard <= waited_ms / 2)
		blame(server, EXIT_UNREACHED, true,
		      "a slow link: its answer was still coming after %s",
		      text);
	else
		return -1;
	server->why_slow = true;
	return 0;
}

void server_blame_silence(struct server *server, int64_t waited_ms)
{
	static const char *const doing[] = {
		[STREAM_DOWN] = "no connection",
		[STREAM_RESOLVING] = "its name is not resolved",
		[STREAM_CONNECTING] = "no connection",
		[STREAM_PAUSING] = "its backlog of connections is full",
		[STREAM_HANDSHAKE] = "no TLS handshake (is it redis://?)",
		[STREAM_UP] = "no answer",
	};
	char text[DURATION_TEXT];

	/* it has said why, whether it is to be asked again or has been */
	if (server->again.at != deadline_never().at ||
	    (server->why_spoken && server->why[0] != '\0'))
		return;
	if (server->discovery != NULL && server->discovery->seeking) {
		blame_discovery(server);
		return;
	}
	if (server_is_up(server) && blame_slowness(server, waited_ms) == 0)
		return;
	blame(server, EXIT_UNREACHED, true, "%s within %s",
	      doing[server->stream.state], duration_format(text, waited_ms));
}
