#include "server/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "net/local.h"
#include "server/discovery.h"

#define AGAIN_PAUSE 20   /* ms */
#define BUSY_PAUSE 50    /* ms */
#define MOVES_MAX 3      /* that are followed for one answer */
#define LATE 1000        /* ms; discovery.h */
#define REMEMBERED 1000  /* ms, of a script that was executed */
#define LOGIN_PAUSE 1000 /* ms, at least, between logins that are refused */

static void ask_no_more(struct server *server)
{
	server->again = deadline_never();
	server->both_again = false;
}

static void disconnect(struct server *server)
{
	conn_close(&server->conn);
	ask_no_more(server);
}

void server_init(struct server *server, struct url *url, bool identify,
		 bool doubts)
{
	/* a large one, to be made in place */
	memset(server, 0, sizeof(*server));
	server->url = *url;
	conn_init(&server->conn, &server->url, identify, doubts);
	server->conn.in_cluster = server->url.kind == URL_CLUSTER;
	server->discovery = discovery_new(&server->url);
	server->again = deadline_never();
	*url = (struct url){0};
}

static void request_release(struct request *request)
{
	buffer_release(&request->whole);
	buffer_release(&request->brief);
}

void server_release(struct server *server)
{
	conn_release(&server->conn);
	discovery_free(server->discovery);
	request_release(&server->last);
	request_release(&server->before);
	url_release(&server->url);
	for (size_t i = 0; i < server->silent_count; i++)
		endpoint_release(&server->silent[i].at);
	free(server->silent);
}

/* --- why it does not count ---------------------------------------------- */

static bool is_seeking(const struct server *server)
{
	return server->discovery != NULL && server->discovery->seeking;
}

static bool is_due_again(const struct server *server)
{
	return server->again.at != deadline_never().at;
}

void server_blame_silence(struct server *server, int64_t waited_ms)
{
	const struct refusal *refusal = &server->conn.refusal;

	/* it has said why, whether it is to be asked again or has been */
	if (is_due_again(server) ||
	    (cause_is_from_server(refusal->cause) && refusal->text[0] != '\0'))
		return;
	if (is_seeking(server))
		discovery_explain(server->discovery, &server->conn.refusal);
	else
		conn_blame_silence(&server->conn, waited_ms);
}

/* It is the default server, which the user has not named: there may be none. */
static bool is_unnamed(const struct server *server)
{
	return server->conn.refusal.cause == CAUSE_AWAY &&
	       server_is_down(server) &&
	       strcmp(server->url.name, "redis://127.0.0.1:6379") == 0;
}

const char *server_remedy(const struct server *server)
{
	enum cause cause = server->conn.refusal.cause;

	const char *advice = cause == CAUSE_SENTINEL_LOGIN
				     ? server->url.seed_advice
				     : server->url.advice;

	if (cause_is_login(cause) || cause == CAUSE_SENTINEL_LOGIN)
		return advice != NULL ? advice : "";
	if (is_unnamed(server))
		return "start a server there, name one with -S, or use -S "
		       "local: for a private one";
	return cause_remedy(cause);
}

/* --- what is asked ------------------------------------------------------ */

/* One of `local:` that has ended is started for the next try. */
static int open_at_url(struct server *server)
{
	int cause;

	if (conn_open(&server->conn, &server->url.at) == 0)
		return 0;
	cause = server->conn.stream.error;
	if (server->url.kind == URL_LOCAL &&
	    (cause == ECONNREFUSED || cause == ENOENT))
		local_start_again();
	return -1;
}

static int connect_start(struct server *server)
{
	struct discovery *discovery = server->discovery;

	if (discovery == NULL)
		return open_at_url(server);
	if (!discovery->pinned)
		server->conn.found = NULL;
	discovery_start(discovery);
	if (discovery->endpoint.host == NULL ||
	    conn_open(&server->conn, &discovery->endpoint) == 0 ||
	    discovery->seeking)
		return 0; /* a guess may fail */
	return -1;
}

/* The seeds have not confirmed the address lately. */
static bool is_outdated(const struct server *server)
{
	const struct discovery *discovery = server->discovery;

	return discovery != NULL && !discovery->pinned &&
	       clock_ms() - discovery->confirmed > LATE;
}

static int send_request(struct server *server, struct request *request)
{
	request->owed.number = ++server->number;
	return conn_ask(&server->conn, request->owed,
			request->brief.length > 0 ? &request->brief
						  : &request->whole);
}

