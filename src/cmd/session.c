#include "cmd/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/threads.h"
#include "base/tokens.h"
#include "run/ancestry.h"
#include "net/local.h"
#include "net/tls_load.h"
#include "server/drain.h"
#include "show/inspect.h"
#include "base/signals.h"

static enum kind kind_of(const struct settings *settings)
{
	return settings->shared             ? KIND_SHARED
	       : settings->reentrant        ? KIND_REENTRANT
	       : settings->permits != UNSET ? KIND_PERMITS
					    : KIND_EXCLUSIVE;
}

/* The kind of lock, and the run above us that may hold it already. */
static void describe_wish(struct session *session)
{
	const struct settings *settings = session->settings;
	struct lock *lock = &session->lock;

	lock->wish.kind = kind_of(settings);
	if (settings->permits != UNSET)
		lock->wish.permits = settings->permits;
	if (ancestry_find(getenv("REDLOCK_HELD"), lock->names.key.data,
			  session->ancestor, sizeof(session->ancestor)) &&
	    bounds_allow_token(session->ancestor))
		lock->wish.ancestor = lock->wish.owner = session->ancestor;
	if (settings->owner != NULL)
		lock->wish.owner = settings->owner;
}

static void make_quorum(struct quorum *quorum, const struct settings *settings,
			struct url *urls, size_t count)
{
	quorum_init(quorum, urls, count, settings->server_timeout,
		    settings->quarantine > 0);
	if (settings->replicas > 0)
		quorum_want_replicas(quorum, settings->replicas);
}

/* The same servers, on connections of its own. */
static void copy_quorum(struct quorum *quorum, const struct settings *settings,
			const struct quorum *from)
{
	struct url urls[SERVERS_MAX];

	for (size_t i = 0; i < from->count; i++)
		urls[i] = url_copy(&from->servers[i].url);
	make_quorum(quorum, settings, urls, from->count);
}

/* For run --unreachable run a server that does not start is one that is away. */
static int open_local(struct url *url, const struct settings *settings,
		      struct error *error)
{
	if (local_resolve(url, error) == 0) {
		if (error->text[0] != '\0')
			log_error("%s", error->text);
		return 0;
	}
	if (!settings->unlocked || error->code != EXIT_UNREACHED)
		return -1;
	log_error("%s", error->text);
	return 0;
}

/* Hands the servers of the settings over to the quorum. A `local:` server is
 * started if it is not running. */
int cmd_try_quorum(struct quorum *quorum, struct settings *settings,
		   struct error *error)
{
	const struct tls_settings tls = {
		.cacert = settings->tls.cacert,
		.crl = settings->tls.crl,
		.cert = settings->tls.cert,
		.key_file = settings->tls.key_file,
		.sni = settings->tls.sni,
		.insecure = settings->tls.insecure,
	};

	if (settings_have_tls(settings) && tls_load(&tls, error) < 0)
		return -1;
	for (size_t i = 0; i < settings->server_count; i++)
		if (settings->servers[i].kind == URL_LOCAL &&
		    open_local(&settings->servers[i], settings, error) < 0)
			return -1;
	make_quorum(quorum, settings, settings->servers,
		    settings->server_count);
	settings->server_count = 0;
	return 0;
}

int cmd_open_quorum(struct quorum *quorum, struct settings *settings)
{
	struct error error;

	if (cmd_try_quorum(quorum, settings, &error) == 0)
		return 0;
	log_error("%s", error.text);
	return error.code;
}

/* For key i, once there is a quorum. */
static void open_lock(struct session *session, size_t i)
{
	const struct settings *settings = session->settings;
	const char *key = settings_key(settings, i);
	char token[TOKEN_LONGEST + 1];

	lock_init(&session->lock, &session->quorum, key, settings->ttl,
		  settings->quarantine);
	if (settings->token != NULL &&
	    tokens_pick(settings->token, settings_key_count(settings),
			settings_key_index(settings, key), token))
		lock_adopt(&session->lock, token);
	describe_wish(session);
}

__attribute__((noinline)) static void open_others(struct session *session)
{
	session->others = xcalloc(session->count - 1, sizeof(*session->others));
	for (size_t i = 1; i < session->count; i++) {
		struct session *other = session_at(session, i);

		other->settings = session->settings;
		copy_quorum(&other->quorum, session->settings,
			    &session->quorum);
		open_lock(other, i);
		session->locks[i] = &other->lock;
	}
}

int cmd_open(struct session *session, struct settings *settings)
{
	int status;

	*session = (struct session){
		.settings = settings,
		.signals = -1,
		.interrupt = -1,
		.count = settings_key_count(settings),
	};
	status = cmd_open_quorum(&session->quorum, settings);
	if (status != 0)
		return status;
	open_lock(session, 0);
	session->locks[0] = &session->lock;
	if (session->count > 1)
		open_others(session);
	return 0;
}

