#include "world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/deadline.h"
#include "base/threads.h"
#include "server/last_place.h"
#include "base/buffer.h"
#include "net/stream.h"
#include "run/watchdogs.h"

#define CONNECTIONS 64
#define FIRST_FD 1000
#define PIECE_END 0x1e
#define HANG_UP 0x1f
#define BEGINNING 1000000 /* ms */
#define IDLE_MOST 5000    /* polls, while no time passes and no byte moves */

struct connection {
	bool open, ended;
	size_t server;
	struct buffer asked; /* not a whole request yet */
	struct buffer said;
	size_t taken;      /* of said */
	int64_t from;      /* when said may be read */
	size_t next;       /* where its next message is looked for */
	char channel[300]; /* it has subscribed to, or "" */
};

static struct world_rules world;
static const uint8_t *input;
static size_t input_size, next_piece[WORLD_SERVERS];
static bool silent[WORLD_SERVERS], granted[WORLD_SERVERS];
static struct connection connections[CONNECTIONS];
static int64_t now;
static unsigned idle;
static uint64_t random_state;

/* --- time and chance ------------------------------------------------------ */

int world_gettime(clockid_t clock, struct timespec *time);

int world_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	*time = (struct timespec){now / 1000, now % 1000 * 1000000};
	return 0;
}

int64_t world_age(void)
{
	return now - BEGINNING;
}

/* In place of the C library's: the same input is the same run. */
void arc4random_buf(void *data, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		random_state = random_state * 6364136223846793005 + 1;
		((uint8_t *)data)[i] = (uint8_t)(random_state >> 56);
	}
}

uint32_t arc4random_uniform(uint32_t limit)
{
	uint32_t value;

	arc4random_buf(&value, sizeof(value));
	return limit > 0 ? value % limit : 0;
}

/* --- pieces --------------------------------------------------------------- */

struct piece {
	const uint8_t *data;
	size_t size;
};

/* The next piece for this server, from *at on; false where there is none. */
static bool find_piece(size_t *at, size_t server, bool message,
		       struct piece *piece)
{
	while (*at < input_size) {
		const uint8_t *start = input + *at;
		const uint8_t *end = memchr(start, PIECE_END, input_size - *at);
		size_t size =
			end != NULL ? (size_t)(end - start) : input_size - *at;

		*at += size + (end != NULL);
		if (size > 0 && *start >= '0' && *start < '0' + WORLD_SERVERS) {
			if (*start != '0' + (int)server)
				continue;
			start++;
			size--;
		}
		if ((size > 0 && *start == 'M') != message)
			continue;
		*piece = (struct piece){start + message, size - message};
		return true;
	}
	return false;
}

static void say(struct connection *connection, const void *data, size_t size)
{
	buffer_append(&connection->said, data, size);
}

static void say_text(struct connection *connection, const char *text)
{
	say(connection, text, strlen(text));
}

static void answer_next(struct connection *connection)
{
	size_t server = connection->server;
	struct piece piece;

	if (silent[server] || connection->ended ||
	    !find_piece(&next_piece[server], server, false, &piece))
		return;
	if (piece.size >= 2 && piece.data[0] == 'D' && piece.data[1] >= '0' &&
	    piece.data[1] <= '9') {
		connection->from = now + 100 * (piece.data[1] - '0');
		piece.data += 2;
		piece.size -= 2;
	}
	if (piece.size > 0 && piece.data[0] == '.') {
		silent[server] = true;
		return;
	}
	if (piece.size > 0 && piece.data[0] == '!') {
		connection->ended = true;
		return;
	}
	if (piece.size > 0 && piece.data[piece.size - 1] == HANG_UP) {
		connection->ended = true;
		piece.size--;
	}
	say(connection, piece.data, piece.size);
	if (memmem(piece.data, piece.size, ":1", 2) != NULL ||
	    memmem(piece.data, piece.size, ":0", 2) != NULL)
		granted[server] = true;
}

/* --- requests ------------------------------------------------------------- */

struct word {
	const char *text;
	size_t length;
};

static void subscribe(struct connection *connection, struct word channel)
{
	if (channel.length >= sizeof(connection->channel))
		abort();
	memcpy(connection->channel, channel.text, channel.length);
	connection->channel[channel.length] = '\0';
	connection->next = 0;
}

