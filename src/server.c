#include "server.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis.h>

#include "duration.h"

#define READ_SIZE 16384
#define REPLY_LONGEST 65536  /* bytes */
#define REPLY_ELEMENTS 64    /* of one array */
#define REPLY_DEPTH 4
#define SHOWN_LONGEST 160    /* bytes of a server's error text */
#define BACKLOG_PAUSE 5      /* ms until a full backlog is tried again */
#define ADDRESS_TIME 250     /* ms for an address while others are left (the
				Connection Attempt Delay of RFC 8305) */

#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

static redisReplyObjectFunctions reader_functions;
static void *(*create_array)(const redisReadTask *, element_count);

/* hiredis takes any size and any depth: 13 bytes would buy 16 GB, or the
 * stack. NULL makes the reader give up. */
static void *create_small_array(const redisReadTask *task,
				element_count elements)
{
	int depth = 0;

	for (const redisReadTask *up = task; up != NULL; up = up->parent)
		depth++;
	if (depth > REPLY_DEPTH || elements > REPLY_ELEMENTS)
		return NULL;
	return create_array(task, elements);
}

static redisReader *reader_new(void)
{
	redisReader *reader = redisReaderCreate();

	if (reader == NULL)
		return NULL;
	if (create_array == NULL) {
		reader_functions = *reader->fn;
		create_array = reader_functions.createArray;
		reader_functions.createArray = create_small_array;
	}
	reader->fn = &reader_functions;
	return reader;
}

