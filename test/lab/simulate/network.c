#include "network.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "record.h"

#define CHANNELS_MOST 32
#define FDS_MOST 8192
#define TOKEN_MOST 79
#define RTO (200 * MS) /* until what was lost is sent again */

/* After how long a kernel gives up a half-open connection: if data that was sent is not
 * acknowledged; and if nothing was sent, and it probes (stream.c). */
#define UNACKNOWLEDGED (5 * SECOND)
#define IDLE (15 * SECOND)

enum way { TO_SERVER, FROM_SERVER };

struct connection {
	int fd;
	int64_t id; /* of all that were accepted */
	bool is_event, signalled;
	struct process *process;
	struct node *node;
	unsigned node_life;
	size_t host;
	int64_t arrival[2]; /* of the last segment */
	int64_t held;       /* until then nothing more is read of it */
	bool forgotten;     /* nothing gets through any more */
	/* the client's end */
	bool open, up, ended;
	int error;
	struct buffer inbox;
	size_t taken;
	struct fiber *waiting;
	/* the server's end */
	bool accepted, closed;
	struct buffer input;
	struct buffer output;
	char token[TOKEN_MOST + 1]; /* of an attempt that is answered there */
	char *channels[CHANNELS_MOST];
	size_t channels_end;     /* there are none from there on */
	struct connection *next; /* of this node */
};

struct node nodes[NODES_MOST];
size_t node_count;
struct link links[HOSTS_MOST][NODES_MOST];
struct straying straying[HOSTS_MOST];

static struct connection *table[FDS_MOST];
static size_t table_end;
static struct connection *accepted[NODES_MOST];
static struct chance weather[HOSTS_MOST];
static struct chance breaking; /* of connections after a break */
static int64_t last_id;

FILE *network_record;
void (*network_before_break)(struct node *node, struct word key,
			     struct word token);
void (*network_after_grant)(struct node *node, size_t host, struct word record,
			    int64_t fence);
void (*network_after_answer)(size_t host, size_t node, const char *token,
			     int64_t asked);

static void record(const struct node *node, enum entry_kind kind,
		   int64_t connection, const void *data, size_t size)
{
	const struct entry entry = {kind, connection, node_now(node),
				    (int64_t)size};

	if (network_record == NULL || node->number != 0)
		return;
	fwrite(&entry, sizeof(entry), 1, network_record);
	fwrite(data, 1, size, network_record);
}

void network_note_loss(struct node *node, bool data)
{
	if (node->busy && node->number == 0)
		network_record = NULL; /* a real one would refuse that, too */
	node->losses += data;
	if (data)
		node->lost = world_now;
	record(node, data ? ENTRY_EMPTY : ENTRY_SCRIPTS, 0, "", 0);
}

int64_t node_now(const struct node *node)
{
	return clock_read(&node->wall);
}

/* --- segments -------------------------------------------------------------- */

enum kind { OPENING, OPENED, REFUSED, DATA, END, RESET };

struct segment {
	struct connection *connection;
	enum kind kind;
	char *data;
	size_t size;
	char token[TOKEN_MOST + 1]; /* whose attempt it answers; else empty */
	int64_t asked;
};

static void arrive_at_server(struct segment *segment);
static void arrive_at_client(struct segment *segment);

static void do_arrive(void *context, uint64_t way)
{
	struct segment *segment = context;

	if (way == TO_SERVER && segment->connection->held > world_now) {
		world_at(segment->connection->held, do_arrive, segment, way);
		return;
	}
	world_mix(segment->size * 8 + segment->kind);
	if (!segment->connection->forgotten) {
		if (way == TO_SERVER)
			arrive_at_server(segment);
		else
			arrive_at_client(segment);
	}
	free(segment->data);
	free(segment);
}

static int64_t delay_of(const struct link *link, struct chance *chance)
{
	int64_t part = chance_between(chance, 0, 1000);
	int64_t delay = link->distance +
			link->jitter * part / 1000 * part / 1000 * part / 1000;

	while (chance_is(chance, link->lost))
		delay += RTO;
	return delay;
}

