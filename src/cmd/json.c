#include "cmd/json.h"

#include <inttypes.h>
#include <string.h>

#include "base/output.h"
#include "lock/trust.h"
#include "settings/options.h"

struct json {
	struct buffer *text;
	bool first; /* in its object or array: no comma stands before it */
};

/* --- the emitter ---------------------------------------------------------- */

/* A comma, if one is due, and the name; name: NULL in an array. */
static void put_name(struct json *json, const char *name)
{
	if (!json->first)
		buffer_append(json->text, ",", 1);
	json->first = false;
	if (name != NULL)
		buffer_print(json->text, "\"%s\":", name);
}

/* bracket: '{' or '[' */
static void enter(struct json *json, const char *name, char bracket)
{
	put_name(json, name);
	buffer_append(json->text, &bracket, 1);
	json->first = true;
}

static void leave(struct json *json, char bracket)
{
	buffer_append(json->text, &bracket, 1);
	json->first = false;
}

/* Begins the object of a line. */
static struct json begin(struct buffer *text)
{
	struct json json = {text, true};

	enter(&json, NULL, '{');
	return json;
}

static void end(struct json *json)
{
	leave(json, '}');
	buffer_append(json->text, "\n", 1);
}

static void put_null(struct json *json, const char *name)
{
	put_name(json, name);
	buffer_append(json->text, "null", 4);
}

static void put_bool(struct json *json, const char *name, bool value)
{
	put_name(json, name);
	buffer_print(json->text, "%s", value ? "true" : "false");
}

static void put_number(struct json *json, const char *name, int64_t value)
{
	put_name(json, name);
	buffer_print(json->text, "%" PRId64, value);
}

/* null if value is below least */
static void put_from(struct json *json, const char *name, int64_t least,
		     int64_t value)
{
	if (value >= least)
		put_number(json, name, value);
	else
		put_null(json, name);
}

/* null if value is NULL */
static void put_text(struct json *json, const char *name, const char *value)
{
	if (value == NULL) {
		put_null(json, name);
		return;
	}
	put_name(json, name);
	output_json(json->text, value, strlen(value));
}

/* null if value is "" */
static void put_known(struct json *json, const char *name, const char *value)
{
	put_text(json, name, value[0] != '\0' ? value : NULL);
}

/* null if the command line was not understood as far as KEY */
static void put_key(struct json *json, struct argument key)
{
	if (key.data == NULL) {
		put_null(json, "key");
		return;
	}
	put_name(json, "key");
	output_json(json->text, key.data, key.length);
}

/* --- status and list ------------------------------------------------------ */

static void put_holder(struct json *json, const struct holder *holder)
{
	put_known(json, "host", holder->host);
	put_from(json, "pid", 1, holder->pid);
	put_known(json, "user", holder->user);
	put_known(json, "command", holder->command);
}

static void put_who(struct json *json, const struct busy *who)
{
	put_holder(json, &who->holder);
	put_from(json, "protocol", 1, who->holder.protocol);
}

/* null: nobody has asked it to stop */
static void put_breaker(struct json *json, const struct breaker *breaker)
{
	if (breaker->asked < 0) {
		put_null(json, "break");
		return;
	}
	enter(json, "break", '{');
	put_known(json, "by", breaker->name);
	put_known(json, "reason", breaker->reason);
	put_number(json, "asked_ms", breaker->asked);
	leave(json, '}');
}

static void put_times(struct json *json, const struct busy *who)
{
	put_from(json, "held_ms", 0, who->held);
	put_from(json, "left_ms", 0, who->left);
}

static const char *name_kind(enum kind kind, bool foreign)
{
	return kind == KIND_NONE ? NULL
	       : foreign         ? "foreign"
				 : holders_kind_name(kind);
}

/* null: servers that have not answered may have it, too */
static void put_partial(struct json *json, int has_lock)
{
	if (has_lock < 0)
		put_null(json, "partial");
	else
		put_bool(json, "partial", has_lock == 0);
}