static bool is(struct word word, const char *text)
{
	return word.length == strlen(text) &&
	       memcmp(word.text, text, word.length) == 0;
}

static void answer(struct connection *connection, const struct word *words)
{
	char text[400];

	if (is(words[0], "SUBSCRIBE") || is(words[0], "SSUBSCRIBE"))
		subscribe(connection, words[1]);
	if (!world.greets || is(words[0], "EVAL") || is(words[0], "EVALSHA") ||
	    is(words[0], "CLUSTER")) {
		answer_next(connection);
	} else if (is(words[0], "INFO")) {
		say_text(connection, "$85\r\n# Server\r\nrun_id:");
		for (size_t i = 0; i < 40; i++)
			say(connection, &"01234"[connection->server], 1);
		say_text(connection, "\r\nuptime_in_seconds:9999\r\n\r\n\r\n");
	} else if (is(words[0], "CONFIG")) {
		say_text(connection, "*0\r\n");
	} else if (is(words[0], "SENTINEL")) {
		say_text(connection, "*2\r\n$1\r\nh\r\n$1\r\n1\r\n");
	} else if (is(words[0], "EXISTS")) {
		say_text(connection, connection->server == 0
					     ? ":0\r\n"
					     : "-MOVED 1 h:1\r\n");
	} else if (memmem(words[0].text, words[0].length, "SUBSCRIBE", 9)) {
		snprintf(text, sizeof(text),
			 "*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%s\r\n:1\r\n",
			 strlen(connection->channel), connection->channel);
		say_text(connection, text);
	} else {
		say_text(connection, "+OK\r\n");
	}
}

/* A number and what ends it, after the byte that begins it; false where more
 * has to come. */
static bool take_number(const struct buffer *asked, size_t *at, char kind,
			size_t *number)
{
	const char *start = asked->data + *at;
	const char *end = memchr(start, '\n', asked->length - *at);

	if (end == NULL)
		return false;
	if (*start != kind)
		abort();
	*number = strtoul(start + 1, NULL, 10);
	*at = (size_t)(end + 1 - asked->data);
	return true;
}

/* The first request's length, 0 where it is not all there. */
static size_t take_request(const struct buffer *asked, struct word words[2])
{
	size_t at = 0, count = 0, length = 0;

	words[1] = (struct word){0};
	if (asked->length == 0 || !take_number(asked, &at, '*', &count))
		return 0;
	if (count == 0 || count > 300)
		abort();
	for (size_t i = 0; i < count; i++) {
		if (at >= asked->length ||
		    !take_number(asked, &at, '$', &length) ||
		    asked->length - at < length + 2)
			return 0;
		if (i < 2)
			words[i] = (struct word){asked->data + at, length};
		at += length + 2;
	}
	return at;
}

static void answer_requests(struct connection *connection)
{
	struct buffer *asked = &connection->asked;
	struct word words[2] = {0};
	size_t size;

	while ((size = take_request(asked, words)) > 0) {
		answer(connection, words);
		asked->length -= size;
		memmove(asked->data, asked->data + size, asked->length);
	}
}

/* One message for each that listens and for whom there is one. */
static bool publish(void)
{
	bool any = false;
	struct piece piece;
	char text[400];

	for (size_t i = 0; i < CONNECTIONS; i++) {
		struct connection *at = &connections[i];

		if (!at->open || at->ended || at->channel[0] == '\0' ||
		    !find_piece(&at->next, at->server, true, &piece))
			continue;
		snprintf(text, sizeof(text),
			 "*3\r\n$7\r\nmessage\r\n$%zu\r\n%s\r\n$%zu\r\n",
			 strlen(at->channel), at->channel, piece.size);
		say_text(at, text);
		say(at, piece.data, piece.size);
		say_text(at, "\r\n");
		granted[at->server] = true;
		any = true;
	}
	return any;
}

/* --- stream.h ------------------------------------------------------------- */

static struct connection *connection_of(int fd)
{
	if (fd < FIRST_FD || fd >= FIRST_FD + CONNECTIONS ||
	    !connections[fd - FIRST_FD].open)
		abort();
	return &connections[fd - FIRST_FD];
}

void stream_init(struct stream *stream)
{
	*stream = (struct stream){.fd = -1};
}

