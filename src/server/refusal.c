#include "server/refusal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "server/discovery.h"
#include "base/duration.h"

#define SHOWN_LONGEST 160 /* bytes of a server's error text */

int blame(struct server *server, enum cause cause, const char *format, ...)
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
	server->cause = cause;
	return -1;
}

/* A server may repeat what it was asked, so that a login comes back where AUTH
 * is no command, or to somebody who means no good. */
static void copy_shown(char shown[SHOWN_LONGEST + 1], struct refusal refusal,
		       const char *secret)
{
	static const char hidden[] = "***";
	size_t length = secret != NULL ? strlen(secret) : 0, used = 0;
	const char *text = refusal.text, *end = text + refusal.length;

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
	shown[used] = '\0';
}

int blame_refusal(struct server *server, struct refusal refusal)
{
	char shown[SHOWN_LONGEST + 1];
	bool whole;
	const char *words = cause_words(refusal.cause, &whole);

	copy_shown(shown, refusal, server->url.password);
	if (shown[0] == '\0')
		strlcpy(shown, "an empty error", sizeof(shown));
	if (!whole)
		return blame(server, refusal.cause, "%s", words);
	if (*words == '\0')
		return blame(server, refusal.cause, "%s", shown);
	return blame(server, refusal.cause, "%s (%s)", words, shown);
}

int blame_unasked(struct server *server, const struct reply *reply)
{
	/* an error that nobody asked for is why it hangs up */
	if (reply->failure != NULL)
		return blame_refusal(server, cause_of(reply->failure));
	return blame(server, CAUSE_NONSENSE, "a reply that nobody asked for");
}

void blame_reply(struct server *server, struct reply *reply)
{
	struct refusal refusal;

	if (server_is_barred(server)) {
		reply->failure = server->why;
	} else if (reply->failure != NULL) {
		refusal = cause_of(reply->failure);
		if (server->discovery != NULL)
			refusal.cause = cause_elsewhere(refusal.cause);
		/* a guest's login says better why it is refused */
		if (!server->login_failed ||
		    cause_code(refusal.cause) != EXIT_REFUSED)
			blame_refusal(server, refusal);
	}
}

int blame_discovery(struct server *server)
{
	char why[DISCOVERY_WHY];
	const struct server *seed = discovery_explain(server->discovery, why);

	return blame(server, seed != NULL ? seed->cause : CAUSE_NO_MAJORITY,
		     "%s", why);
}

void server_blame(struct server *server, enum cause cause, const char *why)
{
	blame(server, cause, "%s", why);
}

void server_blame_as(struct server *server, const struct server *other)
{
	strlcpy(server->why, other->why, sizeof(server->why));
	server->cause = other->cause;
}

/* The default server is named by nobody: there may be none. */
static bool is_unnamed(const struct server *server)
{
	return server->cause == CAUSE_AWAY && server_is_down(server) &&
	       strcmp(server->url.name, "redis://127.0.0.1:6379") == 0;
}

const char *server_remedy(const struct server *server)
{
	if (cause_is_login(server->cause))
		return server->url.advice != NULL ? server->url.advice : "";
	if (is_unnamed(server))
		return "start a server there, name one with -S, or use -S "
		       "local: for a private one";
	return cause_remedy(server->cause);
}

/* What is still on its way, to the server or from it. */
static int blame_slowness(struct server *server, int64_t waited_ms)
{
	size_t bytes = stream_backlog(&server->stream, waited_ms / 2);
	char text[DURATION_TEXT];

	duration_format(text, waited_ms);
	if (bytes > 0)
		blame(server, CAUSE_SLOW,
		      "a slow link: %zu bytes were not delivered within %s",
		      bytes, text);
	else if (server->unparsed > 0 &&
		 clock_ms() - server->heard <= waited_ms / 2)
		blame(server, CAUSE_SLOW,
		      "a slow link: its answer was still coming after %s",
		      text);
	else
		return -1;
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
	    (cause_is_said(server->cause) && server->why[0] != '\0'))
		return;
	if (server->discovery != NULL && server->discovery->seeking) {
		blame_discovery(server);
		return;
	}
	if (server_is_up(server) && blame_slowness(server, waited_ms) == 0)
		return;
	blame(server, CAUSE_AWAY, "%s within %s", doing[server->stream.state],
	      duration_format(text, waited_ms));
}