static void put_holders(struct json *json, const struct holders *holders)
{
	const struct crowd *holding = &holders->holding;

	enter(json, "holders", '[');
	for (size_t n = 0; n < holding->count; n++) {
		const struct seen *seen = &holding->seen[n];

		enter(json, NULL, '{');
		put_who(json, &seen->who);
		put_from(json, "keeper_pid", 1, seen->who.holder.keeper);
		put_times(json, &seen->who);
		put_number(json, "count", seen->count);
		put_from(json, "slot", 1, seen->slot);
		put_number(json, "servers", (int64_t)seen_count(seen));
		put_partial(json, holders_has_lock(holders, seen));
		put_breaker(json, &seen->who.holder.breaker);
		leave(json, '}');
	}
	leave(json, ']');
	put_number(json, "more_holders",
		   holding->total - (int64_t)holding->count);
}

static void put_queue(struct json *json, const struct crowd *waiting)
{
	enter(json, "queue", '[');
	for (size_t n = 0; n < waiting->count; n++) {
		const struct seen *seen = &waiting->seen[n];

		enter(json, NULL, '{');
		put_who(json, &seen->who);
		put_number(json, "waited_ms", seen->who.held);
		put_text(json, "wants",
			 seen->wish_known ? holders_kind_name(seen->wants)
					  : NULL);
		put_from(json, "permits", 1, seen->permits);
		put_number(json, "servers", (int64_t)seen_count(seen));
		leave(json, '}');
	}
	leave(json, ']');
	put_number(json, "more_waiters",
		   waiting->total - (int64_t)waiting->count);
}

/* Where Sentinels or nodes have named it; null if the URL does. */
static void put_endpoint(struct json *json, const struct server *server)
{
	const struct endpoint *endpoint = server_endpoint(server);
	char name[ENDPOINT_TEXT];

	put_text(json, "at",
		 endpoint != NULL ? endpoint_format(name, endpoint) : NULL);
}

/* What is free, and cannot be taken, is misused. */
static enum standing vote_of(const struct holders *holders, size_t i)
{
	return holders->standing[i] != STANDING_HELD &&
			       holders_is_misused(holders, i)
		       ? STANDING_MISUSED
		       : holders->standing[i];
}

static void put_servers(struct json *json, const struct holders *holders)
{
	static const char *const votes[] = {
		[STANDING_FREE] = "free",
		[STANDING_HELD] = "held",
		[STANDING_MISUSED] = "misused",
	};
	const struct quorum *quorum = holders->ballot.quorum;

	enter(json, "servers", '[');
	for (size_t i = 0; i < quorum->count; i++) {
		const struct server *server = &quorum->servers[i];
		bool known = holders->standing[i] != STANDING_UNKNOWN;

		enter(json, NULL, '{');
		put_text(json, "server", server->url.name);
		put_endpoint(json, server);
		put_text(json, "vote",
			 known ? votes[vote_of(holders, i)] : NULL);
		put_from(json, "fence", 1, known ? holders->fences[i] : 0);
		put_text(json, "error",
			 known ? NULL : server->conn.refusal.text);
		put_bool(json, "replica", known && holders->replica[i]);
		put_bool(json, "quarantined",
			 known && trust_is_new(&holders->ballot, i));
		leave(json, '}');
	}
	leave(json, ']');
}

static void put_run(struct json *json, const struct past_run *run)
{
	const char *by =
		run->end == RUN_BROKEN || run->end == RUN_OTHER ? run->by : "";

	put_number(json, "began_ms", run->began);
	put_from(json, "age_ms", 0, run->age);
	put_holder(json, &run->who);
	put_from(json, "waited_ms", 0, run->waited);
	put_number(json, "held_ms", run->held);
	put_from(json, "fence", 1, run->fence);
	put_text(json, "end", run_end_name(run->end));
	put_from(json, "exit", 0, run->end == RUN_EXIT ? run->number : -1);
	put_from(json, "signal", 1, run->end == RUN_SIGNAL ? run->number : 0);
	put_known(json, "by", by);
}