void stream_close(struct stream *stream)
{
	if (stream->fd >= 0) {
		struct connection *connection = connection_of(stream->fd);

		buffer_release(&connection->asked);
		buffer_release(&connection->said);
		*connection = (struct connection){0};
	}
	stream->fd = -1;
	stream->state = STREAM_DOWN;
}

void stream_leave(struct stream *stream)
{
	stream_close(stream);
}

void stream_reset(struct stream *stream)
{
	(void)stream;
}

const char *stream_open(struct stream *stream, const struct endpoint *at,
			bool tls)
{
	size_t server = at->path != NULL ? (size_t)(at->path[1] - '0')
					 : (at->port - 1U) % WORLD_SERVERS;
	size_t i = 0;

	(void)tls;
	stream_close(stream);
	if (world.down >> server & 1)
		return "Connection refused";
	while (connections[i].open)
		if (++i == CONNECTIONS)
			abort();
	connections[i].open = true;
	connections[i].server = server;
	stream->fd = FIRST_FD + (int)i;
	stream->state = STREAM_CONNECTING;
	return NULL;
}

const char *stream_step(struct stream *stream, short revents)
{
	if (stream->state == STREAM_CONNECTING && revents != 0)
		stream->state = STREAM_UP;
	return NULL;
}

int stream_fd(const struct stream *stream)
{
	return stream->fd;
}

short stream_events(const struct stream *stream, bool output)
{
	return stream->state == STREAM_CONNECTING ? POLLOUT
	       : output                           ? POLLIN | POLLOUT
						  : POLLIN;
}

const char *stream_why(struct stream *stream)
{
	(void)stream;
	return strerror(errno);
}

struct deadline stream_wake(const struct stream *stream)
{
	(void)stream;
	return deadline_never();
}

static size_t readable(const struct connection *connection)
{
	return connection->from > now
		       ? 0
		       : connection->said.length - connection->taken;
}

ssize_t stream_receive(struct stream *stream, void *data, size_t size)
{
	struct connection *connection = connection_of(stream->fd);
	size_t left = readable(connection);

	idle = 0;
	if (left == 0 && (!connection->ended || connection->from > now)) {
		errno = EAGAIN;
		return -1;
	}
	if (world.drips && size > 5)
		size = 5;
	size = left < size ? left : size;
	if (size > 0)
		memcpy(data, connection->said.data + connection->taken, size);
	connection->taken += size;
	return (ssize_t)size;
}

ssize_t stream_send(struct stream *stream, const void *data, size_t size)
{
	struct connection *connection = connection_of(stream->fd);

	if (connection->ended) {
		errno = EPIPE;
		return -1;
	}
	if (world.drips && size > 5000)
		size = 5000;
	idle = 0;
	buffer_append(&connection->asked, data, size);
	answer_requests(connection);
	return (ssize_t)size;
}

size_t stream_backlog(const struct stream *stream, int64_t ms)
{
	(void)stream;
	(void)ms;
	return 0;
}

int stream_address(const struct stream *stream, char *text, size_t size)
{
	snprintf(text, size, "10.0.0.%zu", connection_of(stream->fd)->server);
	return 0;
}

bool stream_is_listening(const char *path)
{
	(void)path;
	return false;
}

/* --- last_place.h --------------------------------------------------------------- */

void last_place_init(struct last_place *last, const char *what,
		     const char *name)
{
	(void)what;
	(void)name;
	*last = (struct last_place){0};
}

int last_place_read(struct last_place *last, unsigned slot,
		    struct endpoint *endpoint)
{
	(void)last;
	return world.hints && slot % 2 == 0 ? endpoint_set(endpoint, "h", "1")
					    : -1;
}

void last_place_write(struct last_place *last, unsigned slot,
		      const struct endpoint *endpoint)
{
	(void)last;
	(void)slot;
	if (endpoint->host == NULL || endpoint->port == 0)
		abort();
}

int last_place_read_word(struct last_place *last, char word[LAST_PLACE_WORD])
{
	(void)last;
	strlcpy(word, "one", LAST_PLACE_WORD);
	return world.hints ? 0 : -1;
}

void last_place_write_word(struct last_place *last, const char *word)
{
	(void)last;
	(void)word;
}

/* --- deadline.h ----------------------------------------------------------- */

