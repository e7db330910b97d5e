#include "server/quorum.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bounds.h"
#include "base/log.h"
#include "base/signals.h"

void quorum_init(struct quorum *quorum, struct url *urls, size_t count,
		 int64_t timeout, bool need_age)
{
	*quorum = (struct quorum){
		.servers = xcalloc(count, sizeof(struct server)),
		.timeout = timeout,
	};
	quorum->count = count;
	for (size_t i = 0; i < count; i++)
		server_init(&quorum->servers[i], &urls[i],
			    count > 1 || need_age, need_age);
}

void quorum_init_seeds(struct quorum *quorum, const struct url *url,
		       int64_t timeout)
{
	struct url seeds[SEEDS_MAX];

	for (size_t i = 0; i < url->seed_count; i++)
		seeds[i] = url_seed(url, i);
	quorum_init(quorum, seeds, url->seed_count, timeout, false);
	for (size_t i = 0; i < quorum->count; i++)
		quorum->servers[i].conn.identify = false;
}

void quorum_want_replicas(struct quorum *quorum, int64_t replicas)
{
	quorum->replicas = replicas;
	for (size_t i = 0; i < quorum->count; i++) {
		struct conn *conn = &quorum->servers[i].conn;

		conn->replicas = replicas;
		conn->replica_time = quorum->timeout / 2 + quorum->timeout % 2;
	}
}

void quorum_release(struct quorum *quorum)
{
	for (size_t i = 0; i < quorum->count; i++)
		server_release(&quorum->servers[i]);
	free(quorum->servers);
	*quorum = (struct quorum){0};
}

size_t quorum_size(const struct quorum *quorum)
{
	return majority(quorum->count);
}

bool quorum_is_one(const struct quorum *quorum, size_t i, size_t k)
{
	const struct identity *one = &quorum->servers[i].conn.identity;
	const struct identity *other = &quorum->servers[k].conn.identity;

	return i != k && one->known && other->known &&
	       strcmp(one->run_id, other->run_id) == 0;
}

void quorum_last_place(const struct quorum *quorum, const char *what,
		       struct last_place *last)
{
	struct buffer names = {0};

	for (size_t i = 0; i < quorum->count; i++)
		buffer_print(&names, "%s ", quorum->servers[i].url.name);
	last_place_init(last, what, names.data);
	buffer_release(&names);
}

size_t quorum_find_alias(const struct quorum *quorum, size_t i)
{
	for (size_t k = 0; k < quorum->count; k++)
		if (quorum_is_one(quorum, i, k))
			return k;
	return i;
}

void quorum_turn(struct quorum *quorum)
{
	for (size_t i = 0; i < quorum->count; i++)
		server_turn(&quorum->servers[i]);
}

void quorum_round(struct quorum *quorum)
{
	quorum->ticket++;
	quorum->asked_at = clock_ms();
	for (size_t i = 0; i < quorum->count; i++) {
		quorum->per_server[i].waiting = false;
		quorum->per_server[i].broken = false;
	}
}

void quorum_ask(struct quorum *quorum, size_t i, unsigned how,
		const struct argument *arguments, size_t count)
{
	struct server *server = &quorum->servers[i];

	quorum->per_server[i].was_up = server_is_up(server);
	quorum->per_server[i].waiting = true;
	server->patience = deadline_at(quorum->asked_at + quorum->timeout);
	/* one that fails here is DOWN, which quorum_gather finds */
	server_ask(server, quorum->ticket, how, arguments, count);
}

void quorum_forget(struct quorum *quorum, size_t i)
{
	quorum->per_server[i].waiting = false;
}

bool quorum_has_broken(const struct quorum *quorum, size_t i)
{
	return quorum->per_server[i].broken || quorum->servers[i].unsure;
}

bool quorum_is_waiting(const struct quorum *quorum, size_t i)
{
	return quorum->per_server[i].waiting;
}

/* What server_pump hands replies to, with what belongs to the round. */
struct round {
	struct quorum *quorum;
	const struct reply_handler *handler;
};

static void got_reply(void *context, struct server *server, uint64_t ticket,
		      const struct reply *reply)
{
	struct round *round = context;
	struct quorum *quorum = round->quorum;
	size_t i = (size_t)(server - quorum->servers);

	if (ticket != quorum->ticket || !quorum->per_server[i].waiting) {
		log_step("%s: a late reply, thrown away", server->url.name);
		return;
	}
	quorum->per_server[i].waiting = false;
	if (round->handler != NULL)
		round->handler->reply(round->handler->context, i, reply);
}