void cmd_close(struct session *session)
{
	for (size_t i = 0; i < session->count; i++) {
		struct session *each = session_at(session, i);

		listening_end(&each->lock.listening, &each->quorum);
		drain_connections(&each->quorum);
		lock_release_memory(&each->lock);
		quorum_release(&each->quorum);
	}
	free(session->others);
}

int cmd_heed_signals(struct session *session)
{
	session->signals = session->interrupt = signals_open();
	if (session->signals >= 0)
		return 0;
	log_error("%s: no descriptor for signals: %s", session->settings->key,
		  strerror(errno));
	return EXIT_SYSTEM;
}

void cmd_each(struct session *session, void (*act)(void *session, size_t i))
{
	threads_each(session->count, act, session);
}

void cmd_release_one(void *session, size_t i)
{
	struct session *each = session_at(session, i);
	struct answer *answer = &each->answer;

	answer->result =
		lock_release(&each->lock, 0, deadline_in(each->quorum.timeout),
			     &answer->error);
}

void cmd_give_back(struct session *session)
{
	cmd_each(session, cmd_release_one);
	for (size_t i = 0; i < session->count; i++) {
		const struct session *each = session_at(session, i);

		if (each->answer.result != LOCK_OK)
			cmd_complain(&each->lock, &each->answer.error);
	}
}

int64_t cmd_held_since(const struct session *session)
{
	int64_t since = 0;

	for (size_t i = 0; i < session->count; i++)
		if (session->locks[i]->grant.acquired > since)
			since = session->locks[i]->grant.acquired;
	return since;
}

struct deadline cmd_valid_until(const struct session *session)
{
	struct deadline until = deadline_never();

	for (size_t i = 0; i < session->count; i++)
		until = deadline_earlier(until, session->locks[i]->grant.valid);
	return until;
}

void cmd_print_token(struct buffer *text, const struct session *session)
{
	const char *tokens[LOCKS_MOST] = {NULL};

	for (size_t i = 0; i < session->count; i++)
		tokens[settings_key_index(session->settings,
					  session->locks[i]->names.key.data)] =
			session->locks[i]->grant.token;
	tokens_join(text, tokens, session->count);
}

/* Whether KEY is other data on most servers. Releases and extensions only say that
 * it is not ours. */
static bool is_no_lock(struct session *session, struct error *error)
{
	struct quorum *quorum = &session->quorum;
	struct holders holders;
	struct error ignored;
	bool result;

	holders_init(&holders, quorum, session->lock.names.key.data);
	inspect_lock(&holders, &ignored);
	result = holders_servers(&holders, STANDING_MISUSED) >=
		 quorum_size(quorum);
	if (result)
		error_set(error, EXIT_MISUSED, "KEY is not a lock: it is a %s",
			  holders.type[holders_speaker(&holders)]);
	holders_release(&holders);
	return result;
}

void cmd_look_closer(void *session, size_t i)
{
	struct session *each = session_at(session, i);
	struct answer *answer = &each->answer;

	if (answer->result == LOCK_NOT_HELD && !each->lock.broken &&
	    ballot_count(&each->lock.ballot, VOTE_HELD) > 0 &&
	    is_no_lock(each, &answer->error))
		answer->result = LOCK_ERROR;
}

static int report(struct session *session)
{
	struct answer *answer = &session->answer;

	if (answer->result == LOCK_OK)
		return EXIT_DONE;
	if (answer->result == LOCK_NOT_HELD && session->lock.broken) {
		log_error("%s: not extended: %s", session->lock.names.key.data,
			  answer->error.text);
		return EXIT_NOT_HELD;
	}
	if (answer->result == LOCK_NOT_HELD) {
		log_error("%s: not held by this token: %s",
			  session->lock.names.key.data, answer->error.text);
		return EXIT_NOT_HELD;
	}
	cmd_complain(&session->lock, &answer->error);
	return answer->error.code;
}

int cmd_report(struct session *session)
{
	int worst = EXIT_DONE;

	for (size_t i = 0; i < session->count; i++) {
		int status;

		cmd_look_closer(session, i);
		status = report(session_at(session, i));
		if (status > worst)
			worst = status;
	}
	return worst;
}

void cmd_complain(const struct lock *lock, const struct error *error)
{
	log_error("%s: %s", lock->names.key.data, error->text);
}

void cmd_hide_logins(const struct session *session, char *label)
{
	const struct quorum *quorum = &session->quorum;

	url_hide_logins(label);
	url_hide_password(label, getenv("REDLOCK_PASSWORD"));
	url_hide_password(label, getenv("REDLOCK_SENTINEL_PASSWORD"));
	for (size_t i = 0; i < quorum->count; i++) {
		const struct url *url = &quorum->servers[i].url;

		url_hide_password(label, url->password);
		url_hide_password(label, url->seed_password);
	}
}