static void send_segment(struct connection *connection, enum way way,
			 enum kind kind, const void *data, size_t size)
{
	size_t host = connection->host, server = connection->node->number;
	const struct link *link = &links[host][server];
	struct chance *chance = &weather[host];
	int64_t at = world_now + delay_of(link, chance);
	struct segment *segment;

	if (way == FROM_SERVER)
		at += connection->node->slowness + link->late;
	if (link->cut[way] > world_now) {
		if (kind == RESET || kind == REFUSED)
			return; /* nobody sends it again */
		at += link->cut[way] - world_now +
		      chance_between(chance, 0, 5 * RTO);
	}
	if (at <= connection->arrival[way])
		at = connection->arrival[way] + 1;
	connection->arrival[way] = at;
	segment = xcalloc(1, sizeof(*segment));
	*segment = (struct segment){connection, kind, NULL, size};
	if (way == FROM_SERVER && kind == DATA) {
		memcpy(segment->token, connection->token, TOKEN_MOST + 1);
		segment->asked = world_now;
		*connection->token = '\0';
	}
	if (size > 0) {
		segment->data = xcalloc(1, size);
		memcpy(segment->data, data, size);
	}
	world_at(at, do_arrive, segment, way);
}

/* --- the server's end ------------------------------------------------------ */

static void unlink_connection(struct connection *connection)
{
	struct connection **at = &accepted[connection->node->number];

	while (*at != NULL && *at != connection)
		at = &(*at)->next;
	if (*at != NULL)
		*at = connection->next;
}

static void close_at_server(struct connection *connection, enum kind kind)
{
	if (connection->closed)
		return;
	connection->closed = true;
	record(connection->node, ENTRY_CLOSED, connection->id, "", 0);
	unlink_connection(connection);
	for (size_t i = 0; i < CHANNELS_MOST; i++) {
		free(connection->channels[i]);
		connection->channels[i] = NULL;
	}
	buffer_release(&connection->input);
	send_segment(connection, FROM_SERVER, kind, NULL, 0);
}

static bool listens(const struct connection *connection, struct word channel)
{
	for (size_t i = 0; i < connection->channels_end; i++)
		if (connection->channels[i] != NULL &&
		    strlen(connection->channels[i]) == channel.length &&
		    memcmp(connection->channels[i], channel.data,
			   channel.length) == 0)
			return true;
	return false;
}

static size_t count_subscribers(void *context, struct word channel)
{
	const struct node *node = context;
	size_t count = 0;

	for (struct connection *at = accepted[node->number]; at != NULL;
	     at = at->next)
		count += listens(at, channel);
	return count;
}

static size_t publish(void *context, struct word channel, struct word message)
{
	const struct node *node = context;
	size_t count = 0;

	for (struct connection *at = accepted[node->number]; at != NULL;
	     at = at->next) {
		struct buffer text = {0};

		if (!listens(at, channel))
			continue;
		count++;
		buffer_print(&text, "*3\r\n$7\r\nmessage\r\n");
		answer_word(&text, channel);
		answer_word(&text, message);
		world_tell(node->name, "tells client %zu: %.*s", at->host,
			   (int)message.length, message.data);
		send_segment(at, FROM_SERVER, DATA, text.data, text.length);
		record(node, ENTRY_MESSAGE, at->id, text.data, text.length);
		buffer_release(&text);
	}
	return count;
}

static void subscribe(struct connection *connection, const struct word *words)
{
	size_t i = 0, count = 0;

	while (i < CHANNELS_MOST && connection->channels[i] != NULL)
		i++;
	if (i == CHANNELS_MOST)
		abort();
	connection->channels[i] = strndup(words[1].data, words[1].length);
	if (i >= connection->channels_end)
		connection->channels_end = i + 1;
	for (i = 0; i < CHANNELS_MOST; i++)
		count += connection->channels[i] != NULL;
	buffer_print(&connection->output, "*3\r\n$9\r\nsubscribe\r\n");
	answer_word(&connection->output, words[1]);
	answer_number(&connection->output, ':', (int64_t)count);
}

