/*
 * Whether store.c behaves as a real Redis server does.
 *
 *	differential SOCKET CLOCK --random SEED COUNT
 *	differential SOCKET CLOCK FILE ...
 *
 * SOCKET is that of a redis-server which has test/lab/soak/clock.c preloaded, and CLOCK
 * the file that it reads its clock from. This program lets that clock stand still, and
 * moves it on from one request to the next, so that expiry can be compared to the ms.
 *
 * --random draws commands, with keys of all types that expire, and asks both. A FILE is
 * what `simulate --record` has written: all requests of a run, whose answers and
 * messages are known. Their numbers, texts and order must be the same, byte for byte;
 * of an error its first word.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "record.h"
#include "store.h"

#define CONNECTIONS_MOST 100000
#define EPOCH INT64_C(1700000000000000) /* us */

/* As clock.c has it. At this rate it stands still. */
static struct setting {
	int64_t offset, rate, since;
} *volatile setting;

static const char *socket_path;
static int sockets[CONNECTIONS_MOST]; /* by connection; 0: none */
static int script_fd;                 /* of the client whose script runs */
static uint64_t compared;

static void fail(const char *what)
{
	fprintf(stderr, "differential: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void open_clock(const char *path)
{
	struct timespec now;
	int fd = open(path, O_RDWR);

	setting = mmap(NULL, sizeof(*setting), PROT_READ | PROT_WRITE,
		       MAP_SHARED, fd, 0);
	if (fd < 0 || setting == MAP_FAILED)
		fail(path);
	timespec_get(&now, TIME_UTC);
	setting->since = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
	setting->rate = -1000000;
}

static void set_clock(int64_t us)
{
	setting->offset = us * 1000 - setting->since;
}

/* --- the real one ---------------------------------------------------------- */

static int connect_real(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", socket_path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		fail(socket_path);
	return fd;
}

static int socket_of(int64_t connection)
{
	if (connection < 0 || connection >= CONNECTIONS_MOST)
		abort();
	if (sockets[connection] == 0)
		sockets[connection] = connect_real();
	return sockets[connection];
}

static void send_real(int fd, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t sent = write(fd, data, size);

		if (sent <= 0)
			fail("write");
		data += sent;
		size -= (size_t)sent;
	}
}

/* Reads as much as the store has said; of an error a line. What is missing
 * after 20 s does not come. */
static void read_answer(int fd, const char *ours, size_t size,
			struct buffer *answer)
{
	struct pollfd polled = {.fd = fd, .events = POLLIN};
	bool line = size > 0 && *ours == '-';

	answer->length = 0;
	buffer_reserve(answer, size + 1);
	while (line ? answer->length == 0 ||
			       answer->data[answer->length - 1] != '\n'
		    : answer->length < size) {
		ssize_t got;

		if (poll(&polled, 1, 20000) <= 0)
			break;
		buffer_reserve(answer, 2);
		got = read(fd, answer->data + answer->length,
			   line ? 1 : size - answer->length);
		if (got <= 0)
			fail("read");
		answer->length += (size_t)got;
		answer->data[answer->length] = '\0';
	}
}

/* --- comparing ------------------------------------------------------------- */

static bool is_same(const char *a, size_t a_size, const char *b, size_t b_size)
{
	size_t word = strcspn(a, " \r\n");

	compared++;
	if (a_size > 0 && *a == '-')
		return b_size > word && memcmp(a, b, word) == 0;
	return a_size == b_size && memcmp(a, b, a_size) == 0;
}

static void differ(const char *asked, size_t asked_size, const char *ours,
		   size_t ours_size, const struct buffer *real)
{
	printf("asked:\n%.*s\nthe store: %.*s\nRedis: %.*s\n", (int)asked_size,
	       asked, (int)ours_size, ours, (int)real->length, real->data);
	exit(1);
}

/* --- what was recorded ----------------------------------------------------- */

static void ask_plainly(const char *command)
{
	struct buffer answer = {0};

	send_real(socket_of(0), command, strlen(command));
	read_answer(socket_of(0), "+OK\r\n", 5, &answer);
	buffer_release(&answer);
}

/* Until the server refuses all for it. */
static void begin_script(void)
{
	static const char script[] =
		"*3\r\n$4\r\nEVAL\r\n$17\r\nwhile true do end\r\n$1\r\n0\r\n";
	struct buffer answer = {0};

	script_fd = connect_real();
	send_real(script_fd, script, sizeof(script) - 1);
	do {
		send_real(socket_of(0), "PING\r\n", 6);
		read_answer(socket_of(0), "-", 1, &answer);
	} while (strncmp(answer.data, "-BUSY", 5) != 0);
	buffer_release(&answer);
}

static void end_script(void)
{
	struct buffer answer = {0};

	ask_plainly("SCRIPT KILL\r\n");
	read_answer(script_fd, "-", 1, &answer);
	close(script_fd);
	buffer_release(&answer);
}

/* The real server knows of it before anything else happens, even if it is busy. */
static void close_real(int64_t connection)
{
	static const char leave[] = "RESET\r\n";
	char text[4096];
	size_t length = 0;
	ssize_t got;

	if (sockets[connection] == 0)
		return;
	send_real(sockets[connection], leave, sizeof(leave) - 1);
	do {
		got = read(sockets[connection], text + length,
			   sizeof(text) - 1 - length);
		if (got <= 0)
			fail("read");
		length += (size_t)got;
		text[length] = '\0';
	} while (strstr(text, "+RESET") == NULL);
	close(sockets[connection]);
	sockets[connection] = 0;
}

/* What tells of the server itself is not compared. */
static bool is_of_data(const char *request)
{
	const char *name = strstr(request, "\r\n");

	name = strstr(name + 2, "\r\n") + 2;
	return strncasecmp(name, "EVAL", 4) == 0 ||
	       strncasecmp(name, "SUBSCRIBE", 9) == 0 ||
	       strncasecmp(name, "UNSUBSCRIBE", 11) == 0;
}

struct replay {
	FILE *file;
	struct entry entry;
	char *data;
};

static bool next_entry(struct replay *replay)
{
	free(replay->data);
	replay->data = NULL;
	if (fread(&replay->entry, sizeof(replay->entry), 1, replay->file) != 1)
		return false;
	replay->data = calloc(1, (size_t)replay->entry.size + 1);
	return replay->data != NULL &&
	       fread(replay->data, 1, (size_t)replay->entry.size,
		     replay->file) == (size_t)replay->entry.size;
}

/* Subscriptions end in any order; so the sizes of the answers must be the same. */
static bool is_answer_same(const char *asked, const struct entry *entry,
			   const char *data, const struct buffer *real)
{
	if (strstr(asked, "UNSUBSCRIBE") != NULL)
		return (size_t)entry->size == real->length;
	return is_same(data, (size_t)entry->size, real->data, real->length);
}

/* A request, its messages and its answer. False at the end of the file. */
static bool replay_request(struct replay *replay)
{
	static struct buffer real;
	struct entry asked = replay->entry;
	char *request = replay->data;
	bool asks = is_of_data(request), more;

	replay->data = NULL;
	if (asks) {
		set_clock(asked.time);
		send_real(socket_of(asked.connection), request,
			  (size_t)asked.size);
	}
	for (more = next_entry(replay);
	     more && replay->entry.kind == ENTRY_MESSAGE;
	     more = next_entry(replay)) {
		read_answer(socket_of(replay->entry.connection), replay->data,
			    (size_t)replay->entry.size, &real);
		if (!is_same(replay->data, (size_t)replay->entry.size,
			     real.data, real.length))
			differ(request, (size_t)asked.size, replay->data,
			       (size_t)replay->entry.size, &real);
	}
	if (asks && more) {
		read_answer(socket_of(asked.connection), replay->data,
			    (size_t)replay->entry.size, &real);
		if (!is_answer_same(request, &replay->entry, replay->data,
				    &real))
			differ(request, (size_t)asked.size, replay->data,
			       (size_t)replay->entry.size, &real);
	}
	free(request);
	return more;
}

static void replay_file(const char *path)
{
	struct replay replay = {.file = fopen(path, "r")};

	if (replay.file == NULL)
		fail(path);
	ask_plainly("FLUSHALL\r\n");
	ask_plainly("SCRIPT FLUSH\r\n");
	while (next_entry(&replay)) {
		if (replay.entry.kind == ENTRY_REQUEST) {
			if (!replay_request(&replay))
				break;
		} else if (replay.entry.kind == ENTRY_CLOSED) {
			close_real(replay.entry.connection);
		} else if (replay.entry.kind == ENTRY_EMPTY) {
			ask_plainly("FLUSHALL\r\n");
		} else if (replay.entry.kind == ENTRY_BUSY) {
			begin_script();
		} else if (replay.entry.kind == ENTRY_IDLE) {
			end_script();
		} else if (replay.entry.kind == ENTRY_SCRIPTS) {
			ask_plainly("SCRIPT FLUSH\r\n");
		}
	}
	for (int64_t i = 1; i < CONNECTIONS_MOST; i++)
		close_real(i);
	fclose(replay.file);
}

/* --- random commands ------------------------------------------------------- */

static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695;
	return (random_state >> 33) % below;
}

