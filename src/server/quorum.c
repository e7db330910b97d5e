#include "server/quorum.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/signals.h"

void quorum_init(struct quorum *quorum, struct url *urls, size_t count,
		 int64_t timeout, bool need_identity)
{
	*quorum = (struct quorum){
		.servers = heap_get(count, sizeof(struct server)),
		.permits = 1,
		.timeout = timeout,
		.interrupt = -1,
	};
	quorum->count = count;
	for (size_t i = 0; i < count; i++)
		server_init(&quorum->servers[i], &urls[i],
			    count > 1 || need_identity);
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
	uint64_t permits = (uint64_t)quorum->permits;

	return quorum->count * permits / (permits + 1) + 1;
}

bool quorum_is_one(const struct quorum *quorum, size_t i, size_t k)
{
	const struct identity *one = &quorum->servers[i].identity;
	const struct identity *other = &quorum->servers[k].identity;

	return i != k && one->known && other->known &&
	       strcmp(one->run_id, other->run_id) == 0;
}

void quorum_open_hint(const struct quorum *quorum, const char *what,
		      struct hint *hint)
{
	struct buffer names = {0};

	for (size_t i = 0; i < quorum->count; i++)
		buffer_print(&names, "%s ", quorum->servers[i].url.name);
	hint_init(hint, what, names.data);
	buffer_release(&names);
}

size_t quorum_find_alias(const struct quorum *quorum, size_t i)
{
	for (size_t k = 0; k < quorum->count; k++)
		if (quorum_is_one(quorum, i, k))
			return k;
	return i;
}

void quorum_round(struct quorum *quorum)
{
	quorum->ticket++;
	quorum->asked_at = clock_ms();
	for (size_t i = 0; i < quorum->count; i++) {
		quorum->slot[i].waiting = false;
		quorum->slot[i].broken = false;
	}
}

void quorum_ask(struct quorum *quorum, size_t i, bool sticky,
		const struct argument *arguments, size_t count)
{
	struct server *server = &quorum->servers[i];

	quorum->slot[i].was_up = server_is_up(server);
	quorum->slot[i].waiting = true;
	/* one that fails here is DOWN, which quorum_gather finds */
	server_ask(server, quorum->ticket, sticky, arguments, count);
}

void quorum_forget(struct quorum *quorum, size_t i)
{
	quorum->slot[i].waiting = false;
}

bool quorum_has_broken(const struct quorum *quorum, size_t i)
{
	return quorum->slot[i].broken;
}

bool quorum_is_waiting(const struct quorum *quorum, size_t i)
{
	return quorum->slot[i].waiting;
}

/* What server_pump hands replies to, with what belongs to the round. */
struct round {
	struct quorum *quorum;
	const struct judge *judge;
};

static void got_reply(void *context, struct server *server, uint64_t ticket,
		      const struct reply *reply)
{
	struct round *round = context;
	struct quorum *quorum = round->quorum;
	size_t i = (size_t)(server - quorum->servers);

	if (ticket != quorum->ticket || !quorum->slot[i].waiting) {
		log_step("%s: a late reply, thrown away", server->url.name);
		return;
	}
	quorum->slot[i].waiting = false;
	if (round->judge != NULL)
		round->judge->reply(round->judge->context, i, reply);
}

/* A connection that broke under a request: ask once more, or give it up. */
static void handle_broken(struct round *round, size_t i)
{
	struct quorum *quorum = round->quorum;
	struct server *server = &quorum->servers[i];

	log_step("%s: %s", server->url.name, server->why);
	if (!quorum->slot[i].waiting) {
		/* a reply and then rubbish: the reply does not count either */
		if (round->judge != NULL)
			round->judge->reply(round->judge->context, i, NULL);
		return;
	}
	if (quorum->slot[i].was_up && !quorum->slot[i].broken) {
		quorum->slot[i].broken = true;
		if (server_ask_again(server) == 0)
			return;
	}
	quorum->slot[i].waiting = false;
	if (round->judge != NULL)
		round->judge->reply(round->judge->context, i, NULL);
}