/* All of them: one answer for each. */
static void unsubscribe(struct connection *connection)
{
	size_t left = 0, said = 0;

	for (size_t i = 0; i < CHANNELS_MOST; i++)
		left += connection->channels[i] != NULL;
	for (size_t i = 0; i < CHANNELS_MOST || said == 0; i++) {
		char *channel =
			i < CHANNELS_MOST ? connection->channels[i] : NULL;

		if (channel == NULL && (i < CHANNELS_MOST || said > 0))
			continue;
		buffer_print(&connection->output,
			     "*3\r\n$11\r\nunsubscribe\r\n");
		if (channel != NULL)
			answer_word(&connection->output,
				    (struct word){channel, strlen(channel)});
		else
			buffer_print(&connection->output, "$-1\r\n");
		answer_number(&connection->output, ':',
			      left > 0 ? (int64_t)--left : 0);
		said++;
		free(channel);
		if (i < CHANNELS_MOST)
			connection->channels[i] = NULL;
	}
}

static void answer_info(const struct node *node, struct buffer *output)
{
	struct buffer text = {0};

	buffer_print(&text,
		     "# Server\r\nredis_version:7.0.15\r\nrun_id:%s\r\n"
		     "uptime_in_seconds:%lld\r\n\r\n",
		     node->run_id,
		     (long long)((node_now(node) / SECOND) -
				 node->started / SECOND));
	answer_word(output, (struct word){text.data, text.length});
	buffer_release(&text);
}

static void answer_user(struct buffer *output)
{
	buffer_print(output, "*12\r\n$5\r\nflags\r\n*2\r\n$2\r\non\r\n$6\r\n"
			     "nopass\r\n$9\r\npasswords\r\n*0\r\n$8\r\n"
			     "commands\r\n$5\r\n+@all\r\n$4\r\nkeys\r\n$2\r\n"
			     "~*\r\n$8\r\nchannels\r\n$2\r\n&*\r\n$9\r\n"
			     "selectors\r\n*0\r\n");
}

static void answer_config(const struct node *node, struct buffer *output)
{
	struct word always = {"always", 6}, everysec = {"everysec", 8};

	buffer_print(output, "*4\r\n$10\r\nappendonly\r\n");
	answer_word(output, node->keeps == KEEPS_NOTHING
				    ? (struct word){"no", 2}
				    : (struct word){"yes", 3});
	buffer_print(output, "$11\r\nappendfsync\r\n");
	answer_word(output, node->keeps == KEEPS_ALWAYS ? always : everysec);
}

static void tell_request(const struct node *node,
			 const struct connection *connection,
			 const struct word *words, size_t count,
			 const char *answer)
{
	struct buffer text = {0};

	if (!world_tells)
		return;
	for (size_t i = word_is(words[0], "eval") ? 2 : 1; i < count; i++)
		buffer_print(&text, " %.*s",
			     (int)strcspn(words[i].length > 66 ? "..."
							       : words[i].data,
					  "\r\n"),
			     words[i].length > 66 ? "..." : words[i].data);
	buffer_print(&text, " -> ");
	for (size_t i = 0; i < 160 && answer[i] != '\0'; i++)
		if (answer[i] != '\r')
			buffer_append(&text,
				      answer[i] == '\n' ? " " : &answer[i], 1);
	world_tell(node->name, "client %zu: %.*s%s", connection->host,
		   (int)words[0].length, words[0].data, text.data);
	buffer_release(&text);
}

/* What Redis 7.0 says, to which of the requests that there are. */
static const char *refusal_of(const struct node *node, struct word command)
{
	static const char *const told[] = {"info", "config",    "client",
					   "acl",  "subscribe", "unsubscribe"};

	if (word_is(command, "auth"))
		return NULL;
	if (node->busy)
		return "BUSY Redis is busy running a script. You can only call "
		       "SCRIPT KILL or SHUTDOWN NOSAVE.";
	if (world_now >= node->loads_until)
		return NULL;
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
		if (word_is(command, told[i]))
			return NULL;
	return "LOADING Redis is loading the dataset in memory";
}

