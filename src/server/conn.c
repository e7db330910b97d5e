#include "server/conn.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <hiredis.h>

#include "base/bounds.h"
#include "base/duration.h"

#define READ_SIZE TLS_RECORD

void conn_init(struct conn *conn, const struct url *url, bool identify,
	       bool doubts)
{
	conn->url = url;
	conn->identify = identify;
	conn->doubts = doubts;
	stream_init(&conn->stream);
}

void conn_release(struct conn *conn)
{
	conn_close(conn);
	buffer_release(&conn->output);
}

static void forget_promise(struct conn *conn)
{
	if (conn->promise.reply != NULL)
		freeReplyObject(conn->promise.reply);
	conn->promise.reply = NULL;
}

void conn_close(struct conn *conn)
{
	stream_close(&conn->stream);
	if (conn->reader != NULL)
		redisReaderFree(conn->reader);
	conn->reader = NULL;
	conn->output.length = conn->sent = conn->unparsed = 0;
	conn->heard = 0;
	conn->owed_first = conn->owed_count = 0;
	while (conn->withheld_count > 0)
		freeReplyObject(conn->withheld[--conn->withheld_count].reply);
	forget_promise(conn);
	conn->withholds = false;
	conn->login_failed = conn->complained = conn->unidentified = false;
	conn->executed = NULL;
}

/* --- why it does not count ---------------------------------------------- */

int conn_blame(struct conn *conn, enum cause cause, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	refusal_print(&conn->refusal, conn->found, cause, format, arguments);
	va_end(arguments);
	return -1;
}

static int fail(struct conn *conn, enum cause cause, const char *what)
{
	conn_close(conn);
	return conn_blame(conn, cause, "%s", what);
}

/* Why there is no connection. */
static enum cause sort_failure(const struct conn *conn)
{
	if (conn->stream.failure.refused)
		return CAUSE_CERTIFICATE;
	if (conn->stream.failure.text[0] != '\0' && conn->found != NULL)
		return CAUSE_PLAIN_PORT;
	switch (conn->stream.error) {
	case EMFILE:
		return CAUSE_DESCRIPTORS;
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
		return CAUSE_SYSTEM;
	case EACCES:
		return conn->url->at.path != NULL ? CAUSE_BARRED_SOCKET
						  : CAUSE_AWAY;
	default:
		return CAUSE_AWAY;
	}
}

static int fail_stream(struct conn *conn, const char *why)
{
	return fail(conn, sort_failure(conn), why);
}

/* What the server said itself. */
static int blame_reply(struct conn *conn, struct error_reply reply)
{
	char text[REPLY_TEXT];

	return conn_blame(conn, reply.cause, "%s",
			  refusal_explain(text, reply, conn->url->password));
}

/* An error without a request is why the server hangs up. */
static int fail_unasked(struct conn *conn, const struct reply *reply)
{
	conn_close(conn);
	if (reply->failure != NULL)
		return blame_reply(conn, cause_of(reply->failure));
	return conn_blame(conn, CAUSE_NONSENSE, "a reply to no request");
}

/* "Protocol error, got "H" as reply type byte" and the like */
static int fail_protocol(struct conn *conn)
{
	char text[192];

	snprintf(text, sizeof(text), "not what a Redis server says: %s",
		 conn->reader->err == REDIS_ERR_OOM ? "a reply too large"
						    : conn->reader->errstr);
	return fail(conn, CAUSE_NOT_REDIS, text);
}

/* What is still on its way, to the server or from it. */
static int blame_slowness(struct conn *conn, int64_t waited_ms)
{
	size_t bytes = stream_backlog(&conn->stream, waited_ms / 2);
	char text[DURATION_TEXT];

	duration_format(text, waited_ms);
	if (bytes > 0)
		conn_blame(conn, CAUSE_SLOW,
			   "a slow link: %zu bytes were not delivered within "
			   "%s",
			   bytes, text);
	else if (conn->unparsed > 0 &&
		 clock_ms() - conn->heard <= waited_ms / 2)
		conn_blame(conn, CAUSE_SLOW,
			   "a slow link: its answer was still coming after %s",
			   text);
	else
		return -1;
	return 0;
}