static int queue_last(struct server *server)
{
	bool both = server->both_again;

	ask_no_more(server);
	if (conn_is_locked_out(&server->conn) &&
	    !conn_owes_sticky(&server->conn) &&
	    deadline_passed(server->next_login)) {
		disconnect(server); /* the user may be let in by now */
		server->next_login = deadline_in(LOGIN_PAUSE);
	}
	/* another node has said that it is elsewhere */
	if (server_is_down(server) && server->moves > 0)
		server->conn.refusal.text[0] = '\0';
	if (server_is_down(server) && connect_start(server) < 0)
		return -1;
	if (server->conn.stream.state == STREAM_DOWN)
		return 0; /* it is asked once it is found */
	if (is_outdated(server) && server->last.owed.sticky)
		discovery_start(server->discovery); /* it may be granted */
	else if (server->discovery != NULL)
		discovery_check(server->discovery);
	if (both && send_request(server, &server->before) < 0)
		return -1;
	return send_request(server, &server->last);
}

void server_name_script(struct server *server, const char *sha1)
{
	server->next_sha1 = sha1;
}

static bool has_executed_lately(const struct server *server, const char *sha1)
{
	return server->conn.executed == sha1 &&
	       clock_ms() - server->conn.executed_at < REMEMBERED;
}

/* It may be refused for want of its script. */
static bool may_be_refused(const struct server *server,
			   const struct request *request)
{
	return request->brief.length > 0 &&
	       !has_executed_lately(server, request->sha1) &&
	       conn_owes(&server->conn, request->owed.number);
}

bool server_may_lack_script(const struct server *server)
{
	return may_be_refused(server, &server->last) ||
	       may_be_refused(server, &server->before);
}

/* Has one of the two sent again whole, and the other if that is the last. What is
 * still owed counts no more. */
static void repeat_whole(struct server *server, struct request *request)
{
	server->both_again = request == &server->before;
	server->void_until = server->number;
	server->before.brief.length = server->last.brief.length = 0;
}

void server_send_whole(struct server *server)
{
	struct request *request =
		server->before.lasting &&
				may_be_refused(server, &server->before)
			? &server->before
			: &server->last;

	if (!request->lasting || !may_be_refused(server, request))
		return;
	request->owed.sticky = true;
	repeat_whole(server, request);
	queue_last(server);
}

/* The first argument is EVAL, the next ones are what its script is put together
 * from (request_format). */
static void format_brief(struct request *request,
			 const struct argument *arguments, size_t count)
{
	struct argument words[ARGUMENTS_MAX] = {
		{"EVALSHA", 7}, {request->sha1, strlen(request->sha1)}};
	size_t rest = 2 + arguments[1].length;

	memcpy(words + 2, arguments + rest, (count - rest) * sizeof(words[0]));
	request_format(&request->brief, words, 2 + count - rest);
}

/* What it may refuse is kept, unless that is needless now. */
static void keep_last(struct server *server, unsigned how)
{
	struct request last = server->last;

	if (how & ASK_INSTEAD) {
		server->before.brief.length = 0;
	} else if (may_be_refused(server, &last)) {
		server->last = server->before;
		server->before = last;
	}
}

int server_ask(struct server *server, uint64_t ticket, unsigned how,
	       const struct argument *arguments, size_t count)
{
	struct request *last = &server->last;

	if (!conn_has_refused(&server->conn))
		server->conn.refusal.text[0] = '\0';
	keep_last(server, how);
	server->put_off = server->unsure = false;
	server->moves = 0;
	server->refused = 0;
	last->owed = (struct owed){.sticky = how & ASK_STICKY,
				   .replicated = how & ASK_REPLICAS,
				   .ticket = ticket};
	last->lasting = how & ASK_LASTING;
	last->patient = how & ASK_PATIENTLY;
	last->sha1 = server->next_sha1;
	server->next_sha1 = NULL;
	last->whole.length = last->brief.length = 0;
	request_format(&last->whole, arguments, count);
	if (last->sha1 != NULL && !server->needs_whole)
		format_brief(last, arguments, count);
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
	stream_reset(&server->conn.stream);
	give_up(server);
}

void server_withdraw(struct server *server)
{
	if (!server_is_up(server))
		give_up(server);
}

bool server_owes_sticky(const struct server *server)
{
	return conn_owes_sticky(&server->conn);
}

void server_before_fork(struct server *server)
{
	server_withdraw(server);
	if (server->discovery != NULL)
		discovery_stop(server->discovery);
}

void server_renew(struct server *server)
{
	if (!conn_owes_sticky(&server->conn) &&
	    !(server_is_up(server) && is_due_again(server)))
		give_up(server);
}