/* A connection that broke under a request: ask once more, or give it up. */
static void handle_broken(struct round *round, size_t i)
{
	struct quorum *quorum = round->quorum;
	struct server *server = &quorum->servers[i];

	if (server->conn.refusal.text[0] != '\0')
		log_step("%s: %s", server->url.name, server->conn.refusal.text);
	if (!quorum->per_server[i].waiting) {
		/* a reply and then rubbish: the reply does not count either */
		if (round->handler != NULL)
			round->handler->reply(round->handler->context, i, NULL);
		return;
	}
	if (quorum->per_server[i].was_up && !quorum->per_server[i].broken &&
	    !server_is_up(server)) {
		quorum->per_server[i].broken = true;
		if (server_ask_again(server) == 0)
			return;
	}
	quorum->per_server[i].waiting = false;
	if (round->handler != NULL)
		round->handler->reply(round->handler->context, i, NULL);
}

static void give_up_failed(struct round *round)
{
	struct quorum *quorum = round->quorum;

	for (size_t i = 0; i < quorum->count; i++)
		if (quorum->per_server[i].waiting &&
		    server_is_down(&quorum->servers[i]))
			handle_broken(round, i);
}

static bool is_waiting(const struct quorum *quorum)
{
	for (size_t i = 0; i < quorum->count; i++)
		if (quorum->per_server[i].waiting)
			return true;
	return false;
}

/* One poll and what follows from it. True if interrupted. */
static bool step(struct round *round, struct wait wait)
{
	struct deadline until = wait.until;
	struct quorum *quorum = round->quorum;
	struct pollfd polled[2 * SERVERS_MAX * POLLED_MAX + 1];
	size_t at_mailbox, count = 1;

	polled[0] = (struct pollfd){
		.fd = wait.interrupt,
		.events = POLLIN,
	};
	for (size_t i = 0; i < quorum->count; i++) {
		quorum->per_server[i].polled = count;
		count += server_prepare(&quorum->servers[i], polled + count,
					&until);
	}
	at_mailbox = count;
	if (quorum->mailbox != NULL)
		count += mailbox_prepare(quorum->mailbox, polled + count,
					 &until);
	if (deadline_poll(polled, count, until) < 0)
		return false; /* EINTR: the caller looks at the clock */
	for (size_t i = 0; i < quorum->count; i++) {
		struct server *server = &quorum->servers[i];
		bool was_up = server_is_up(server);

		if (server_pump(server, polled + quorum->per_server[i].polled,
				got_reply, round) < 0) {
			quorum->per_server[i].was_up |= was_up;
			handle_broken(round, i);
		}
	}
	if (quorum->mailbox != NULL)
		mailbox_pump(quorum->mailbox, polled + at_mailbox);
	return polled[0].revents != 0 && signals_have_come(wait.interrupt);
}

static bool is_certain(const struct reply_handler *handler)
{
	return handler != NULL && handler->certain != NULL &&
	       handler->certain(handler->context);
}

/* When to wait no longer. A server that lacks a script has answered in time, and has
 * as long again for the whole request, unless there is another reason to hurry. */
static struct deadline end_of_round(const struct quorum *quorum,
				    struct deadline until)
{
	int64_t timeout = quorum->timeout, end = until.at;

	if (until.at < quorum->asked_at + timeout - timeout / 8)
		return until;
	for (size_t i = 0; i < quorum->count; i++) {
		int64_t refused = quorum->servers[i].refused;

		if (quorum->per_server[i].waiting && refused > 0 &&
		    refused + timeout > end)
			end = refused + timeout;
	}
	return deadline_at(end);
}

enum gathered quorum_gather(struct quorum *quorum, struct wait wait,
			    const struct reply_handler *handler)
{
	const struct deadline until = wait.until;
	struct round round = {quorum, handler};

	for (;;) {
		wait.until = end_of_round(quorum, until);
		give_up_failed(&round);
		if (is_certain(handler))
			return GATHER_CERTAIN;
		if (!is_waiting(quorum))
			return GATHER_OVER;
		if (deadline_passed(wait.until))
			break;
		if (step(&round, wait))
			return GATHER_INTERRUPTED;
	}
	for (size_t i = 0; i < quorum->count; i++)
		if (quorum->per_server[i].waiting)
			server_blame_silence(&quorum->servers[i],
					     clock_ms() - quorum->asked_at);
	return GATHER_OVER;
}

enum gathered quorum_idle(struct quorum *quorum, struct wait wait,
			  const struct reply_handler *handler)
{
	struct round round = {quorum, handler};

	while (!deadline_passed(wait.until)) {
		give_up_failed(&round);
		if (is_certain(handler))
			return GATHER_CERTAIN;
		if (step(&round, wait))
			return GATHER_INTERRUPTED;
	}
	return GATHER_OVER;
}