/* What its words are: k: a key, f: a field, v: a value, i: an index, t: ms, s: a score,
 * b: a bound, n: a number; others are themselves. */
static const char *const forms[] = {
	"set k v",
	"set k v px t",
	"set k n",
	"set k v nx",
	"set k v xx px t",
	"get k",
	"getrange k i i",
	"getrange k 0 256",
	"del k",
	"del k k",
	"exists k k",
	"type k",
	"pttl k",
	"pexpire k t",
	"persist k",
	"hset k f v",
	"hset k f v f v",
	"hset k f n",
	"hget k f",
	"hmget k f f",
	"hexists k f",
	"hdel k f",
	"hdel k f f",
	"hlen k",
	"hkeys k",
	"hvals k",
	"hgetall k",
	"hincrby k f n",
	"zadd k s f",
	"zadd k s f s f",
	"zadd k nx s f",
	"zadd k xx s f",
	"zadd k nx xx s f",
	"zrem k f",
	"zrem k f f",
	"zcard k",
	"zscore k f",
	"zrank k f",
	"zrange k i i",
	"zrange k i i withscores",
	"zcount k b b",
	"zrangebyscore k b b",
	"zrangebyscore k b b withscores",
	"zrangebyscore k b b limit i i",
	"zrangebyscore k -inf b withscores limit 0 i",
	"lpush k v",
	"rpush k v v",
	"llen k",
	"lindex k i",
	"lrange k i i",
	"ltrim k i i",
	"lset k i v",
	"time",
	"ping",
	"publish k v",
	"pubsub numsub k k",
	"hset k f",
	"zadd k v f",
	"pexpire k v",
	"getrange k v 1",
	"hincrby k f v",
	"zrange k 0 v",
	"set k v px v",
	"lindex k v",
	"select 0"};