static short ready_for(const struct pollfd *polled)
{
	const struct connection *connection;

	if (polled->fd < 0)
		return 0;
	if (polled->fd == WORLD_INTERRUPT)
		return world.interrupts > 0 && world_age() >= world.interrupts
			       ? POLLIN
			       : 0;
	if (polled->fd < FIRST_FD) { /* a file of this machine */
		struct pollfd real = {.fd = polled->fd, .events = POLLIN};

		return poll(&real, 1, 0) > 0 ? POLLIN : 0;
	}
	connection = connection_of(polled->fd);
	return (short)((polled->events & POLLOUT) |
		       (readable(connection) > 0 || (connection->ended &&
						     connection->from <= now)
				? POLLIN
				: 0));
}

static int look(struct pollfd *polled, nfds_t count)
{
	int ready = 0;

	for (nfds_t i = 0; i < count; i++) {
		polled[i].revents = ready_for(&polled[i]);
		ready += polled[i].revents != 0;
	}
	return ready;
}

/* The first moment from now on at which something comes by itself. */
static int64_t next_event(int64_t until)
{
	for (size_t i = 0; i < CONNECTIONS; i++)
		if (connections[i].open && connections[i].from > now &&
		    connections[i].from < until)
			until = connections[i].from;
	if (world.interrupts > world_age() &&
	    BEGINNING + world.interrupts < until)
		until = BEGINNING + world.interrupts;
	return until;
}

int deadline_poll(struct pollfd *polled, nfds_t count, struct deadline until)
{
	int ready = look(polled, count);

	if (idle++ > IDLE_MOST)
		abort();
	if (ready == 0 && publish()) {
		now += 10;
		ready = look(polled, count);
	}
	if (ready > 0 || until.at <= now)
		return ready;
	until.at = next_event(until.at);
	if (until.at == INT64_MAX)
		abort();
	now = until.at;
	return look(polled, count);
}

void deadline_after_fork(void)
{
}

void deadline_end_thread(void)
{
}

/* --- threads.h, watchdogs.h: nothing is done at once ---------------------------- */

int threads_start(pthread_t *thread, void *(*run)(void *), void *argument)
{
	(void)thread;
	(void)run;
	(void)argument;
	return EAGAIN;
}

void threads_each(size_t count, void (*act)(void *context, size_t i),
		  void *context)
{
	for (size_t i = 0; i < count; i++)
		act(context, i);
}

/* Nobody renews what is held while one is waited for: so it may be lost by then. */
void watchdogs_init(struct watchdogs *watchdogs, struct lock *const *locks,
		    size_t count, struct guard *guard, int64_t kill_after)
{
	(void)locks;
	(void)guard;
	(void)kill_after;
	*watchdogs = (struct watchdogs){.count = count};
}

int watchdogs_start(struct watchdogs *watchdogs, size_t but)
{
	(void)watchdogs;
	(void)but;
	return 0;
}

int watchdogs_interrupt(const struct watchdogs *watchdogs, int interrupt)
{
	(void)watchdogs;
	(void)interrupt;
	return -1;
}

/* Of keepers only, which are not in this world. */
void watchdogs_poll(const struct watchdogs *watchdogs, struct pollfd *polled)
{
	(void)watchdogs;
	(void)polled;
	abort();
}

const struct lock *watchdogs_lost(struct watchdogs *watchdogs,
				  struct error *why)
{
	(void)watchdogs;
	(void)why;
	abort();
}

size_t watchdogs_part(struct watchdogs *watchdogs, const struct lock *lost)
{
	(void)watchdogs;
	(void)lost;
	abort();
}

void watchdogs_stop(struct watchdogs *watchdogs)
{
	(void)watchdogs;
}

void watchdogs_release(struct watchdogs *watchdogs)
{
	(void)watchdogs;
}

/* --- the world ------------------------------------------------------------ */

void world_begin(struct world_rules rules, const uint8_t *data, size_t size)
{
	world = rules;
	input = data;
	input_size = size;
	memset(next_piece, 0, sizeof(next_piece));
	memset(silent, 0, sizeof(silent));
	memset(granted, 0, sizeof(granted));
	now = BEGINNING;
	idle = 0;
	random_state = 1;
}

void world_end(void)
{
	for (size_t i = 0; i < CONNECTIONS; i++)
		if (connections[i].open)
			abort();
}

size_t world_granted(void)
{
	size_t count = 0;

	for (size_t i = 0; i < WORLD_SERVERS; i++)
		count += granted[i];
	return count;
}