static void give_up_failed(struct round *round)
{
	struct quorum *quorum = round->quorum;

	for (size_t i = 0; i < quorum->count; i++)
		if (quorum->slot[i].waiting &&
		    server_is_down(&quorum->servers[i]))
			handle_broken(round, i);
}

static bool is_waiting(const struct quorum *quorum)
{
	for (size_t i = 0; i < quorum->count; i++)
		if (quorum->slot[i].waiting)
			return true;
	return false;
}

/* One poll and what follows from it. True where interrupted. */
static bool step(struct round *round, struct deadline until)
{
	struct quorum *quorum = round->quorum;
	struct pollfd polled[2 * SERVERS_MAX * POLLED_MAX + 1];
	size_t at_mailbox, count = 1;

	polled[0] = (struct pollfd){
		.fd = quorum->interrupt,
		.events = POLLIN,
	};
	for (size_t i = 0; i < quorum->count; i++) {
		quorum->slot[i].polled = count;
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

		if (server_pump(server, polled + quorum->slot[i].polled,
				got_reply, round) < 0) {
			quorum->slot[i].was_up |= was_up;
			handle_broken(round, i);
		}
	}
	if (quorum->mailbox != NULL)
		mailbox_pump(quorum->mailbox, polled + at_mailbox);
	return polled[0].revents != 0 && signals_have_come(quorum->interrupt);
}

enum gathered quorum_gather(struct quorum *quorum, struct deadline until,
			    const struct judge *judge)
{
	struct round round = {quorum, judge};

	for (;;) {
		give_up_failed(&round);
		if (judge->certain(judge->context))
			return GATHER_CERTAIN;
		if (!is_waiting(quorum))
			return GATHER_OVER;
		if (deadline_passed(until))
			break;
		if (step(&round, until))
			return GATHER_INTERRUPTED;
	}
	for (size_t i = 0; i < quorum->count; i++)
		if (quorum->slot[i].waiting)
			server_blame_silence(&quorum->servers[i],
					     clock_ms() - quorum->asked_at);
	return GATHER_OVER;
}

enum gathered quorum_idle(struct quorum *quorum, struct deadline until,
			  const struct judge *judge)
{
	struct round round = {quorum, judge};

	while (!deadline_passed(until)) {
		give_up_failed(&round);
		if (judge != NULL && judge->certain != NULL &&
		    judge->certain(judge->context))
			return GATHER_CERTAIN;
		if (step(&round, until))
			return GATHER_INTERRUPTED;
	}
	return GATHER_OVER;
}

void quorum_abandon(struct quorum *quorum, size_t i)
{
	server_cut(&quorum->servers[i]);
	quorum->slot[i].waiting = false;
}

bool quorum_is_idle(const struct quorum *quorum)
{
	for (size_t i = 0; i < quorum->count; i++) {
		const struct server *server = &quorum->servers[i];

		if (!server_is_down(server) &&
		    (!server_is_up(server) || server->owed_count > 0))
			return false;
	}
	return true;
}

/* Over TLS a server reads request by request, and none behind one that it could
 * not answer any more; and it may be greeted still when others have answered. */
static bool may_lose(const struct server *server)
{
	if (server->url.tls)
		return !server_is_down(server) && server->owed_count > 0;
	return server_is_up(server) && server_owes_sticky(server);
}

bool quorum_may_lose(const struct quorum *quorum)
{
	for (size_t i = 0; i < quorum->count; i++)
		if (may_lose(&quorum->servers[i]))
			return true;
	return false;
}

void quorum_drain(struct quorum *quorum, struct deadline until)
{
	struct round round = {quorum, NULL};

	quorum->interrupt = -1;
	while (quorum_may_lose(quorum)) {
		step(&round, until);
		if (deadline_passed(until))
			break;
	}
}

void quorum_leave(struct quorum *quorum)
{
	for (size_t i = 0; i < quorum->count; i++)
		stream_leave(&quorum->servers[i].stream);
}

void quorum_renew_silent(struct quorum *quorum)
{
	for (size_t i = 0; i < quorum->count; i++)
		if (quorum->slot[i].waiting)
			server_renew(&quorum->servers[i]);
}