void conn_blame_silence(struct conn *conn, int64_t waited_ms)
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

	if (conn->promise.reply != NULL) {
		conn_blame(conn, CAUSE_UNACKNOWLEDGED,
			   "its replicas have not answered within %s",
			   duration_format(text, waited_ms));
		return;
	}
	if (conn_is_up(conn) && blame_slowness(conn, waited_ms) == 0)
		return;
	conn_blame(conn,
		   conn->stream.state == STREAM_HANDSHAKE && conn->found != NULL
			   ? CAUSE_PLAIN_PORT
			   : CAUSE_AWAY,
		   "%s within %s", doing[conn->stream.state],
		   duration_format(text, waited_ms));
}

/* --- what is asked ------------------------------------------------------ */

static void owe(struct conn *conn, struct owed owed)
{
	unsigned last = (conn->owed_first + conn->owed_count++) % OWED_MAX;

	owed.since = clock_ms();
	conn->owed[last] = owed;
}

static void ask_words(struct conn *conn, struct owed owed,
		      const char *const *words, size_t count)
{
	struct argument arguments[4];

	for (size_t i = 0; i < count; i++)
		arguments[i] = (struct argument){words[i], strlen(words[i])};
	request_format(&conn->output, arguments, count);
	owe(conn, owed);
}

static void greet_with(struct conn *conn, enum owed_kind kind,
		       const char *const *words, size_t count)
{
	/* a release after the last of these must not be lost (drain.h) */
	ask_words(conn,
		  (struct owed){.kind = kind, .sticky = kind == OWED_USER},
		  words, count);
}

static void ask_who_it_is(struct conn *conn)
{
	conn->unidentified = false;
	greet_with(conn, OWED_INFO, (const char *[]){"INFO", "server"}, 2);
	greet_with(conn, OWED_CONFIG,
		   (const char *[]){"CONFIG", "GET", "append*"}, 3);
}

static void greet(struct conn *conn)
{
	const struct url *url = conn->url;

	if (url->password != NULL && url->user != NULL)
		greet_with(conn, OWED_LOGIN,
			   (const char *[]){"AUTH", url->user, url->password},
			   3);
	else if (url->password != NULL)
		greet_with(conn, OWED_LOGIN,
			   (const char *[]){"AUTH", url->password}, 2);
	greet_with(conn, OWED_NAME,
		   (const char *[]){"CLIENT", "SETNAME", "redlock"}, 3);
	if (conn->identify)
		ask_who_it_is(conn);
	else if (conn->in_cluster)
		greet_with(conn, OWED_MODE, (const char *[]){"INFO", "server"},
			   2);
}

int conn_open(struct conn *conn, const struct endpoint *at)
{
	const char *why;

	conn_close(conn);
	if (at != &conn->url->at)
		conn->stream.addresses.count = 0; /* maybe of another host */
	conn->identity.known = false;
	conn->reader = reply_reader_new(&conn->bounds);
	greet(conn);
	why = stream_open(&conn->stream, at, conn->url->tls);
	return why != NULL ? fail_stream(conn, why) : 0;
}

/* Sends what can be sent now, from there on. */
static int send_from(struct conn *conn, const struct buffer *from, size_t *at)
{
	while (*at < from->length) {
		ssize_t sent = stream_send(&conn->stream, from->data + *at,
					   from->length - *at);

		if (sent < 0 && errno == EAGAIN)
			return 0;
		if (sent < 0 && errno == EPIPE)
			break; /* what it said before it hung up comes first */
		if (sent < 0)
			return fail_stream(conn, stream_why(&conn->stream));
		*at += (size_t)sent;
	}
	*at = from->length;
	return 0;
}