/* null if last is NULL */
static void put_last_run(struct json *json, const struct past_run *last)
{
	if (last == NULL) {
		put_null(json, "last_run");
		return;
	}
	enter(json, "last_run", '{');
	put_run(json, last);
	leave(json, '}');
}

void json_history(struct buffer *text, const struct history *history)
{
	struct json json = begin(text);
	int64_t failed = 0;

	put_key(&json, history->names.key);
	enter(&json, "runs", '[');
	for (size_t n = 0; n < history->count; n++) {
		enter(&json, NULL, '{');
		put_run(&json, &history->run[n]);
		leave(&json, '}');
		failed += run_failed(&history->run[n]);
	}
	leave(&json, ']');
	put_number(&json, "failed", failed);
	put_from(&json, "median_ms", 0, history_usual(history));
	put_from(&json, "longest_ms", 0, history_longest(history));
	end(&json);
}

void json_holders(struct buffer *text, const struct holders *holders,
		  const char *state, const struct past_run *last)
{
	struct json json = begin(text);
	size_t speaker = holders_speaker(holders);
	bool told = speaker < holders->ballot.quorum->count;
	bool foreign = holders->holding.count == 0 ||
		       !holders->holding.seen[0].who.has_description;
	enum kind kind = told ? holders_kind(holders->type[speaker],
					     holders->permits[speaker])
			      : KIND_NONE;

	put_key(&json, holders->names.key);
	put_text(&json, "state", state);
	put_text(&json, "kind", name_kind(kind, foreign));
	put_from(&json, "permits", 1, told ? holders->permits[speaker] : 0);
	put_from(&json, "fence", 1, holders_fence(holders));
	put_holders(&json, holders);
	put_queue(&json, &holders->waiting);
	put_servers(&json, holders);
	put_last_run(&json, last);
	end(&json);
}

/* As status says it. */
static const char *name_state(const struct listed *listed)
{
	return listed->kind == KIND_NONE ? NULL
	       : listed->perhaps         ? "unknown"
					 : "held";
}

void json_listed(struct buffer *text, const struct listed *listed)
{
	struct json json = begin(text);
	const struct busy *who = &listed->first.who;

	put_key(&json, listed->key);
	put_text(&json, "state", name_state(listed));
	put_text(&json, "kind", name_kind(listed->kind, !who->has_description));
	put_from(&json, "permits", 1, listed->permits);
	put_from(&json, "holders", 1,
		 listed->kind == KIND_NONE ? 0 : listed->holders);
	put_from(&json, "slot", 1, listed->first.slot);
	put_who(&json, who);
	put_times(&json, who);
	put_from(&json, "waiting", 0, listed->waiting);
	put_from(&json, "oldest_wait_ms", 0,
		 listed->waiting > 0 ? listed->oldest_wait : -1);
	end(&json);
}

/* --- doctor --------------------------------------------------------------- */

static void put_warnings(struct json *json, const struct buffer *warnings,
			 uint32_t accepted)
{
	const char *warning, *name;
	size_t at = 0;

	enter(json, "warnings", '[');
	while ((warning = warning_next(warnings, &at, accepted, &name)))
		put_text(json, NULL, warning);
	leave(json, ']');
}

/* -1: it is not known */
static void put_answer(struct json *json, const char *name, int64_t answer)
{
	if (answer < 0)
		put_null(json, name);
	else
		put_bool(json, name, answer > 0);
}