static void execute(struct connection *connection, const struct word *words,
		    size_t count)
{
	struct node *node = connection->node;
	struct buffer *output = &connection->output;
	size_t before = output->length;
	const char *refusal = refusal_of(node, words[0]);

	if (refusal != NULL)
		answer_error(output, refusal);
	else if (word_is(words[0], "subscribe"))
		subscribe(connection, words);
	else if (word_is(words[0], "unsubscribe"))
		unsubscribe(connection);
	else if (word_is(words[0], "info"))
		answer_info(node, output);
	else if (word_is(words[0], "config"))
		answer_config(node, output);
	else if (word_is(words[0], "acl"))
		answer_user(output);
	else if (word_is(words[0], "client") || word_is(words[0], "auth"))
		buffer_print(output, "+OK\r\n");
	else
		store_execute(node->store, node_now(node), words, count,
			      output);
	tell_request(node, connection, words, count, output->data + before);
}

#define WORDS_MOST 300

/* The first request's length; 0: it is not all there. */
static size_t read_request(const struct buffer *input, struct word *words,
			   size_t *count)
{
	const char *at = input->data, *end = at + input->length, *line;

	if (input->length == 0 ||
	    (line = memchr(at, '\n', input->length)) == NULL)
		return 0;
	*count = strtoul(at + 1, NULL, 10);
	if (*at != '*' || *count == 0 || *count > WORDS_MOST)
		world_violation("a request that is none: %.40s", at);
	at = line + 1;
	for (size_t i = 0; i < *count; i++) {
		size_t length;

		if (at >= end ||
		    (line = memchr(at, '\n', (size_t)(end - at))) == NULL)
			return 0;
		length = strtoul(at + 1, NULL, 10);
		if ((size_t)(end - line - 1) < length + 2)
			return 0;
		words[i] = (struct word){line + 1, length};
		at = line + 1 + length + 2;
	}
	return (size_t)(at - input->data);
}

static void send_output(struct connection *connection)
{
	if (connection->output.length > 0)
		send_segment(connection, FROM_SERVER, DATA,
			     connection->output.data,
			     connection->output.length);
	connection->output.length = 0;
}

/* The connection breaks around this request. True: it is not executed. */
static bool breaks(struct connection *connection, bool *when)
{
	if (!*when)
		return false;
	*when = false;
	connection->output.length = 0;
	world_tell(connection->node->name,
		   "its connection to client %zu breaks", connection->host);
	close_at_server(connection, RESET);
	return true;
}

/* Whether the token has another slot than its request names: "N/slot/moves". */
static bool is_move(const struct node *node, const struct word *words)
{
	const struct word *token = &words[9], *permits = &words[15];
	const char *slash = memchr(permits->data, '/', permits->length);
	char field[80];
	int64_t has;

	if (slash == NULL)
		return false;
	snprintf(field, sizeof(field), "slot:%.*s", (int)token->length,
		 token->data);
	has = store_field(node->store, node_now(node) / MS, words[4], field);
	return has > 0 && has % (1 << 20) != strtol(slash + 1, NULL, 10);
}

/* By what script.c sends: EVALSHA SHA1 KEYS KEY ... database token ARGUMENT ... */
static enum request_kind kind_of(const struct node *node,
				 const struct word *words, size_t count)
{
	const struct word *more = &words[10];

	if (!word_is(words[0], "eval") && !word_is(words[0], "evalsha"))
		return REQUEST_OTHER;
	if (count == 8 && word_is(words[2], "2"))
		return REQUEST_RAISE;
	if (count < 13 || !word_is(words[2], "5"))
		return REQUEST_OTHER;
	if (count == 21)
		return is_move(node, words)    ? REQUEST_MOVE
		       : word_is(more[3], "0") ? REQUEST_ACQUIRE
					       : REQUEST_PUT_BACK;
	if (count == 14 ||
	    (count == 13 && more[0].length > 0 && more[0].length < 20 &&
	     *more[0].data >= '0' && *more[0].data <= '9'))
		return REQUEST_EXTEND;
	if (count == 13 && more[0].length % 41 == 0) /* digests, and blanks */
		return REQUEST_BREAK;
	if (word_is(more[0], "*") || word_is(more[0], "*+"))
		return REQUEST_OTHER; /* it asks which holds there are (pick.h) */
	return count == 13 ? REQUEST_RELEASE : REQUEST_OTHER;
}

static void serve(struct connection *connection);

