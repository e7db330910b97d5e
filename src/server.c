#include "server.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis.h>

#include "duration.h"
#include "heap.h"

#define READ_SIZE TLS_RECORD
#define SHOWN_LONGEST 160 /* bytes of a server's error text */

static int blame(struct server *server, int code, bool passing,
		 const char *format, ...) __attribute__((format(printf, 4, 5)));

static int blame(struct server *server, int code, bool passing,
		 const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(server->why, sizeof(server->why), format, arguments);
	va_end(arguments);
	server->why_code = code;
	server->why_passing = passing;
	server->why_spoken = false;
	return -1;
}

static void disconnect(struct server *server)
{
	stream_close(&server->stream);
	if (server->reader != NULL)
		redisReaderFree(server->reader);
	server->reader = NULL;
	server->output.length = server->sent = server->unparsed = 0;
	server->owed_first = server->owed_count = 0;
	server->login_failed = server->complained = false;
}

static int fail(struct server *server, const char *what)
{
	bool refused = server->stream.failure.refused;

	disconnect(server);
	return blame(server, refused ? EXIT_REFUSED : EXIT_UNREACHED, !refused,
		     "%s", what);
}

void server_init(struct server *server, struct url *url, bool identify)
{
	*server = (struct server){.url = *url, .identify = identify};
	stream_init(&server->stream);
	*url = (struct url){0};
}

void server_release(struct server *server)
{
	disconnect(server);
	buffer_release(&server->output);
	buffer_release(&server->last);
	url_release(&server->url);
}

/* --- what is asked ------------------------------------------------------ */

static void owe(struct server *server, struct owed owed)
{
	unsigned last = (server->owed_first + server->owed_count++) % OWED_MAX;

	server->owed[last] = owed;
}

static void format_command(struct buffer *to, const struct argument *arguments,
			   size_t count)
{
	const char *data[ARGUMENTS_MAX];
	size_t length[ARGUMENTS_MAX];
	char *command;
	int size;

	for (size_t i = 0; i < count; i++) {
		data[i] = arguments[i].data;
		length[i] = arguments[i].length;
	}
	size = (int)redisFormatCommandArgv(&command, (int)count, data, length);
	if (size < 0)
		heap_exhausted();
	buffer_append(to, command, (size_t)size);
	explicit_bzero(command, (size_t)size);
	redisFreeCommand(command);
}

static void greet(struct server *server, enum owed_kind kind,
		  const char *const *words, size_t count)
{
	struct argument arguments[4];

	for (size_t i = 0; i < count; i++)
		arguments[i] = (struct argument){words[i], strlen(words[i])};
	format_command(&server->output, arguments, count);
	owe(server, (struct owed){.kind = kind});
}

/* What goes in front of the first command: login, name, identity. */
static void greet_server(struct server *server)
{
	const struct url *url = &server->url;

	if (url->password != NULL && url->user != NULL)
		greet(server, OWED_LOGIN,
		      (const char *[]){"AUTH", url->user, url->password}, 3);
	else if (url->password != NULL)
		greet(server, OWED_LOGIN,
		      (const char *[]){"AUTH", url->password}, 2);
	greet(server, OWED_NAME,
	      (const char *[]){"CLIENT", "SETNAME", "redlock"}, 3);
	if (!server->identify)
		return;
	greet(server, OWED_INFO, (const char *[]){"INFO", "server"}, 2);
	greet(server, OWED_CONFIG, (const char *[]){"CONFIG", "GET", "append*"},
	      3);
}

static int connect_start(struct server *server)
{
	const char *why;

	disconnect(server);
	server->identity.known = false;
	server->reader = reply_reader_new(server->wide);
	greet_server(server);
	why = stream_open(&server->stream, &server->url);
	return why != NULL ? fail(server, why) : 0;
}

static int flush_output(struct server *server)
{
	struct buffer *output = &server->output;

	while (server->sent < output->length) {
		ssize_t sent = stream_send(&server->stream,
					   output->data + server->sent,
					   output->length - server->sent);

		if (sent < 0 && errno == EAGAIN)
			return 0;
		if (sent < 0 && errno == EPIPE)
			break; /* what it said before it hung up comes first */
		if (sent < 0)
			return fail(server, stream_why(&server->stream));
		server->sent += (size_t)sent;
	}
	output->length = server->sent = 0;
	return 0;
}

static int queue_last(struct server *server)
{
	if (server->owed_count > OWED_MAX - 8)
		return fail(server, "it has stopped answering");
	if (server_is_down(server) && connect_start(server) < 0)
		return -1;
	buffer_append(&server->output, server->last.data, server->last.length);
	owe(server, server->last_owed);
	return server_is_up(server) ? flush_output(server) : 0;
}

