/*
 * What servers send: three of them answer an acquire, an extension, a release,
 * a look at a lock or at many with the input's bytes and hang up. Whatever they say, the call ends,
 * and a lock is held only where two said so. Built with -fsanitize=fuzzer.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lock_inspect.h"
#include "lock_look.h"

#define SERVERS 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A server that is connected to us, has said all it will ever say, and cannot
 * be reached again. */
static void connect_server(struct server *server, const uint8_t *data,
			   size_t size, bool wide)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) < 0)
		abort();
	if (size > 0 && write(ends[1], data, size) < 0)
		abort();
	shutdown(ends[1], SHUT_WR);
	/* kept open until the call is over: what we send goes somewhere */
	server->stream.fd = ends[0];
	server->stream.state = STREAM_UP;
	server->reader = reply_reader_new(wide);
	server->identify = false;
	server->last.size = 0;
	server->identity.known = true;
	server->identity.started = -INT64_C(1000000);
	server->identity.run_id[0] = (char)('0' + ends[1]);
	server->why_code = ends[1];
}

static void inspect(struct quorum *quorum, uint8_t choice)
{
	struct error error;
	struct view view;

	view_init(&view, quorum, "key");
	if (choice & 1)
		lock_break(&view, "", &error);
	else if (choice & 2)
		lock_is_held(&view, NULL, &error);
	else
		lock_inspect(&view, &error);
	if (view.holders.count > SHOWN_MOST || view.waiters.count > SHOWN_MOST)
		abort();
	for (size_t n = 0; n < view.holders.count; n++)
		if (seen_count(&view.holders.seen[n]) == 0 ||
		    seen_count(&view.holders.seen[n]) > SERVERS)
			abort();
	view_release(&view);
}

/* Only what two servers said is told. */
static void look(struct quorum *quorum)
{
	struct argument key = {"key", 3};
	struct listed listed;
	struct look *all = malloc(sizeof(*all));

	if (all == NULL)
		abort();
	look_init(all, quorum);
	for (size_t n = 0; n < 2; n++)
		look_add(all, script_name(key, ""), script_record_name(key));
	look_round(all);
	for (size_t n = 0; n < all->count; n++)
		if (look_tell(all, n, &listed) &&
		    (listed.holders < 1 || look_alive(all) < 2))
			abort();
	look_release(all);
	free(all);
}

static void exercise(struct lock *lock, uint8_t choice)
{
	struct deadline until = deadline_in(200);
	struct error error;
	struct busy busy;
	struct buffer text = {0};

	switch (choice % 8) {
	case 0:
		if (lock_acquire(lock, until, &busy, &error) == LOCK_OK &&
		    (lock->fence <= 0 || deadline_passed(lock->valid)))
			abort();
		record_print_busy(&text, &busy);
		break;
	case 1:
		lock_extend(lock, until, &error);
		break;
	case 3:
	case 4:
	case 5:
		inspect(lock->quorum, choice % 8 - 3);
		break;
	case 6:
		look(lock->quorum);
		break;
	default:
		lock_release(lock, 0, until, &error);
	}
	buffer_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct url urls[SERVERS];
	struct quorum quorum;
	struct lock lock;
	struct error error;
	int peers[SERVERS];
	size_t share;

	if (size < 1 || size > 100000)
		return 0;
	for (size_t i = 0; i < SERVERS; i++)
		if (url_parse(&urls[i], "unix:///nonexistent/socket", &error) <
		    0)
			abort();
	quorum_init(&quorum, urls, SERVERS, 200, false);
	share = (size - 1) / SERVERS;
	for (size_t i = 0; i < SERVERS; i++) {
		connect_server(&quorum.servers[i], data + 1 + i * share, share,
			       data[0] % 8 == 6);
		peers[i] = quorum.servers[i].why_code;
	}
	lock_init(&lock, &quorum, "key", 30000, data[0] & 64 ? 1000 : 0);
	record_describe(&lock.description, 1, "fuzz", 30000);
	memcpy(lock.token, "0123456789abcdef0123456789abcdef", 33);
	exercise(&lock, data[0]);
	lock_release_memory(&lock);
	quorum_release(&quorum);
	for (size_t i = 0; i < SERVERS; i++)
		close(peers[i]);
	return 0;
}
