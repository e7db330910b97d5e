#include "server/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis.h>

#include "server/refusal.h"
#include "server/discovery.h"
#include "server/greeting.h"
#include "base/alloc.h"

#define READ_SIZE TLS_RECORD
#define AGAIN_PAUSE 20 /* ms */
#define MOVES_MAX 3    /* that are followed for one answer */

static void disconnect(struct server *server)
{
	stream_close(&server->stream);
	if (server->reader != NULL)
		redisReaderFree(server->reader);
	server->reader = NULL;
	server->output.length = server->sent = server->unparsed = 0;
	server->heard = 0;
	server->owed_first = server->owed_count = 0;
	server->login_failed = server->complained = false;
	server->again = deadline_never();
}

static int fail(struct server *server, enum cause cause, const char *what)
{
	disconnect(server);
	return blame(server, cause, "%s", what);
}

/* Why there is no connection. */
static enum cause sort_failure(const struct server *server)
{
	if (server->stream.failure.refused)
		return CAUSE_CERTIFICATE;
	switch (server->stream.error) {
	case EMFILE:
		return CAUSE_DESCRIPTORS;
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
		return CAUSE_SYSTEM;
	case EACCES:
		return server->url.kind == URL_UNIX ? CAUSE_BARRED_SOCKET
						    : CAUSE_AWAY;
	default:
		return CAUSE_AWAY;
	}
}

static int fail_stream(struct server *server, const char *why)
{
	return fail(server, sort_failure(server), why);
}

void server_init(struct server *server, struct url *url, bool identify)
{
	memset(server, 0,
	       sizeof(*server)); /* a large one, to be made in place */
	server->url = *url;
	server->identify = identify;
	server->discovery = discovery_new(&server->url);
	server->again = deadline_never();
	stream_init(&server->stream);
	*url = (struct url){0};
}

void server_release(struct server *server)
{
	disconnect(server);
	discovery_free(server->discovery);
	buffer_release(&server->output);
	buffer_release(&server->last);
	url_release(&server->url);
}

/* --- what is asked ------------------------------------------------------ */

static void owe(struct server *server, struct owed owed)
{
	unsigned last = (server->owed_first + server->owed_count++) % OWED_MAX;

	owed.since = clock_ms();
	server->owed[last] = owed;
}

void server_put(struct server *server, struct owed owed,
		const struct argument *arguments, size_t count)
{
	resp_format(&server->output, arguments, count);
	owe(server, owed);
}

static bool is_seeking(const struct server *server)
{
	return server->discovery != NULL && server->discovery->seeking;
}

static int open_at(struct server *server, const struct url *place)
{
	const char *why;

	disconnect(server);
	if (server->discovery != NULL)
		server->stream.addresses.count = 0; /* maybe of another */
	server->identity.known = false;
	server->reader = reply_reader_new(&server->bounds);
	greeting_put(server);
	why = stream_open(&server->stream, place);
	return why != NULL ? fail_stream(server, why) : 0;
}

static int connect_start(struct server *server)
{
	struct discovery *discovery = server->discovery;

	if (discovery == NULL)
		return open_at(server, &server->url);
	discovery_start(discovery);
	if (discovery->place.host == NULL ||
	    open_at(server, &discovery->place) == 0 || discovery->seeking)
		return 0; /* a guess may fail */
	return -1;
}

/* Sends what can be sent now, from there on. */
static int send_from(struct server *server, const struct buffer *from,
		     size_t *at)
{
	while (*at < from->length) {
		ssize_t sent = stream_send(&server->stream, from->data + *at,
					   from->length - *at);

		if (sent < 0 && errno == EAGAIN)
			return 0;
		if (sent < 0 && errno == EPIPE)
			break; /* what it said before it hung up comes first */
		if (sent < 0)
			return fail_stream(server, stream_why(&server->stream));
		*at += (size_t)sent;
	}
	*at = from->length;
	return 0;
}

static int flush_output(struct server *server)
{
	if (send_from(server, &server->output, &server->sent) < 0)
		return -1;
	if (server->sent == server->output.length)
		server->output.length = server->sent = 0;
	return 0;
}

/* The last command, behind what is still to be sent; without a copy of it if
 * there is nothing. */
static int send_last(struct server *server)
{
	const struct buffer *last = &server->last;
	size_t sent = 0;

	if (server_is_up(server) && server->output.length == 0 &&
	    send_from(server, last, &sent) < 0)
		return -1;
	buffer_append(&server->output, last->data + sent, last->length - sent);
	return server_is_up(server) ? flush_output(server) : 0;
}