static void do_serve(void *context, uint64_t value)
{
	(void)value;
	serve(context);
}

const char *const request_names[REQUEST_KINDS] = {
	[REQUEST_ACQUIRE] = "an acquire", [REQUEST_PUT_BACK] = "a put-back",
	[REQUEST_MOVE] = "a move",        [REQUEST_RAISE] = "a raise",
	[REQUEST_EXTEND] = "an extend",   [REQUEST_RELEASE] = "a release",
};

/* The client asks again, by another connection. */
static void stray(struct connection *connection, int64_t come)
{
	struct link *link = &links[connection->host][connection->node->number];

	world_tell("FAULT",
		   "client %zu is told by server %zu of a reset, and "
		   "what it has asked comes late",
		   connection->host, connection->node->number);
	send_segment(connection, FROM_SERVER, RESET, NULL, 0);
	connection->held = come;
	world_at(come, do_serve, connection, 0);
	if (link->held < come)
		link->held = come;
}

static bool has_strayed(struct connection *connection, enum request_kind kind)
{
	struct straying *its = &straying[connection->host];
	bool *last = &its->last[connection->node->number];

	if (kind != REQUEST_ACQUIRE || world_now >= its->until)
		return false;
	*last = !*last;
	if (!*last)
		return false;
	stray(connection, its->come);
	return true;
}

/* The link is cut, mostly for a moment. The request is executed when it is mended; or its
 * connection is reset before; or it is executed at once, and its answer is late. True: it is not
 * executed, or not yet. */
static bool is_cut_at(struct connection *connection, enum request_kind kind)
{
	struct node *node = connection->node;
	struct link *link = &links[connection->host][node->number];
	const struct cuts *cuts = &node->cuts[kind];
	int64_t ends, how; /* 0: late, 1: never, 2: its answer is late */
	bool alone;

	if (world_now >= cuts->until || !chance_is(&node->chance, cuts->rate))
		return false;
	how = chance_between(&node->chance, 0, 2);
	ends = world_now + chance_between(&node->chance, 0,
					  chance_is(&node->chance, 700)
						  ? 300 * MS
						  : cuts->longest);
	alone = how == 0 && kind == REQUEST_MOVE &&
		chance_is(&node->chance, 600);
	world_tell("FAULT", "client %zu and server %zu are cut off at %s%s",
		   connection->host, node->number, request_names[kind],
		   alone      ? ", which alone comes late"
		   : how == 0 ? ", which comes late"
		   : how == 1 ? ", which never comes"
			      : ", and its answer is late");
	if (how == 0) {
		send_output(connection);
		connection->held = ends;
		world_at(ends, do_serve, connection, 0);
	} else if (how == 1) {
		connection->output.length = 0;
		close_at_server(connection, RESET);
	}
	if (link->held < ends)
		link->held = ends;
	for (size_t way = 0; way < 2 && !alone; way++)
		if (link->cut[way] < ends)
			link->cut[way] = ends;
	return how < 2;
}

/* If the answer is acquire.lua's: *8, :1 and the fence. */
static void tell_grant(const struct connection *connection,
		       enum request_kind kind, const struct word *words,
		       const char *answer)
{
	static const char begins[] = "*8\r\n:1\r\n:";
	size_t length = sizeof(begins) - 1;
	bool attempts = kind == REQUEST_ACQUIRE || kind == REQUEST_MOVE;
	bool granted = attempts && strncmp(answer, begins, length) == 0;

	if (granted || kind == REQUEST_PUT_BACK || kind == REQUEST_EXTEND)
		links[connection->host][connection->node->number].leased =
			world_now;
	if (granted && network_after_grant != NULL)
		network_after_grant(connection->node, connection->host,
				    words[4],
				    strtoll(answer + length, NULL, 10));
}