int server_ask(struct server *server, uint64_t ticket, bool sticky,
	       const struct argument *arguments, size_t count)
{
	if (!server_has_refused(server))
		server->why[0] = '\0';
	server->last.length = 0;
	server->last_owed = (struct owed){OWED_ASKED, sticky, ticket};
	format_command(&server->last, arguments, count);
	return queue_last(server);
}

int server_ask_again(struct server *server)
{
	disconnect(server);
	return queue_last(server);
}

void server_cut(struct server *server)
{
	stream_reset(&server->stream);
	disconnect(server);
}

void server_withdraw(struct server *server)
{
	if (!server_is_up(server))
		disconnect(server);
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
		disconnect(server);
}

/* --- what comes back ---------------------------------------------------- */

void server_blame(struct server *server, const char *why)
{
	blame(server, EXIT_UNREACHED, true, "%s", why);
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

	blame(server, EXIT_UNREACHED, true, "%s within %s",
	      doing[server->stream.state], duration_format(text, waited_ms));
}

static int blame_refusal(struct server *server, struct refusal refusal)
{
	blame(server, refusal.code, refusal.passing, "%.*s", SHOWN_LONGEST,
	      refusal.text[0] != '\0' ? refusal.text : "an empty error");
	server->why_spoken = true;
	return -1;
}

/* Takes one reply of the first exchange. -1 where it ends the connection. */
static int greeted(struct server *server, enum owed_kind kind,
		   const struct reply *reply)
{
	bool refused = reply->failure != NULL;

	server->complained = refused;
	if (kind == OWED_CONFIG && !refused)
		identity_read_config(&server->identity, reply);
	else if (refused && kind != OWED_CONFIG && !server->login_failed)
		blame_refusal(server, kind == OWED_LOGIN
					      ? reply_sort_login(reply->failure)
					      : reply_sort(reply->failure));
	if (kind == OWED_LOGIN && refused) {
		/* what is behind it in the pipeline runs as the default user */
		server->login_failed = true;
	} else if (kind == OWED_INFO && !refused &&
		   identity_read_info(&server->identity, reply) < 0) {
		return fail(server, "its INFO cannot be read");
	}
	return 0;
}

static int dispatch(struct server *server, const redisReply *from,
		    server_reply *callback, void *context)
{
	struct owed owed = server->owed[server->owed_first];
	struct reply reply = {0};

	reply_flatten(&reply, from);
	if (server->listens && reply_is_message(&reply)) {
		callback(context, server, 0, &reply);
		return 0;
	}
	if (server->owed_count == 0) {
		disconnect(server);
		/* an error that nobody asked for is why it hangs up */
		if (reply.failure != NULL)
			return blame_refusal(server, reply_sort(reply.failure));
		return blame(server, EXIT_UNREACHED, true,
			     "a reply that nobody asked for");
	}
	server->owed_first = (server->owed_first + 1) % OWED_MAX;
	server->owed_count--;
	if (owed.kind != OWED_ASKED)
		return greeted(server, owed.kind, &reply);
	server->complained = false;
	if (server_is_barred(server))
		reply.failure = server->why;
	else if (reply.failure != NULL)
		blame_refusal(server, reply_sort(reply.failure));
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
	return fail(server, text);
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
	if (server->unparsed > reply_longest(server->wide))
		return fail(server, "a reply too large");
	return 0;
}

static int receive(struct server *server, server_reply *callback, void *context)
{
	char data[READ_SIZE];
	ssize_t got = stream_receive(&server->stream, data, sizeof(data));

	if (got < 0 && errno == EAGAIN)
		return 0;
	if (got <= 0 && (server->complained || server_has_refused(server))) {
		/* "max number of clients reached" and such, said unasked */
		disconnect(server);
		return -1;
	}
	if (got < 0)
		return fail(server, stream_why(&server->stream));
	if (got == 0)
		return fail(server,
			    server->unparsed > 0
				    ? "it hung up in the middle of a reply"
				    : "it hung up");
	server->unparsed += (size_t)got;
	if (redisReaderFeed(server->reader, data, (size_t)got) != REDIS_OK)
		return fail_protocol(server);
	return parse(server, callback, context);
}

int server_fd(const struct server *server)
{
	return stream_fd(&server->stream);
}

short server_events(const struct server *server)
{
	return stream_events(&server->stream,
			     server->sent < server->output.length);
}

struct deadline server_wake(const struct server *server)
{
	return stream_wake(&server->stream);
}

bool server_is_up(const struct server *server)
{
	return server->stream.state == STREAM_UP;
}

bool server_is_down(const struct server *server)
{
	return server->stream.state == STREAM_DOWN;
}

int server_pump(struct server *server, short revents, server_reply *reply,
		void *context)
{
	if (!server_is_up(server)) {
		const char *why = stream_step(&server->stream, revents);

		if (why != NULL)
			return fail(server, why);
	} else if (revents != 0 && receive(server, reply, context) < 0) {
		return -1;
	}
	return server_is_up(server) ? flush_output(server) : 0;
}