static int queue_last(struct server *server)
{
	server->again = deadline_never();
	if (server->owed_count > OWED_MAX - 8)
		return fail(server, CAUSE_AWAY, "it has stopped answering");
	if (server_is_down(server) && connect_start(server) < 0)
		return -1;
	if (server->stream.state == STREAM_DOWN)
		return 0; /* it is asked where it is found */
	if (server->discovery != NULL)
		discovery_check(server->discovery);
	owe(server, server->last_owed);
	return send_last(server);
}

int server_ask(struct server *server, uint64_t ticket, bool sticky,
	       const struct argument *arguments, size_t count)
{
	if (!server_has_refused(server))
		server->why[0] = '\0';
	server->last.length = 0;
	server->moves = 0;
	server->last_owed = (struct owed){OWED_ASKED, sticky, ticket};
	resp_format(&server->last, arguments, count);
	return queue_last(server);
}

int server_ask_again(struct server *server)
{
	disconnect(server);
	return queue_last(server);
}

static void give_up(struct server *server)
{
	disconnect(server);
	if (server->discovery != NULL)
		discovery_stop(server->discovery);
}

void server_cut(struct server *server)
{
	stream_reset(&server->stream);
	give_up(server);
}

void server_withdraw(struct server *server)
{
	if (!server_is_up(server))
		give_up(server);
}

bool server_owes_sticky(const struct server *server)
{
	for (unsigned i = 0; i < server->owed_count; i++)
		if (server->owed[(server->owed_first + i) % OWED_MAX].sticky)
			return true;
	return false;
}

void server_renew(struct server *server)
{
	if (!server_owes_sticky(server))
		give_up(server);
}

/* --- what comes back ---------------------------------------------------- */

/* Has the last command asked again where, or once, it can be answered. */
static int follow(struct server *server, enum moved moved)
{
	unsigned pause = AGAIN_PAUSE;

	if (moved == MOVED_AWAY) {
		disconnect(server);
		discovery_forget(server->discovery);
		/* those who know where it is may not all have heard yet */
		pause *= 2 * server->moves;
		if (server->moves++ >= MOVES_MAX)
			return -1;
	}
	server->again = deadline_in(pause);
	return 0;
}

/* Far at once where an answer takes long, near again bit by bit: a server that
 * was stopped for a while is not far for good. */
static void measure(struct server *server, int64_t since)
{
	int64_t took = clock_ms() - since + 1;

	server->distance =
		took > server->distance ? took : (took + server->distance) / 2;
}

static int dispatch(struct server *server, const redisReply *from,
		    server_reply *callback, void *context)
{
	struct owed owed = server->owed[server->owed_first];
	enum moved moved = MOVED_NOT;
	struct reply reply = {0};

	reply_flatten(&reply, from);
	if (server->listens && reply_is_message(&reply)) {
		callback(context, server, 0, &reply);
		return 0;
	}
	if (server->owed_count == 0) {
		disconnect(server);
		return blame_unasked(server, &reply);
	}
	server->owed_first = (server->owed_first + 1) % OWED_MAX;
	server->owed_count--;
	measure(server, owed.since);
	if (owed.kind != OWED_ASKED)
		return greeting_take(server, owed.kind, &reply) == 0
			       ? 0
			       : fail(server, CAUSE_NONSENSE,
				      "its INFO cannot be read");
	server->complained = false;
	if (server->discovery != NULL && reply.failure != NULL &&
	    owed.ticket == server->last_owed.ticket)
		moved = discovery_sort(reply.cause);
	blame_reply(server, &reply);
	if (moved != MOVED_NOT)
		return follow(server, moved);
	callback(context, server, owed.ticket, &reply);
	return 0;
}

/* "Protocol error, got "H" as reply type byte" and the like */
static int fail_protocol(struct server *server)
{
	char text[192];

	snprintf(text, sizeof(text), "not what a Redis server says: %s",
		 server->reader->err == REDIS_ERR_OOM ? "a reply too large"
						      : server->reader->errstr);
	return fail(server, CAUSE_NOT_REDIS, text);
}

static int parse(struct server *server, server_reply *callback, void *context)
{
	int result;

	while (server_is_up(server)) {
		void *reply = NULL;

		if (redisReaderGetReply(server->reader, &reply) != REDIS_OK)
			return fail_protocol(server);
		if (reply == NULL)
			break;
		server->unparsed = 0;
		result = dispatch(server, reply, callback, context);
		freeReplyObject(reply);
		if (result < 0)
			return -1;
	}
	if (server->unparsed > reply_longest(server->bounds.wide))
		return fail(server, CAUSE_NONSENSE, "a reply too large");
	return 0;
}