static int blame(struct server *server, int code, bool passing,
		 const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static int blame(struct server *server, int code, bool passing,
		 const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(server->why, sizeof(server->why), format, arguments);
	va_end(arguments);
	server->why_code = code;
	server->why_passing = passing;
	return -1;
}

static void disconnect(struct server *server)
{
	if (server->lookup != NULL)
		resolve_abandon(server->lookup);
	if (server->fd >= 0)
		close(server->fd);
	if (server->reader != NULL)
		redisReaderFree(server->reader);
	server->lookup = NULL;
	server->fd = -1;
	server->reader = NULL;
	server->state = SERVER_DOWN;
	server->output.length = server->sent = server->unparsed = 0;
	server->owed_first = server->owed_count = 0;
	server->login_failed = server->complained = false;
}

static int fail(struct server *server, bool passing, const char *what)
{
	disconnect(server);
	return blame(server, EXIT_UNREACHED, passing, "%s", what);
}

void server_init(struct server *server, struct url *url, bool identify)
{
	*server = (struct server){.url = *url, .identify = identify, .fd = -1};
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

static int format_command(struct buffer *to, const struct argument *arguments,
			  size_t count)
{
	const char *data[16];
	size_t length[16];
	char *command;
	int size;

	for (size_t i = 0; i < count; i++) {
		data[i] = arguments[i].data;
		length[i] = arguments[i].length;
	}
	size = (int)redisFormatCommandArgv(&command, (int)count, data, length);
	if (size < 0)
		return -1;
	buffer_append(to, command, (size_t)size);
	explicit_bzero(command, (size_t)size);
	redisFreeCommand(command);
	return 0;
}

static void greet(struct server *server, enum owed_kind kind,
		  const char *const *words, size_t count)
{
	struct argument arguments[4];

	for (size_t i = 0; i < count; i++)
		arguments[i] = (struct argument){words[i], strlen(words[i])};
	if (format_command(&server->output, arguments, count) == 0)
		owe(server, (struct owed){.kind = kind});
}

/* What goes in front of the first command: login, name, identity. */
static void greet_server(struct server *server)
{
	const struct url *url = &server->url;

	if (url->password != NULL && url->user != NULL)
		greet(server, OWED_LOGIN, (const char *[]){
			      "AUTH", url->user, url->password}, 3);
	else if (url->password != NULL)
		greet(server, OWED_LOGIN, (const char *[]){
			      "AUTH", url->password}, 2);
	greet(server, OWED_NAME, (const char *[]){
		      "CLIENT", "SETNAME", "redlock"}, 3);
	if (!server->identify)
		return;
	greet(server, OWED_INFO, (const char *[]){"INFO", "server"}, 2);
	greet(server, OWED_CONFIG, (const char *[]){
		      "CONFIG", "GET", "append*"}, 3);
}

static int connect_next(struct server *server);

static int connect_start(struct server *server)
{
	const struct url *url = &server->url;

	disconnect(server);
	server->identity.known = false;
	server->address = 0;
	server->reader = reader_new();
	if (server->reader == NULL)
		return fail(server, true, "out of memory");
	greet_server(server);
	if (url->kind != URL_TCP) {
		stream_unix_address(&server->addresses.list[0], url->path);
		server->addresses.count = 1;
	} else if (server->addresses.count == 0 &&
		   resolve_numeric(url->host, url->port,
				   &server->addresses) < 0) {
		server->lookup = resolve_start(url->host, url->port);
		if (server->lookup == NULL)
			return fail(server, true, strerror(errno));
		server->state = SERVER_RESOLVING;
		return 0;
	}
	return connect_next(server);
}

/* Tries the addresses from server->address on. */
static int connect_next(struct server *server)
{
	int cause = ENOENT;

	for (; server->address < server->addresses.count; server->address++) {
		server->fd = stream_open(
			&server->addresses.list[server->address]);
		if (server->fd >= 0) {
			server->state = SERVER_CONNECTING;
			server->retry_at = clock_ms() + ADDRESS_TIME;
			return 0;
		}
		cause = errno;
		if (cause == EAGAIN) {
			server->state = SERVER_PAUSING;
			server->retry_at = clock_ms() + BACKLOG_PAUSE;
			return 0;
		}
	}
	return fail(server, true, strerror(cause));
}

static int queue_last(struct server *server)
{
	if (server->owed_count > OWED_MAX - 8)
		return fail(server, true, "it has stopped answering");
	if (server->state == SERVER_DOWN && connect_start(server) < 0)
		return -1;
	buffer_append(&server->output, server->last.data, server->last.length);
	owe(server, server->last_owed);
	return 0;
}

int server_ask(struct server *server, uint64_t ticket, bool sticky,
	       const struct argument *arguments, size_t count)
{
	server->last.length = 0;
	server->last_owed = (struct owed){OWED_ASKED, sticky, ticket};
	if (format_command(&server->last, arguments, count) < 0)
		return fail(server, true, "out of memory");
	return queue_last(server);
}

int server_ask_again(struct server *server)
{
	disconnect(server);
	return queue_last(server);
}

void server_withdraw(struct server *server)
{
	if (server->state != SERVER_UP)
		disconnect(server);
}

void server_renew(struct server *server)
{
	for (unsigned i = 0; i < server->owed_count; i++)
		if (server->owed[(server->owed_first + i) % OWED_MAX].sticky)
			return;
	disconnect(server);
}

/* --- what comes back ---------------------------------------------------- */

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

void server_blame_silence(struct server *server, int64_t waited_ms)
{
	static const char *const doing[] = {
		[SERVER_DOWN] = "no connection",
		[SERVER_RESOLVING] = "its name is not resolved",
		[SERVER_CONNECTING] = "no connection",
		[SERVER_PAUSING] = "its backlog of connections is full",
		[SERVER_UP] = "no answer",
	};
	char text[DURATION_TEXT];

	blame(server, EXIT_UNREACHED, true, "%s within %s",
	      doing[server->state], duration_format(text, waited_ms));
}

void server_blame_reply(struct server *server, const char *failure)
{
	static const struct {
		const char *start;
		int code;
		bool passing;
	} sorts[] = {
		{"NOAUTH", EXIT_REFUSED, false},
		{"WRONGPASS", EXIT_REFUSED, false},
		{"NOPERM", EXIT_REFUSED, false},
		{"ERR The user executing the script", EXIT_REFUSED, false},
		{"ERR invalid password", EXIT_REFUSED, false},
		{"ERR AUTH", EXIT_REFUSED, false},
		{"ERR Client sent AUTH", EXIT_REFUSED, false},
		{"WRONGTYPE", EXIT_MISUSED, false},
		{"READONLY", EXIT_UNREACHED, false},
		{"MOVED", EXIT_UNREACHED, false},
		{"ASK", EXIT_UNREACHED, false},
		{"DENIED", EXIT_UNREACHED, false},
		{"ERR unknown command", EXIT_UNREACHED, false},
		{"ERR DB index is out of range", EXIT_CONFIG, false},
		{"ERR invalid DB index", EXIT_CONFIG, false},
		{"ERR SELECT is not allowed in cluster mode", EXIT_CONFIG,
		 false},
	};
	/* within a script: "ERR Error running script ...: @user_script: 1:
	 * -ERR DB index is out of range" in Redis 6 and before */
	const char *inner = strstr(failure, ": -");
	const char *text = inner != NULL ? inner + 3 : failure;

	for (size_t i = 0; i < sizeof(sorts) / sizeof(sorts[0]); i++) {
		if (!starts_with(text, sorts[i].start))
			continue;
		blame(server, sorts[i].code, sorts[i].passing, "%.*s",
		      SHOWN_LONGEST, text);
		return;
	}
	blame(server, EXIT_UNREACHED, true, "%.*s", SHOWN_LONGEST, failure);
}

/* The value of "name:" in INFO's text; its length in *length. */
static const char *info_find(const char *text, const char *name,
			     size_t *length)
{
	const char *at = strstr(text, name);

	if (at == NULL)
		return NULL;
	at += strlen(name);
	*length = strcspn(at, "\r\n");
	return at;
}

static int learn_info(struct server *server, const redisReply *reply)
{
	struct identity *identity = &server->identity;
	const char *run_id, *uptime;
	size_t length, digits;

	if (reply->type != REDIS_REPLY_STRING)
		return -1;
	run_id = info_find(reply->str, "\nrun_id:", &length);
	uptime = info_find(reply->str, "\nuptime_in_seconds:", &digits);
	if (run_id == NULL || length != sizeof(identity->run_id) - 1 ||
	    uptime == NULL || digits < 1 || digits > 10)
		return -1;
	memcpy(identity->run_id, run_id, length);
	/*
	 * The difference of two clock readings in whole seconds can be nearly
	 * one more than what has passed.
	 */
	identity->started = clock_ms() -
		(strtoll(uptime, NULL, 10) - 1) * 1000;
	identity->durable = false;
	identity->known = true;
	return 0;
}

static bool is_text(const redisReply *reply, const char *text)
{
	return reply->type == REDIS_REPLY_STRING &&
	       strcmp(reply->str, text) == 0;
}

/* Not being allowed to ask is no failure: then the file counts as not there. */
static void learn_config(struct server *server, const redisReply *reply)
{
	bool appends = false, always = false;

	if (reply->type != REDIS_REPLY_ARRAY)
		return;
	for (size_t i = 0; i + 1 < reply->elements; i += 2) {
		const redisReply *name = reply->element[i];
		const redisReply *value = reply->element[i + 1];

		if (is_text(name, "appendonly"))
			appends = is_text(value, "yes");
		else if (is_text(name, "appendfsync"))
			always = is_text(value, "always");
	}
	server->identity.durable = appends && always;
}

static void flatten_value(struct value *value, const redisReply *from)
{
	if (from->type == REDIS_REPLY_INTEGER)
		value->number = from->integer;
	else if (from->type == REDIS_REPLY_STRING ||
		 from->type == REDIS_REPLY_STATUS)
		*value = (struct value){from->str, (size_t)from->len, 0};
	else
		*value = (struct value){"", 0, 0};
}

static void flatten(struct reply *reply, const redisReply *from)
{
	if (from->type == REDIS_REPLY_ERROR) {
		reply->failure = from->str;
	} else if (from->type != REDIS_REPLY_ARRAY) {
		reply->count = 1;
		flatten_value(&reply->value[0], from);
	} else {
		for (; reply->count < from->elements &&
		       reply->count < REPLY_VALUES; reply->count++)
			flatten_value(&reply->value[reply->count],
				      from->element[reply->count]);
	}
}

/* Judges one reply of the first exchange. -1 where it ends the connection. */
static int greeted(struct server *server, enum owed_kind kind,
		   const redisReply *reply)
{
	bool refused = reply->type == REDIS_REPLY_ERROR;

	server->complained = refused;
	if (refused && kind == OWED_NAME)
		server_blame_reply(server, reply->str);
	if (kind == OWED_LOGIN && refused) {
		/* what is behind it in the pipeline ran as the default user */
		server->login_failed = true;
		server_blame_reply(server, reply->str);
		server->why_code = EXIT_REFUSED;
		server->why_passing = false;
	} else if (kind == OWED_INFO && refused) {
		server_blame_reply(server, reply->str);
	} else if (kind == OWED_INFO && learn_info(server, reply) < 0) {
		return fail(server, true, "its INFO cannot be read");
	} else if (kind == OWED_CONFIG) {
		learn_config(server, reply);
	}
	return 0;
}

static int dispatch(struct server *server, const redisReply *from,
		    server_reply *callback, void *context)
{
	struct owed owed = server->owed[server->owed_first];
	struct reply reply = {0};

	if (server->owed_count == 0) {
		/* an unasked error is why it hangs up; anything else is noise */
		if (from->type == REDIS_REPLY_ERROR)
			server_blame_reply(server, from->str);
		else
			blame(server, EXIT_UNREACHED, true,
			      "a reply that nobody asked for");
		disconnect(server);
		return -1;
	}
	server->owed_first = (server->owed_first + 1) % OWED_MAX;
	server->owed_count--;
	if (owed.kind != OWED_ASKED)
		return greeted(server, owed.kind, from);
	server->complained = false;
	flatten(&reply, from);
	if (reply.failure != NULL && !server->login_failed)
		server_blame_reply(server, reply.failure);
	if (server->login_failed ||
	    (server->identify && !server->identity.known))
		reply.failure = server->why;
	callback(context, server, owed.ticket, &reply);
	return 0;
}

/* "Protocol error, got "H" as reply type byte" and the like */
static int fail_protocol(struct server *server)
{
	char text[192];

	snprintf(text, sizeof(text), "not what a Redis server says: %s",
		 server->reader->err == REDIS_ERR_OOM ?
			 "a reply too large" : server->reader->errstr);
	return fail(server, true, text);
}

static int parse(struct server *server, server_reply *callback, void *context)
{
	void *reply;

	while (server->state == SERVER_UP) {
		reply = NULL;
		if (redisReaderGetReply(server->reader, &reply) != REDIS_OK)
			return fail_protocol(server);
		if (reply == NULL)
			break;
		server->unparsed = 0;
		if (dispatch(server, reply, callback, context) < 0) {
			freeReplyObject(reply);
			return -1;
		}
		freeReplyObject(reply);
	}
	if (server->unparsed > REPLY_LONGEST)
		return fail(server, true, "a reply of more than 64 KiB");
	return 0;
}

static int receive(struct server *server, server_reply *callback,
		   void *context)
{
	char data[READ_SIZE];
	ssize_t got = stream_receive(server->fd, data, sizeof(data));

	if (got < 0 && errno == EAGAIN)
		return 0;
	if (got <= 0 && server->complained) {
		/* "max number of clients reached" and such, said unasked */
		disconnect(server);
		return -1;
	}
	if (got < 0)
		return fail(server, true, strerror(errno));
	if (got == 0)
		return fail(server, true, server->unparsed > 0 ?
			    "it hung up in the middle of a reply" :
			    "it hung up");
	server->unparsed += (size_t)got;
	if (redisReaderFeed(server->reader, data, (size_t)got) != REDIS_OK)
		return fail_protocol(server);
	return parse(server, callback, context);
}

/* --- moving bytes ------------------------------------------------------- */

static int flush_output(struct server *server)
{
	struct buffer *output = &server->output;

	while (server->sent < output->length) {
		ssize_t sent = stream_send(server->fd,
					   output->data + server->sent,
					   output->length - server->sent);

		if (sent < 0 && errno == EAGAIN)
			return 0;
		if (sent < 0)
			return fail(server, true, strerror(errno));
		server->sent += (size_t)sent;
	}
	output->length = server->sent = 0;
	return 0;
}

static bool is_last_address(const struct server *server)
{
	return server->address + 1 >= server->addresses.count;
}

static int connected(struct server *server, short revents)
{
	int cause = revents != 0 ? stream_connected(server->fd) : ETIMEDOUT;

	if (cause == 0) {
		server->state = SERVER_UP;
		return flush_output(server);
	}
	close(server->fd);
	server->fd = -1;
	server->address++;
	if (server->address < server->addresses.count)
		return connect_next(server);
	return fail(server, true, strerror(cause));
}

static int resolved(struct server *server)
{
	const char *why = resolve_finish(server->lookup, &server->addresses);

	server->lookup = NULL;
	if (why != NULL)
		return fail(server, true, why);
	return connect_next(server);
}

int server_fd(const struct server *server)
{
	return server->state == SERVER_RESOLVING ? resolve_fd(server->lookup)
						 : server->fd;
}

short server_events(const struct server *server)
{
	if (server->state == SERVER_CONNECTING)
		return POLLOUT;
	if (server->state == SERVER_UP &&
	    server->sent < server->output.length)
		return POLLIN | POLLOUT;
	return POLLIN;
}

struct deadline server_wake(const struct server *server)
{
	bool waits = server->state == SERVER_PAUSING ||
		(server->state == SERVER_CONNECTING &&
		 !is_last_address(server));

	return waits ? deadline_at(server->retry_at) : deadline_never();
}

int server_pump(struct server *server, short revents, server_reply *reply,
		void *context)
{
	switch (server->state) {
	case SERVER_DOWN:
		return 0;
	case SERVER_PAUSING:
		return deadline_passed(server_wake(server)) ?
			connect_next(server) : 0;
	case SERVER_RESOLVING:
		return revents != 0 ? resolved(server) : 0;
	case SERVER_CONNECTING:
		return revents != 0 || deadline_passed(server_wake(server)) ?
			connected(server, revents) : 0;
	case SERVER_UP:
		break;
	}
	if (revents & (POLLIN | POLLHUP | POLLERR) &&
	    receive(server, reply, context) < 0)
		return -1;
	return server->state == SERVER_UP ? flush_output(server) : 0;
}