/* --- where it is -------------------------------------------------------- */

void server_aim(struct server *server, struct argument key)
{
	if (server->discovery != NULL)
		discovery_aim(server->discovery, key);
}

void server_visit(struct server *server, const struct endpoint *endpoint)
{
	struct discovery *discovery = server->discovery;

	if (server_is_up(server) &&
	    endpoint_is_same(&discovery->endpoint, endpoint))
		return;
	server_renew(server);
	discovery_pin(discovery, endpoint);
	server->conn.found = &discovery->endpoint;
}

const struct endpoint *server_endpoint(const struct server *server)
{
	const struct endpoint *found = server->conn.found;

	return found != NULL && found->host != NULL ? found : NULL;
}

bool server_is_silent(const struct server *server)
{
	return server->conn.owed_count > 0 || is_seeking(server);
}

static const struct silent_node *find_silent(const struct server *server)
{
	for (size_t i = 0; i < server->silent_count; i++)
		if (endpoint_is_same(&server->silent[i].at,
				     &server->discovery->endpoint))
			return &server->silent[i];
	return NULL;
}

void server_turn(struct server *server)
{
	/* until it is found the seeds are silent, and every KEY needs them */
	if (server->url.kind != URL_CLUSTER || server->conn.owed_count == 0 ||
	    is_seeking(server))
		return;
	/* without a refusal nobody has waited for its answer */
	if (server->conn.refusal.text[0] != '\0' &&
	    find_silent(server) == NULL) {
		server->silent = xrealloc(server->silent,
					  (server->silent_count + 1) *
						  sizeof(*server->silent));
		server->silent[server->silent_count++] = (struct silent_node){
			endpoint_copy(&server->discovery->endpoint),
			server->conn.refusal};
	}
	server_renew(server);
}

/* Has the last command asked again at the right address, or a bit later. */
static int follow(struct server *server, enum moved moved)
{
	unsigned pause = AGAIN_PAUSE;

	if (moved == MOVED_AWAY) {
		disconnect(server);
		discovery_forget(server->discovery);
		server->conn.found = NULL;
		/* those that know where it is may not all have heard yet */
		pause *= 2 * server->moves;
		if (server->moves++ >= MOVES_MAX)
			return -1;
	}
	server->again = deadline_in(pause);
	return 0;
}

/* Goes to the address that the seeds name, unless it is there already. */
static int seek(struct server *server, const struct pollfd *polled)
{
	struct discovery *discovery = server->discovery;
	const struct silent_node *silent;
	bool checking = !discovery->seeking;
	bool is_open;

	switch (discovery_pump(discovery, polled)) {
	case DISCOVERY_UNDECIDED:
		return 0;
	case DISCOVERY_FAILED:
		/* what it may have granted is given back on this connection */
		if (!server_is_up(server) || !server_owes_sticky(server))
			disconnect(server);
		discovery_explain(discovery, &server->conn.refusal);
		return -1;
	case DISCOVERY_CHANGED:
		is_open = server->conn.stream.state != STREAM_DOWN;
		disconnect(server);
		server->conn.found = &discovery->endpoint;
		if (checking && is_open)
			return conn_blame(&server->conn, CAUSE_AWAY,
					  "it has moved to another address");
		break;
	case DISCOVERY_CONFIRMED:
		server->conn.found = &discovery->endpoint;
		break;
	}
	silent = checking ? NULL : find_silent(server);
	if (silent != NULL) {
		disconnect(server);
		server->conn.refusal = silent->refusal;
		return -1;
	}
	if (checking || server->conn.stream.state != STREAM_DOWN)
		return 0;
	if (conn_open(&server->conn, &discovery->endpoint) < 0)
		return -1;
	return queue_last(server);
}

/* --- what comes back ---------------------------------------------------- */

/* What conn_pump hands replies to, with what belongs to the call. */
struct pumped {
	struct server *server;
	server_reply *reply;
	void *context;
};

/* It was sent without its script, and refused: nothing was executed. */
static bool is_brief_refused(const struct server *server,
			     const struct request *request,
			     const struct reply *reply)
{
	return reply->failure != NULL && request->brief.length > 0 &&
	       !conn_is_barred(&server->conn) &&
	       (reply->cause == CAUSE_SCRIPT || reply->cause == CAUSE_RIGHTS ||
		reply->cause == CAUSE_COMMAND);
}