static int flush_output(struct conn *conn)
{
	if (send_from(conn, &conn->output, &conn->sent) < 0)
		return -1;
	if (conn->sent == conn->output.length)
		conn->output.length = conn->sent = 0;
	return 0;
}

/* Whether its replicas have what was asked last. */
static void ask_replicas(struct conn *conn, struct owed asked)
{
	char replicas[24], time[24];

	snprintf(replicas, sizeof(replicas), "%" PRId64, conn->replicas);
	snprintf(time, sizeof(time), "%" PRId64, conn->replica_time);
	asked.kind = OWED_REPLICAS;
	ask_words(conn, asked, (const char *[]){"WAIT", replicas, time}, 3);
}

/* It follows what is still to be sent; if nothing is, there is no copy of it.
 * */
int conn_ask(struct conn *conn, struct owed owed, const struct buffer *request)
{
	size_t sent = 0;

	if (conn->owed_count > OWED_MAX - 8)
		return fail(conn, CAUSE_AWAY, "it has stopped answering");
	owed.kind = OWED_ASKED;
	owed.replicated &= conn->replicas > 0;
	if (conn->unidentified)
		ask_who_it_is(conn);
	owe(conn, owed);
	if (conn_is_up(conn) && conn->output.length == 0 && !owed.replicated &&
	    send_from(conn, request, &sent) < 0)
		return -1;
	buffer_append(&conn->output, request->data + sent,
		      request->length - sent);
	if (owed.replicated)
		ask_replicas(conn, owed);
	return conn_is_up(conn) ? flush_output(conn) : 0;
}

bool conn_owes_sticky(const struct conn *conn)
{
	for (unsigned i = 0; i < conn->owed_count; i++)
		if (conn->owed[(conn->owed_first + i) % OWED_MAX].sticky)
			return true;
	return false;
}

bool conn_owes_questions(const struct conn *conn)
{
	unsigned count = 0;

	for (unsigned i = 0; i < conn->owed_count; i++) {
		const struct owed *owed =
			&conn->owed[(conn->owed_first + i) % OWED_MAX];

		count += owed->kind == OWED_ASKED &&
			 (!owed->sticky || i + 1 == conn->owed_count);
	}
	return count > 1;
}

bool conn_owes(const struct conn *conn, uint64_t number)
{
	for (unsigned i = 0; i < conn->withheld_count; i++)
		if (conn->withheld[i].owed.number == number)
			return true;
	for (unsigned i = 0; i < conn->owed_count; i++)
		if (conn->owed[(conn->owed_first + i) % OWED_MAX].number ==
		    number)
			return true;
	return false;
}

bool conn_owes_replicas(const struct conn *conn)
{
	for (unsigned i = 0; i < conn->owed_count; i++)
		if (conn->owed[(conn->owed_first + i) % OWED_MAX].replicated)
			return true;
	return false;
}

int64_t conn_waited(const struct conn *conn)
{
	return conn->owed_count > 0
		       ? clock_ms() - conn->owed[conn->owed_first].since
		       : 0;
}

/* --- what comes back ---------------------------------------------------- */

/* The shortest of the last round trips: a server that was stopped for a while is not far,
 * and one that has moved away is, a few answers later. Answers to what was asked before the
 * last one came were late, or quick, for one reason: they are one round trip. */
static void measure(struct conn *conn, int64_t since)
{
	int64_t now = clock_ms(), took = now - since + 1;
	int64_t *last = conn->round_trips;

	if (since >= conn->measured) {
		memmove(last + 1, last, (ROUND_TRIPS - 1) * sizeof(*last));
		*last = took;
	} else if (took < *last) {
		*last = took;
	}
	conn->measured = now;
	conn->distance = *last;
	for (size_t i = 1; i < ROUND_TRIPS && last[i] > 0; i++)
		if (last[i] < conn->distance)
			conn->distance = last[i];
}

/* What it answers to the request that was sent with the greeting is withheld. */
static void ask_for_user(struct conn *conn)
{
	greet_with(conn, OWED_USER,
		   (const char *[]){"ACL", "GETUSER", "default"}, 3);
	conn->withholds = true;
}