/* A port that wants TLS hangs up on whoever does not speak it. */
static bool may_want_tls(const struct server *server)
{
	return server->heard == 0 && !server->url.tls &&
	       server->url.kind != URL_UNIX && server->url.kind != URL_LOCAL;
}

static int receive(struct server *server, server_reply *callback, void *context)
{
	static char data[READ_SIZE]; /* of a stack all pages would be touched */
	ssize_t got = stream_receive(&server->stream, data, sizeof(data));

	if (got < 0 && errno == EAGAIN)
		return 0;
	if (got <= 0 && (server->complained || server_has_refused(server))) {
		/* "max number of clients reached" and such, said unasked */
		disconnect(server);
		return -1;
	}
	if ((got == 0 || errno == ECONNRESET) && may_want_tls(server))
		return fail(server, CAUSE_AWAY,
			    "it hung up at once (is it rediss://?)");
	if (got < 0)
		return fail_stream(server, stream_why(&server->stream));
	if (got == 0)
		return fail(server, CAUSE_AWAY,
			    server->unparsed > 0
				    ? "it hung up in the middle of a reply"
				    : "it hung up");
	server->unparsed += (size_t)got;
	server->heard = clock_ms();
	if (redisReaderFeed(server->reader, data, (size_t)got) != REDIS_OK)
		return fail_protocol(server);
	return parse(server, callback, context);
}

bool server_is_down(const struct server *server)
{
	return server->stream.state == STREAM_DOWN && !is_seeking(server) &&
	       server->again.at == deadline_never().at;
}

size_t server_prepare(const struct server *server, struct pollfd *polled,
		      struct deadline *until)
{
	bool output = server->sent < server->output.length;
	bool guess = server_is_up(server) && is_seeking(server);

	*polled = (struct pollfd){
		.fd = guess && !output ? -1 : server_fd(server),
		.events = POLLOUT,
	};
	if (!guess)
		polled->events = stream_events(&server->stream, output);
	*until = deadline_earlier(*until, server->again);
	*until = deadline_earlier(*until, stream_wake(&server->stream));
	if (server->discovery == NULL)
		return 1;
	return 1 + discovery_prepare(server->discovery, polled + 1, until);
}

/* What was queued until now leaves only now. */
static void begin_measuring(struct server *server)
{
	for (unsigned i = 0; i < server->owed_count; i++)
		server->owed[(server->owed_first + i) % OWED_MAX].since =
			clock_ms();
}

static int pump(struct server *server, short revents, server_reply *reply,
		void *context)
{
	if (!server_is_up(server)) {
		const char *why = stream_step(&server->stream, revents);

		if (why != NULL)
			return fail_stream(server, why);
		if (server_is_up(server))
			begin_measuring(server);
	} else if (revents != 0 && !is_seeking(server) &&
		   receive(server, reply, context) < 0) {
		return -1;
	}
	return server_is_up(server) ? flush_output(server) : 0;
}

/* Goes where the seeds say that it is, unless it was right to go there. */
static int seek(struct server *server, const struct pollfd *polled)
{
	struct discovery *discovery = server->discovery;
	bool checking = !discovery->seeking;

	switch (discovery_pump(discovery, polled)) {
	case DISCOVERY_UNDECIDED:
		return 0;
	case DISCOVERY_FAILED:
		disconnect(server);
		return blame_discovery(server);
	case DISCOVERY_CHANGED:
		if (checking && server->stream.state != STREAM_DOWN)
			return fail(server, CAUSE_AWAY,
				    "it has moved to another address");
		disconnect(server);
		break;
	case DISCOVERY_CONFIRMED:
		break;
	}
	if (checking || server->stream.state != STREAM_DOWN)
		return 0;
	if (open_at(server, &discovery->place) < 0)
		return -1;
	return queue_last(server);
}

int server_pump(struct server *server, const struct pollfd *polled,
		server_reply *reply, void *context)
{
	int result;

	if (server->discovery != NULL && discovery_is_busy(server->discovery) &&
	    seek(server, polled + 1) < 0)
		return -1;
	result = pump(server, polled->revents, reply, context);
	if (result == 0 && deadline_passed(server->again))
		result = queue_last(server);
	return is_seeking(server) ? 0 : result; /* a guess may fail */
}