static void draw_word(char kind, char word[40])
{
	static const char *const bounds[] = {"-inf", "+inf", "(%d", "%d"};

	switch (kind) {
	case 'k':
		snprintf(word, 40, "key%d", (int)draw(6));
		break;
	case 'f':
		snprintf(word, 40, "field%d", (int)draw(5));
		break;
	case 'v':
		snprintf(word, 40, "value-%d", (int)draw(50));
		break;
	case 'i':
		snprintf(word, 40, "%d", (int)draw(9) - 4);
		break;
	case 't':
		snprintf(word, 40, "%d", (int)draw(60) - 4);
		break;
	case 's':
		snprintf(word, 40, draw(4) == 0 ? "%d.5" : "%d",
			 (int)draw(20) - 5);
		break;
	case 'b':
		snprintf(word, 40, bounds[draw(4)], (int)draw(20) - 5);
		break;
	default:
		snprintf(word, 40, "%d", (int)draw(2000) - 1000);
	}
}

/* Words are put into text, each with an end of its own. */
static size_t draw_words(struct word *words, char text[20][40])
{
	const char *at = forms[draw(sizeof(forms) / sizeof(forms[0]))];
	size_t count = 0;

	while (*at != '\0') {
		size_t length = strcspn(at, " ");

		if (length == 1 && strchr("kfvitsbn", *at) != NULL)
			draw_word(*at, text[count]);
		else
			snprintf(text[count], 40, "%.*s", (int)length, at);
		words[count] = (struct word){text[count], strlen(text[count])};
		count++;
		at += length;
		at += *at == ' ';
	}
	return count;
}

static void add_word(struct buffer *to, struct word word)
{
	buffer_print(to, "$%zu\r\n", word.length);
	buffer_append(to, word.data, word.length);
	buffer_append(to, "\r\n", 2);
}

/* Half of them are called by a script. */
static size_t wrap(struct word *words, size_t count)
{
	static const char call[] = "return redis.call(unpack(ARGV))",
			  guarded[] = "return redis.pcall(unpack(ARGV))";

	if (draw(2) == 0)
		return count;
	memmove(words + 3, words, count * sizeof(*words));
	words[0] = (struct word){"eval", 4};
	words[1] = draw(2) == 0 ? (struct word){call, sizeof(call) - 1}
				: (struct word){guarded, sizeof(guarded) - 1};
	words[2] = (struct word){"0", 1};
	return count + 3;
}

static size_t nobody(void *context, struct word channel, struct word message)
{
	(void)context;
	(void)channel;
	(void)message;
	return 0;
}

static size_t no_subscriber(void *context, struct word channel)
{
	(void)context;
	(void)channel;
	return 0;
}

static void compare_random(uint64_t count)
{
	const struct store_host host = {NULL, nobody, no_subscriber};
	struct store *store = store_new(&host);
	struct buffer ours = {0}, real = {0}, request = {0};
	int64_t now = EPOCH;

	ask_plainly("FLUSHALL\r\n");
	for (uint64_t i = 0; i < count; i++) {
		struct word words[24];
		char text[20][40];
		size_t n = wrap(words, draw_words(words, text));

		now += (int64_t)draw(4000);
		set_clock(now);
		ours.length = request.length = 0;
		store_execute(store, now, words, n, &ours);
		buffer_print(&request, "*%zu\r\n", n);
		for (size_t k = 0; k < n; k++)
			add_word(&request, words[k]);
		send_real(socket_of(0), request.data, request.length);
		read_answer(socket_of(0), ours.data, ours.length, &real);
		if (!is_same(ours.data, ours.length, real.data, real.length))
			differ(request.data, request.length, ours.data,
			       ours.length, &real);
	}
	store_free(store);
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 64;
	socket_path = argv[1];
	open_clock(argv[2]);
	if (strcmp(argv[3], "--random") == 0 && argc == 6) {
		random_state = strtoull(argv[4], NULL, 10);
		compare_random(strtoull(argv[5], NULL, 10));
	} else {
		for (int i = 3; i < argc; i++)
			replay_file(argv[i]);
	}
	printf("%" PRIu64 " answers and messages compared, all the same\n",
	       compared);
	return 0;
}