static int refuse_loner(struct conn *conn)
{
	enum cause cause = CAUSE_NO_CLUSTER;
	bool unused;

	if (conn->found != NULL)
		cause = cause_elsewhere(cause);
	return fail(conn, cause, cause_words(cause, &unused));
}

static int take_greeting(struct conn *conn, enum owed_kind kind,
			 const struct reply *reply)
{
	bool refused = reply->failure != NULL;

	if (conn->in_cluster && (kind == OWED_INFO || kind == OWED_MODE) &&
	    !refused && identity_is_alone(reply))
		return refuse_loner(conn);
	if (kind == OWED_MODE)
		return 0; /* it need not say */
	conn->complained = refused;
	if (kind == OWED_CONFIG && !refused) {
		identity_read_config(&conn->identity, reply);
		if (conn->doubts && !conn_is_barred(conn) &&
		    identity_is_doubtful(&conn->identity))
			ask_for_user(conn);
	} else if (refused && kind != OWED_CONFIG && !conn->login_failed) {
		blame_reply(conn, kind == OWED_LOGIN
					  ? cause_of_login(reply->failure)
					  : cause_of(reply->failure));
	}
	if (kind == OWED_CONFIG && refused)
		conn->unidentified |=
			cause_is_of_the_moment(cause_of(reply->failure).cause);
	if (kind == OWED_LOGIN && refused) {
		/* what follows in the pipeline runs as the default user */
		conn->login_failed = true;
	} else if (kind == OWED_INFO && refused) {
		conn->unidentified = true;
	} else if (kind == OWED_INFO &&
		   identity_read_info(&conn->identity, reply) < 0) {
		return fail(conn, CAUSE_NONSENSE, "its INFO cannot be read");
	}
	return 0;
}

/* A reply of a barred server is a failure, whatever it says. */
static void note_failure(struct conn *conn, struct reply *reply)
{
	struct error_reply error;

	if (conn_is_barred(conn)) {
		reply->failure = conn->refusal.text;
	} else if (reply->failure != NULL) {
		error = cause_of(reply->failure);
		if (conn->found != NULL)
			error.cause = cause_elsewhere(error.cause);
		/* a login that was refused, but optional, says better why */
		if (!conn->login_failed ||
		    cause_code(error.cause) != EXIT_REFUSED)
			blame_reply(conn, error);
	}
}

static int hand_over(struct conn *conn, const struct withheld *withheld,
		     conn_reply *callback, void *context)
{
	struct reply reply = {0};

	reply_flatten(&reply, withheld->reply);
	note_failure(conn, &reply);
	return callback(context, &withheld->owed, &reply);
}

/* What callback does may close the connection, and free what is still withheld. */
static int hand_over_withheld(struct conn *conn, conn_reply *callback,
			      void *context)
{
	int result = 0;

	conn->withholds = false;
	while (result == 0 && conn->withheld_count > 0) {
		struct withheld first = conn->withheld[0];

		memmove(conn->withheld, conn->withheld + 1,
			--conn->withheld_count * sizeof(first));
		result = hand_over(conn, &first, callback, context);
		freeReplyObject(first.reply);
	}
	return result;
}

/* Takes over the reply if it sets that to NULL. */
static int pass_on(struct conn *conn, struct withheld *withheld,
		   conn_reply *callback, void *context)
{
	if (!conn->withholds)
		return hand_over(conn, withheld, callback, context);
	conn->withheld[conn->withheld_count++] = *withheld;
	withheld->reply = NULL;
	return 0;
}

/* --- what its replicas have ----------------------------------------------- */

static bool is_promise(const struct reply *reply)
{
	return reply->failure == NULL && reply->count > 0 &&
	       reply->value[0].text == NULL && reply->value[0].number == 1;
}