static void put_facts(struct json *json, const struct server *server,
		      const struct server_facts *at, uint32_t accepted)
{
	enter(json, NULL, '{');
	put_text(json, "server", server->url.name);
	put_endpoint(json, server);
	put_known(json, "error", at->error.text);
	put_text(json, "software",
		 at->version[0] != '\0' ? at->software : NULL);
	put_known(json, "version", at->version);
	put_known(json, "maxmemory_policy", at->policy);
	put_known(json, "appendfsync", at->fsync);
	put_answer(json, "appendonly", at->appends);
	put_answer(json, "snapshots", at->saves);
	put_from(json, "uptime_ms", 0, at->uptime);
	put_from(json, "replicas", 0, at->replicas);
	put_from(json, "round_trip_ms", 0, at->trip);
	if (at->trip >= 0)
		put_number(json, "clock_ms", at->ahead);
	else
		put_null(json, "clock_ms");
	put_warnings(json, &at->warnings, accepted);
	leave(json, '}');
}

static void put_origins(struct json *json, const struct settings *settings)
{
	enter(json, "settings", '{');
	for (size_t i = 0; i < option_count; i++) {
		struct buffer origin = {0};

		if (!options_has_origin(settings, &options[i]))
			continue;
		options_tell_origin(&origin, settings, &options[i]);
		put_text(json, options[i].name, origin.data);
		buffer_release(&origin);
	}
	leave(json, '}');
}

void json_doctor(struct buffer *text, const struct doctor *doctor,
		 const struct settings *settings)
{
	struct json json = begin(text);
	const struct quorum *quorum = doctor->lock.ballot.quorum;

	enter(&json, "servers", '[');
	for (size_t i = 0; i < quorum->count; i++)
		put_facts(&json, &quorum->servers[i], &doctor->at[i],
			  settings->accepted);
	leave(&json, ']');
	put_number(&json, "would_grant", (int64_t)doctor_count(doctor));
	put_number(&json, "needed", (int64_t)quorum_size(quorum));
	put_bool(&json, "quorum", doctor->well);
	put_warnings(&json, &doctor->warnings, settings->accepted);
	put_origins(&json, settings);
	end(&json);
}

/* --- acquire and run ------------------------------------------------------ */

static void put_token(struct json *json, const struct session *session)
{
	struct buffer token = {0};

	cmd_print_token(&token, session);
	put_text(json, "token", token.data);
	buffer_release(&token);
}

/* Of several locks: {KEY: FENCE}. */
static void put_fences(struct json *json, const struct session *session,
		       bool granted)
{
	if (session->count == 1)
		return;
	if (!granted) {
		put_null(json, "fences");
		return;
	}
	enter(json, "fences", '{');
	for (size_t i = 0; i < session->count; i++) {
		const struct lock *lock = session->locks[i];

		put_name(json, NULL);
		output_json(json->text, lock->names.key.data,
			    lock->names.key.length);
		buffer_print(json->text, ":%" PRId64, lock->grant.fence);
	}
	leave(json, '}');
}

void json_grant(struct buffer *text, const struct session *session)
{
	const struct lock *lock = &session->lock;
	struct json json = begin(text);

	put_key(&json, lock->names.key);
	put_token(&json, session);
	put_number(&json, "fence", lock->grant.fence);
	put_fences(&json, session, true);
	put_from(&json, "slot", 1, lock->grant.slot);
	put_number(&json, "ttl_ms", lock->wish.ttl);
	put_number(&json, "valid_ms", deadline_left(cmd_valid_until(session)));
	end(&json);
}

void json_ending(struct buffer *text, const struct session *session,
		 const struct ending *ending)
{
	const struct lock *lock = &session->lock;
	struct json json = begin(text);

	put_text(&json, "outcome", ending->outcome);
	put_from(&json, "child_exit", 0, ending->exit);
	put_from(&json, "child_signal", 1, ending->signal);
	put_number(&json, "waited_ms", ending->waited);
	put_number(&json, "held_ms", ending->held);
	put_number(&json, "renewals", ending->renewals);
	put_key(&json, lock->names.key);
	if (ending->granted)
		put_token(&json, session);
	else
		put_null(&json, "token");
	put_from(&json, "fence", 0, ending->granted ? lock->grant.fence : -1);
	put_fences(&json, session, ending->granted);
	put_from(&json, "slot", 1, ending->granted ? lock->grant.slot : 0);
	end(&json);
}