void quorum_abandon(struct quorum *quorum, size_t i)
{
	server_cut(&quorum->servers[i]);
	quorum->per_server[i].waiting = false;
}

bool quorum_is_idle(const struct quorum *quorum)
{
	for (size_t i = 0; i < quorum->count; i++) {
		const struct server *server = &quorum->servers[i];

		if (!server_is_down(server) &&
		    (!server_is_up(server) || server_is_put_off(server) ||
		     server->conn.owed_count > 0))
			return false;
	}
	return true;
}

/* What it was asked leaves when it is connected. The child of drain.h goes on with that,
 * but not with the look-up of a name. */
static bool is_awaited(const struct server *server)
{
	return !server_is_up(server) && server->last.lasting &&
	       server->conn.stream.state > STREAM_RESOLVING;
}

/* Over TLS a server reads request by request, and none after one that it could
 * no longer answer; and its greeting may be under way when others have
 * answered. */
static bool may_lose(const struct server *server)
{
	if (is_awaited(server) ||
	    (server->last.lasting && server_is_put_off(server)))
		return true;
	if (server->url.tls)
		return !server_is_down(server) && server->conn.owed_count > 0;
	return server_is_up(server) &&
	       (conn_owes_sticky(&server->conn) ||
		conn_owes_replicas(&server->conn) ||
		server->conn.owed_count > 1 || server_may_lack_script(server));
}

static bool may_lose_any(const struct quorum *quorum, uint32_t which)
{
	for (size_t i = 0; i < quorum->count; i++)
		if ((which >> i & 1) != 0 && may_lose(&quorum->servers[i]))
			return true;
	return false;
}

bool quorum_may_lose(const struct quorum *quorum)
{
	return may_lose_any(quorum, UINT32_MAX);
}

static void drain_until(struct quorum *quorum, struct deadline until)
{
	struct round round = {quorum, NULL};

	while (quorum_may_lose(quorum)) {
		step(&round, wait_until(until));
		if (deadline_passed(until))
			break;
	}
}

/* Those that have answered before are there, and slow; those that are not connected yet may
 * be far away; and those that owe an answer to a question from before the last may have
 * read no more than that, and work on it. A bit for each. */
static uint32_t find_slow(const struct quorum *quorum)
{
	uint32_t slow = 0;

	for (size_t i = 0; i < quorum->count; i++) {
		const struct server *server = &quorum->servers[i];

		if (server->conn.distance > 0 || is_awaited(server) ||
		    conn_owes_questions(&server->conn))
			slow |= UINT32_C(1) << i;
	}
	return slow;
}

static void drain_slow(struct quorum *quorum)
{
	struct wait wait = wait_until(deadline_in(quorum->timeout));
	struct round round = {quorum, NULL};
	uint32_t slow = find_slow(quorum);

	while (may_lose_any(quorum, slow) && !deadline_passed(wait.until))
		step(&round, wait);
}

void quorum_drain(struct quorum *quorum, int64_t time)
{
	struct deadline end = deadline_in(time);

	drain_until(quorum, deadline_in(time / 2));
	if (time == 0)
		return;
	for (size_t i = 0; i < quorum->count; i++)
		if (server_is_up(&quorum->servers[i]))
			server_send_whole(&quorum->servers[i]);
	drain_until(quorum, end);
	drain_slow(quorum);
}

void quorum_close_done(struct quorum *quorum, bool unconnected)
{
	for (size_t i = 0; i < quorum->count; i++)
		if (!may_lose(&quorum->servers[i]) ||
		    (unconnected && !server_is_up(&quorum->servers[i])))
			conn_close(&quorum->servers[i].conn);
}

void quorum_leave(struct quorum *quorum)
{
	for (size_t i = 0; i < quorum->count; i++)
		stream_leave(&quorum->servers[i].conn.stream);
}

bool quorum_renew_silent(struct quorum *quorum)
{
	bool renewed = false;

	for (size_t i = 0; i < quorum->count; i++) {
		bool up = server_is_up(&quorum->servers[i]);

		if (!quorum->per_server[i].waiting)
			continue;
		server_renew(&quorum->servers[i]);
		renewed |= up && !server_is_up(&quorum->servers[i]);
	}
	return renewed;
}

bool quorum_is_connected(const struct quorum *quorum)
{
	for (size_t i = 0; i < quorum->count; i++)
		if (server_is_up(&quorum->servers[i]))
			return true;
	return false;
}

void quorum_renew_hung(struct quorum *quorum, int64_t time)
{
	for (size_t i = 0; i < quorum->count; i++)
		if (conn_waited(&quorum->servers[i].conn) > time)
			quorum_abandon(quorum, i);
}