static void serve(struct connection *connection)
{
	struct node *node = connection->node;
	struct word words[WORDS_MOST];
	size_t count, length, before;
	enum request_kind kind;

	while (!connection->closed && !node->stopped &&
	       connection->held <= world_now &&
	       (length = read_request(&connection->input, words, &count)) > 0) {
		if (breaks(connection, &node->breaks_before))
			return;
		kind = kind_of(node, words, count);
		if (kind < REQUEST_KINDS && (has_strayed(connection, kind) ||
					     is_cut_at(connection, kind)))
			return;
		if (kind == REQUEST_BREAK && network_before_break != NULL &&
		    refusal_of(node, words[0]) == NULL) {
			network_before_break(node, words[3], words[9]);
			node->breaks_after |= chance_is(&breaking, 300);
		}
		record(node, ENTRY_REQUEST, connection->id,
		       connection->input.data, length);
		before = connection->output.length;
		if (kind == REQUEST_ACQUIRE &&
		    refusal_of(node, words[0]) == NULL)
			snprintf(connection->token, TOKEN_MOST + 1, "%.*s",
				 (int)words[9].length, words[9].data);
		execute(connection, words, count);
		tell_grant(connection, kind, words,
			   connection->output.data + before);
		record(node, ENTRY_ANSWER, connection->id,
		       connection->output.data + before,
		       connection->output.length - before);
		if (breaks(connection, &node->breaks_after) ||
		    (kind == REQUEST_RELEASE &&
		     breaks(connection, &node->breaks_release)))
			return;
		connection->input.length -= length;
		memmove(connection->input.data, connection->input.data + length,
			connection->input.length);
	}
	send_output(connection);
}

static void accept_connection(struct connection *connection)
{
	struct node *node = connection->node;

	if (!node->up) {
		send_segment(connection, FROM_SERVER, REFUSED, NULL, 0);
		return;
	}
	connection->accepted = true;
	connection->id = ++last_id;
	connection->node_life = node->life;
	connection->next = accepted[node->number];
	accepted[node->number] = connection;
	send_segment(connection, FROM_SERVER, OPENED, NULL, 0);
}

static void arrive_at_server(struct segment *segment)
{
	struct connection *connection = segment->connection;
	struct node *node = connection->node;

	if (!node->powered)
		return;
	if (segment->kind == OPENING) {
		accept_connection(connection);
	} else if (connection->closed || connection->node_life != node->life) {
		if (segment->kind == DATA)
			send_segment(connection, FROM_SERVER, RESET, NULL, 0);
	} else if (segment->kind == DATA) {
		buffer_append(&connection->input, segment->data, segment->size);
		serve(connection);
	} else if (segment->kind == RESET || !node->stopped) {
		close_at_server(connection, END);
	} /* one that is stopped reads the rest first: node_continue */
}

/* --- faults ---------------------------------------------------------------- */

static void name_run(struct node *node)
{
	for (size_t i = 0; i < 40; i++)
		node->run_id[i] = "0123456789abcdef"[chance_between(
			&node->chance, 0, 15)];
}

void network_boot(struct node *node, int64_t uptime)
{
	const struct store_host host = {node, publish, count_subscribers};

	node->up = node->powered = true;
	node->life = 1;
	node->lost = -1000 * SECOND;
	node->store = store_new(&host);
	node->started = node_now(node) - uptime;
	name_run(node);
}

void network_begin(uint64_t seed, size_t count)
{
	node_count = count;
	breaking = chance_of(seed, 1999);
	for (size_t i = 0; i < count; i++) {
		nodes[i].number = i;
		nodes[i].chance = chance_of(seed, 1000 + i);
		snprintf(nodes[i].name, sizeof(nodes[i].name), "server %c",
			 (char)('0' + i));
	}
	for (size_t i = 0; i < HOSTS_MOST; i++)
		weather[i] = chance_of(seed, 2000 + i);
}

void node_stop(struct node *node)
{
	world_tell(node->name, "is stopped");
	node->stopped = true;
}

void node_continue(struct node *node)
{
	struct connection *all[FDS_MOST];
	size_t count = 0;

	if (!node->stopped)
		return;
	world_tell(node->name, "goes on");
	node->stopped = false;
	for (struct connection *at = accepted[node->number]; at != NULL;
	     at = at->next)
		all[count++] = at;
	/* in any order */
	for (size_t i = count; i > 1; i--) {
		size_t k = (size_t)chance_between(&node->chance, 0,
						  (int64_t)i - 1);
		struct connection *other = all[k];

		all[k] = all[i - 1];
		all[i - 1] = other;
	}
	for (size_t i = 0; i < count; i++) {
		serve(all[i]);
		if (!all[i]->open && !all[i]->closed)
			close_at_server(all[i], END);
	}
}