static int ask_whole(struct server *server, struct request *request,
		     enum cause cause)
{
	server->needs_whole |= cause != CAUSE_SCRIPT;
	server->conn.executed = NULL;
	server->conn.refusal.text[0] = '\0';
	repeat_whole(server, request);
	server->refused = clock_ms();
	server->again = deadline_in(0);
	return 0;
}

bool server_is_put_off(const struct server *server)
{
	return server->put_off &&
	       (is_due_again(server) ||
		conn_owes(&server->conn, server->last.owed.number));
}

/* It refuses everything for a moment, or did so when it was asked who it is. */
static bool is_busy(const struct server *server, const struct reply *reply)
{
	return reply->failure != NULL &&
	       cause_is_of_the_moment(conn_is_barred(&server->conn)
					      ? server->conn.refusal.cause
					      : reply->cause);
}

static void put_off(struct server *server, const struct reply *reply)
{
	server->unsure |= !cause_is_of_the_moment(reply->cause);
	if (!server->put_off)
		log_step("%s: %s: asked again", server->url.name,
			 server->conn.refusal.text);
	server->put_off = true;
	server->again = deadline_in(BUSY_PAUSE);
}

static struct request *find_request(struct server *server, uint64_t number)
{
	if (number == server->last.owed.number)
		return &server->last;
	return number == server->before.owed.number ? &server->before : NULL;
}

static int on_reply(void *context, const struct owed *owed,
		    const struct reply *reply)
{
	struct pumped *pumped = context;
	struct server *server = pumped->server;
	struct request *request = find_request(server, owed->number);
	enum moved moved = MOVED_NOT;

	if (owed->number > 0 && owed->number <= server->void_until)
		return 0;
	if (server->discovery != NULL && reply->failure != NULL &&
	    request == &server->last)
		moved = discovery_sort(reply->cause);
	if (moved != MOVED_NOT)
		return follow(server, moved);
	if (request != NULL && is_brief_refused(server, request, reply))
		return ask_whole(server, request, reply->cause);
	if (request == &server->last && request->patient &&
	    !deadline_passed(server->patience) && is_busy(server, reply)) {
		put_off(server, reply);
		return 0;
	}
	if (request != NULL && request->sha1 != NULL &&
	    reply->failure == NULL) {
		server->conn.executed = request->sha1;
		server->conn.executed_at = clock_ms();
	}
	pumped->reply(pumped->context, server, owed->ticket, reply);
	return 0;
}

bool server_is_down(const struct server *server)
{
	return server->conn.stream.state == STREAM_DOWN &&
	       !is_seeking(server) && !is_due_again(server);
}

/* Whether what it says now may be said too late: it may have hung, and have been
 * replaced. What it was asked tells when, if it is not far; a message may be of any
 * time. */
static bool is_late(const struct server *server)
{
	return is_outdated(server) && server_is_up(server) &&
	       (server->conn.listens ||
		conn_waited(&server->conn) > LATE + 2 * server->conn.distance);
}

/* The seeds were asked about that a moment ago, and no majority has answered: they may
 * refuse at once, so they are not asked again, and it is not read, before their next
 * check. */
static bool is_put_off(const struct server *server)
{
	return is_late(server) && !discovery_is_busy(server->discovery) &&
	       !deadline_passed(server->discovery->next_check);
}

size_t server_prepare(const struct server *server, struct pollfd *polled,
		      struct deadline *until)
{
	bool put_off = is_put_off(server);

	conn_prepare(&server->conn, !is_seeking(server) && !put_off, polled,
		     until);
	*until = deadline_earlier(*until, server->again);
	if (server->discovery == NULL)
		return 1;
	if (put_off)
		*until =
			deadline_earlier(*until, server->discovery->next_check);
	return 1 + discovery_prepare(server->discovery, polled + 1, until);
}

int server_pump(struct server *server, const struct pollfd *polled,
		server_reply *reply, void *context)
{
	struct pumped pumped = {server, reply, context};
	bool put_off = is_put_off(server);
	int result;

	if (polled->revents != 0 && is_late(server) && !put_off)
		discovery_start(server->discovery);
	if (server->discovery != NULL && discovery_is_busy(server->discovery) &&
	    seek(server, polled + 1) < 0)
		return -1;
	result = conn_pump(&server->conn, polled->revents,
			   is_seeking(server) || put_off ? NULL : on_reply,
			   &pumped);
	server->reached |= server_is_up(server);
	if (result < 0)
		ask_no_more(server);
	else if (deadline_passed(server->again))
		result = queue_last(server);
	return is_seeking(server) ? 0 : result; /* a guess may fail */
}