/* Takes over the reply, if it counts only when replicas have it. */
static bool keep_promise(struct conn *conn, struct withheld *withheld,
			 const struct reply *reply)
{
	if (!withheld->owed.replicated)
		return false;
	if (!is_promise(reply)) {
		/* what was refused needs no release */
		conn->owed[conn->owed_first].replicated = false;
		conn->owed[conn->owed_first].sticky = false;
		return false;
	}
	conn->promise = *withheld;
	withheld->reply = NULL;
	return true;
}

/* 0, or -1 with a refusal. *said: what WAIT was answered. */
static int count_replicas(struct conn *conn, struct reply *said)
{
	int64_t count = said->value[0].number;
	char text[DURATION_TEXT];

	note_failure(conn, said);
	if (said->failure != NULL)
		return -1;
	if (!reply_is_number(said) || count < 0 || count > REPLICAS_MOST)
		return conn_blame(conn, CAUSE_NONSENSE,
				  "an answer that makes no sense");
	if (count >= conn->replicas)
		return 0;
	return conn_blame(conn, CAUSE_UNACKNOWLEDGED,
			  "only %" PRId64 " of %" PRId64
			  " replicas have it after %s",
			  count, conn->replicas,
			  duration_format(text, conn->replica_time));
}

/* The promise counts, or not. */
static int take_acknowledgement(struct conn *conn, struct reply *said,
				conn_reply *callback, void *context)
{
	struct withheld promise = conn->promise;
	int result;

	conn->promise.reply = NULL;
	if (promise.reply == NULL)
		return 0; /* it was refused */
	if (count_replicas(conn, said) == 0) {
		result = pass_on(conn, &promise, callback, context);
	} else {
		struct reply failed = {.failure = conn->refusal.text,
				       .cause = said->failure != NULL
							? said->cause
							: conn->refusal.cause};

		result = callback(context, &promise.owed, &failed);
	}
	if (promise.reply != NULL)
		freeReplyObject(promise.reply);
	return result;
}

/* --- what comes back, one after the other --------------------------------- */

/* Takes over what *from points to if it sets that to NULL. */
static int dispatch(struct conn *conn, redisReply **from, conn_reply *callback,
		    void *context)
{
	struct owed owed = conn->owed[conn->owed_first];
	struct withheld withheld = {*from, owed};
	struct reply reply = {0};
	int result;

	reply_flatten(&reply, *from);
	if (conn->listens && reply_is_message(&reply))
		return callback(context, &(struct owed){0}, &reply);
	if (conn->owed_count == 0)
		return fail_unasked(conn, &reply);
	conn->owed_first = (conn->owed_first + 1) % OWED_MAX;
	conn->owed_count--;
	if (owed.kind == OWED_REPLICAS)
		return take_acknowledgement(conn, &reply, callback, context);
	measure(conn, owed.since);
	if (owed.kind == OWED_USER) {
		conn->unidentified |= cause_is_of_the_moment(reply.cause);
		identity_read_user(&conn->identity, &reply);
		return hand_over_withheld(conn, callback, context);
	}
	if (owed.kind != OWED_ASKED)
		return take_greeting(conn, owed.kind, &reply);
	conn->complained = false;
	result = keep_promise(conn, &withheld, &reply)
			 ? 0
			 : pass_on(conn, &withheld, callback, context);
	*from = withheld.reply;
	return result;
}

/* No line is as long as what lists: whenever more has come, hiredis searches all that it keeps
 * for the end of one. */
static bool is_too_large(const struct conn *conn)
{
	const redisReader *reader = conn->reader;
	size_t longest = reply_longest(false);

	if (conn->unparsed <= longest)
		return false;
	if (conn->unparsed > reply_longest(conn->bounds.wide))
		return true;
	return reader->len - reader->pos > longest &&
	       memmem(reader->buf + reader->pos, longest, "\r\n", 2) == NULL;
}