static void end_script(struct node *node)
{
	if (!node->busy)
		return;
	node->busy = false;
	record(node, ENTRY_IDLE, 0, "", 0);
}

static void do_end_script(void *context, uint64_t value)
{
	struct node *node = context;

	(void)value;
	if (world_now < node->busy_until || !node->busy)
		return;
	world_tell(node->name, "is not busy any more");
	end_script(node);
}

void node_occupy(struct node *node, int64_t lasts)
{
	if (!node->up)
		return;
	world_tell(node->name, "is busy with a script");
	if (node->busy_until < world_now + lasts)
		node->busy_until = world_now + lasts;
	world_at(node->busy_until, do_end_script, node, 0);
	if (!node->busy)
		record(node, ENTRY_BUSY, 0, "", 0);
	node->busy = true;
}

void node_load(struct node *node, int64_t lasts)
{
	world_tell(node->name, "loads its data");
	node->loads_until = world_now + lasts;
	if (node->number == 0)
		network_record = NULL; /* there is no telling Redis of this */
}

void node_kill(struct node *node, bool power)
{
	if (!node->up)
		return;
	world_tell(node->name, power ? "loses its power" : "is killed");
	end_script(node);
	node->up = node->stopped = false;
	node->powered = !power;
	node->breaks_before = node->breaks_after = false;
	node->breaks_release = false;
	while (accepted[node->number] != NULL) {
		struct connection *first = accepted[node->number];

		if (power) {
			first->closed = true;
			record(node, ENTRY_CLOSED, first->id, "", 0);
			accepted[node->number] = first->next;
			continue;
		}
		close_at_server(first, first->input.length > 0 ? RESET : END);
	}
}

void node_restart(struct node *node, struct store *data)
{
	const struct store_host host = {node, publish, count_subscribers};

	if (node->up)
		abort();
	world_tell(node->name, "is started %s",
		   data != NULL ? "with what it had" : "empty");
	network_note_loss(node, false);
	store_free(node->store);
	node->store = data != NULL ? data : store_new(&host);
	node->up = node->powered = true;
	node->life++;
	node->started = node_now(node);
	name_run(node);
}

void network_reset(size_t host, size_t server)
{
	for (size_t i = 0; i < table_end; i++) {
		struct connection *at = table[i];

		if (at == NULL || at->is_event || at->host != host ||
		    at->node->number != server)
			continue;
		if (at->accepted && !at->closed)
			close_at_server(at, RESET);
	}
}

static void do_give_up(void *context, uint64_t value)
{
	struct connection *connection = context;

	(void)value;
	if (!connection->open || connection->error != 0)
		return;
	connection->error = ETIMEDOUT;
	if (connection->waiting != NULL)
		world_wake(connection->waiting);
}

void network_forget(size_t host, size_t server)
{
	for (size_t i = 0; i < table_end; i++) {
		struct connection *at = table[i];

		if (at != NULL && !at->is_event && at->host == host &&
		    at->node->number == server) {
			at->forgotten = true;
			world_at(world_now + IDLE, do_give_up, at, 0);
		}
	}
}

/* --- the client's end ------------------------------------------------------ */

static void wake(struct connection *connection)
{
	if (connection->waiting != NULL)
		world_wake(connection->waiting);
	connection->waiting = NULL;
}

static void arrive_at_client(struct segment *segment)
{
	struct connection *connection = segment->connection;

	if (!connection->open) {
		if (segment->kind == DATA)
			send_segment(connection, TO_SERVER, RESET, NULL, 0);
		return;
	}
	switch (segment->kind) {
	case OPENED:
		connection->up = true;
		break;
	case REFUSED:
		connection->error = ECONNREFUSED;
		break;
	case DATA:
		if (*segment->token != '\0' && network_after_answer != NULL)
			network_after_answer(connection->host,
					     connection->node->number,
					     segment->token, segment->asked);
		buffer_append(&connection->inbox, segment->data, segment->size);
		break;
	case RESET:
		connection->error = ECONNRESET;
		break;
	default:
		connection->ended = true;
	}
	wake(connection);
}

static struct connection *new_fd(void)
{
	struct connection *connection = xcalloc(1, sizeof(*connection));
	size_t i = 0;

	while (table[i] != NULL)
		if (++i == FDS_MOST)
			abort();
	table_end = i < table_end ? table_end : i + 1;
	*connection = (struct connection){.fd = FD_FIRST + (int)i,
					  .process = world_process(),
					  .open = true};
	table[i] = connection;
	return connection;
}

struct connection *network_connection(int fd)
{
	return fd < FD_FIRST || fd >= FD_FIRST + FDS_MOST
		       ? NULL
		       : table[fd - FD_FIRST];
}

static struct connection *must_be(int fd)
{
	struct connection *connection = network_connection(fd);

	if (connection == NULL)
		world_violation("descriptor %d is not open", fd);
	return connection;
}

int network_connect(size_t server)
{
	struct connection *connection = new_fd();

	connection->node = &nodes[server];
	connection->host = connection->process->host;
	send_segment(connection, TO_SERVER, OPENING, NULL, 0);
	return connection->fd;
}

static void close_connection(struct connection *connection, bool reset)
{
	table[connection->fd - FD_FIRST] = NULL;
	connection->open = false;
	connection->waiting = NULL;
	if (connection->is_event) {
		free(connection);
		return;
	}
	if (connection->inbox.length > connection->taken)
		reset = true; /* as the kernel does where something is unread */
	buffer_release(&connection->inbox);
	if (connection->error == 0)
		send_segment(connection, TO_SERVER, reset ? RESET : END, NULL,
			     0);
}

void network_close(int fd, bool reset)
{
	close_connection(must_be(fd), reset);
}

void network_close_all(struct process *process)
{
	for (size_t i = 0; i < table_end; i++)
		if (table[i] != NULL && table[i]->process == process)
			close_connection(table[i], false);
}

size_t network_open(const struct process *process)
{
	size_t count = 0;

	for (size_t i = 0; i < table_end; i++)
		count += table[i] != NULL && table[i]->process == process;
	return count;
}

enum link_state network_state(int fd, int *error)
{
	struct connection *connection = must_be(fd);

	*error = connection->error;
	return connection->error != 0 && !connection->up ? LINK_FAILED
	       : connection->up                          ? LINK_UP
							 : LINK_CONNECTING;
}

long network_receive(int fd, void *data, size_t size)
{
	struct connection *connection = must_be(fd);
	size_t left = connection->inbox.length - connection->taken;

	if (left == 0 && connection->error == 0 && connection->ended)
		return 0;
	if (left == 0) {
		errno = connection->error != 0 ? connection->error : EAGAIN;
		return -1;
	}
	size = left < size ? left : size;
	memcpy(data, connection->inbox.data + connection->taken, size);
	connection->taken += size;
	if (connection->taken == connection->inbox.length)
		connection->taken = connection->inbox.length = 0;
	return (long)size;
}

long network_send(int fd, const void *data, size_t size)
{
	struct connection *connection = must_be(fd);

	if (connection->error != 0) {
		errno = connection->error;
		return -1;
	}
	send_segment(connection, TO_SERVER, DATA, data, size);
	if (connection->forgotten)
		world_at(world_now + UNACKNOWLEDGED, do_give_up, connection, 0);
	return (long)size;
}

short network_ready(int fd, short events, struct fiber *fiber)
{
	struct connection *connection = must_be(fd);
	bool readable = connection->signalled || connection->ended ||
			connection->error != 0 ||
			connection->inbox.length > connection->taken;
	bool writable = connection->up || connection->error != 0;

	connection->waiting = fiber;
	return (short)((readable && (events & POLLIN) ? POLLIN : 0) |
		       (writable && (events & POLLOUT) ? POLLOUT : 0) |
		       (connection->error != 0 ? POLLERR : 0));
}

int network_event(void)
{
	struct connection *event = new_fd();

	event->is_event = true;
	return event->fd;
}

void network_signal(int fd)
{
	struct connection *event = must_be(fd);

	event->signalled = true;
	wake(event);
}