static int parse(struct conn *conn, conn_reply *callback, void *context)
{
	int result;

	while (conn_is_up(conn)) {
		void *next = NULL;
		redisReply *reply;

		if (redisReaderGetReply(conn->reader, &next) != REDIS_OK)
			return fail_protocol(conn);
		if (next == NULL)
			break;
		conn->unparsed = 0;
		reply = next;
		result = dispatch(conn, &reply, callback, context);
		freeReplyObject(reply);
		if (result < 0)
			return -1;
	}
	if (is_too_large(conn))
		return fail(conn, CAUSE_NONSENSE, "a reply too large");
	return 0;
}

/* A port that wants TLS hangs up on a client that does not speak it. */
static bool may_want_tls(const struct conn *conn)
{
	return conn->heard == 0 && !conn->url->tls &&
	       conn->url->at.path == NULL;
}

/* What has come, read into data of READ_SIZE bytes. */
static int receive_into(char *data, struct conn *conn, conn_reply *callback,
			void *context)
{
	ssize_t got = stream_receive(&conn->stream, data, READ_SIZE);

	if (got < 0 && errno == EAGAIN)
		return 0;
	if (got <= 0 && (conn->complained || conn_has_refused(conn))) {
		/* "max number of clients reached" and such, said unasked */
		conn_close(conn);
		return -1;
	}
	if ((got == 0 || (got < 0 && errno == ECONNRESET)) &&
	    may_want_tls(conn))
		return fail(conn, CAUSE_AWAY,
			    "it hung up at once (is it rediss://?)");
	if (got < 0)
		return fail_stream(conn, stream_why(&conn->stream));
	if (got == 0)
		return fail(conn, CAUSE_AWAY,
			    conn->unparsed > 0
				    ? "it hung up in the middle of a reply"
				    : "it hung up");
	conn->unparsed += (size_t)got;
	conn->heard = clock_ms();
	if (redisReaderFeed(conn->reader, data, (size_t)got) != REDIS_OK)
		return fail_protocol(conn);
	return parse(conn, callback, context);
}

__attribute__((noinline)) static int receive_aside(struct conn *conn,
						   conn_reply *callback,
						   void *context)
{
	char data[READ_SIZE];

	return receive_into(data, conn, callback, context);
}

/* Of a stack all pages would be touched. So that is for the second of two threads,
 * each with a connection of its own. */
static int receive(struct conn *conn, conn_reply *callback, void *context)
{
	/* on one page, if little comes */
	static struct {
		atomic_flag in_use;
		char data[READ_SIZE];
	} usual = {.in_use = ATOMIC_FLAG_INIT};
	int result;

	if (atomic_flag_test_and_set(&usual.in_use))
		return receive_aside(conn, callback, context);
	result = receive_into(usual.data, conn, callback, context);
	atomic_flag_clear(&usual.in_use);
	return result;
}

void conn_prepare(const struct conn *conn, bool reads, struct pollfd *polled,
		  struct deadline *until)
{
	bool output = conn->sent < conn->output.length;
	bool held = conn_is_up(conn) && !reads;

	*polled = (struct pollfd){
		.fd = held && !output ? -1 : stream_fd(&conn->stream),
		.events = POLLOUT,
	};
	if (!held)
		polled->events = stream_events(&conn->stream, output);
	*until = deadline_earlier(*until, stream_wake(&conn->stream));
}

/* What was queued until now leaves only now. */
static void begin_measuring(struct conn *conn)
{
	for (unsigned i = 0; i < conn->owed_count; i++)
		conn->owed[(conn->owed_first + i) % OWED_MAX].since =
			clock_ms();
}

int conn_pump(struct conn *conn, short revents, conn_reply *reply,
	      void *context)
{
	if (!conn_is_up(conn)) {
		const char *why = stream_step(&conn->stream, revents);

		if (why != NULL)
			return fail_stream(conn, why);
		if (conn_is_up(conn))
			begin_measuring(conn);
	} else if (revents != 0 && reply != NULL &&
		   receive(conn, reply, context) < 0) {
		return -1;
	}
	return conn_is_up(conn) ? flush_output(conn) : 0;
}
