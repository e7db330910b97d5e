#include "cmd/json.h"

#include <inttypes.h>
#include <string.h>

#include "lock/trust.h"

#include "settings/options.h"

static void print_text(struct buffer *text, const char *name, const char *value)
{
	buffer_print(text, "\"%s\":", name);
	if (value != NULL)
		output_json(text, value, strlen(value));
	else
		buffer_print(text, "null");
}

/* null below least */
static void print_number(struct buffer *text, const char *name, int64_t value,
			 int64_t least)
{
	if (value >= least)
		buffer_print(text, "\"%s\":%" PRId64, name, value);
	else
		buffer_print(text, "\"%s\":null", name);
}

static const char *or_null(const char *text)
{
	return text[0] != '\0' ? text : NULL;
}

static void print_holder(struct buffer *text, const struct busy *who)
{
	print_text(text, "host", or_null(who->holder.host));
	buffer_print(text, ",");
	print_number(text, "pid", who->holder.pid, 1);
	buffer_print(text, ",");
	print_text(text, "user", or_null(who->holder.user));
	buffer_print(text, ",");
	print_text(text, "command", or_null(who->holder.command));
}

static const char *kind_name(enum kind kind, bool foreign)
{
	return kind == KIND_NONE ? NULL
	       : foreign         ? "foreign"
				 : view_kind_name(kind);
}

static void print_holders(struct buffer *text, const struct view *view)
{
	const struct crowd *holders = &view->holders;

	buffer_print(text, ",\"holders\":[");
	for (size_t n = 0; n < holders->count; n++) {
		const struct seen *seen = &holders->seen[n];

		buffer_print(text, n > 0 ? ",{" : "{");
		print_holder(text, &seen->who);
		buffer_print(text, ",");
		print_number(text, "held_ms", seen->who.held, 0);
		buffer_print(text, ",");
		print_number(text, "left_ms", seen->who.left, 0);
		buffer_print(text,
			     ",\"count\":%" PRId64
			     ",\"servers\":%zu,\"partial\":%s}",
			     seen->count, seen_count(seen),
			     view_is_partial(view, seen) ? "true" : "false");
	}
	buffer_print(text, "],\"more_holders\":%" PRId64,
		     holders->total - (int64_t)holders->count);
}

static void print_queue(struct buffer *text, const struct crowd *waiters)
{
	buffer_print(text, ",\"queue\":[");
	for (size_t n = 0; n < waiters->count; n++) {
		const struct seen *seen = &waiters->seen[n];

		buffer_print(text, n > 0 ? ",{" : "{");
		print_holder(text, &seen->who);
		buffer_print(text, ",\"waited_ms\":%" PRId64 ",",
			     seen->who.held);
		print_text(text, "wants",
			   seen->wish_known ? view_kind_name(seen->wants)
					    : NULL);
		buffer_print(text, ",");
		print_number(text, "permits", seen->permits, 1);
		buffer_print(text, ",\"servers\":%zu}", seen_count(seen));
	}
	buffer_print(text, "],\"more_waiters\":%" PRId64,
		     waiters->total - (int64_t)waiters->count);
}

static void print_servers(struct buffer *text, const struct view *view)
{
	static const char *const votes[] = {
		[STANDING_FREE] = "free",
		[STANDING_HELD] = "held",
		[STANDING_MISUSED] = "misused",
	};
	const struct quorum *quorum = view->lock.quorum;

	buffer_print(text, ",\"servers\":[");
	for (size_t i = 0; i < quorum->count; i++) {
		const struct server *server = &quorum->servers[i];
		bool known = view->standing[i] != STANDING_UNKNOWN;

		buffer_print(text, i > 0 ? ",{" : "{");
		print_text(text, "server", server->url.name);
		buffer_print(text, ",");
		print_text(text, "vote",
			   known ? votes[view->standing[i]] : NULL);
		buffer_print(text, ",");
		print_number(text, "fence", known ? view->fences[i] : 0, 1);
		buffer_print(text, ",");
		print_text(text, "error", known ? NULL : server->why);
		buffer_print(text, ",\"replica\":%s,\"quarantined\":%s}",
			     known && view->replica[i] ? "true" : "false",
			     known && trust_is_new(&view->lock, i) ? "true"
								   : "false");
	}
	buffer_print(text, "]");
}

void json_view(struct buffer *text, const struct view *view, const char *state)
{
	size_t speaker = view_speaker(view);
	bool told = speaker < view->lock.quorum->count;
	bool foreign =
		view->holders.count == 0 || !view->holders.seen[0].who.known;
	enum kind kind =
		told ? view_kind(view->type[speaker], view->permits[speaker])
		     : KIND_NONE;

	buffer_print(text, "{\"key\":");
	output_json(text, view->lock.key.data, view->lock.key.length);
	buffer_print(text, ",");
	print_text(text, "state", state);
	buffer_print(text, ",");
	print_text(text, "kind", kind_name(kind, foreign));
	buffer_print(text, ",");
	print_number(text, "permits", told ? view->permits[speaker] : 0, 1);
	buffer_print(text, ",");
	print_number(text, "fence", view_fence(view), 1);
	print_holders(text, view);
	print_queue(text, &view->waiters);
	print_servers(text, view);
	buffer_print(text, "}\n");
}

void json_listed(struct buffer *text, const struct listed *listed)
{
	const struct busy *who = &listed->first.who;

	buffer_print(text, "{\"key\":");
	output_json(text, listed->key.data, listed->key.length);
	buffer_print(text, ",");
	print_text(text, "kind", kind_name(listed->kind, !who->known));
	buffer_print(text, ",");
	print_number(text, "permits", listed->permits, 1);
	buffer_print(text, ",\"holders\":%" PRId64 ",", listed->holders);
	print_holder(text, who);
	buffer_print(text, ",");
	print_number(text, "held_ms", who->held, 0);
	buffer_print(text, ",");
	print_number(text, "left_ms", who->left, 0);
	buffer_print(text, "}\n");
}

static void print_warnings(struct buffer *text, const struct buffer *warnings,
			   uint32_t accepted)
{
	const char *warning, *name, *before = "";
	size_t at = 0;

	buffer_print(text, "\"warnings\":[");
	while ((warning = checkup_next(warnings, &at, accepted, &name))) {
		buffer_print(text, "%s", before);
		output_json(text, warning, strlen(warning));
		before = ",";
	}
	buffer_print(text, "]");
}

static void print_checkup(struct buffer *text, const char *server,
			  const struct checkup *at, uint32_t accepted)
{
	static const char truth[][6] = {"null", "false", "true"};
	const struct {
		const char *name, *value;
	} texts[] = {
		{"server", server},         {"error", at->error.text},
		{"version", at->version},   {"maxmemory_policy", at->policy},
		{"appendfsync", at->fsync},
	};

	for (size_t n = 0; n < sizeof(texts) / sizeof(texts[0]); n++) {
		buffer_print(text, n == 0 ? "{" : ",");
		print_text(text, texts[n].name, or_null(texts[n].value));
	}
	buffer_print(text, ",\"appendonly\":%s,\"snapshots\":%s,",
		     truth[at->appends + 1], truth[at->saves + 1]);
	print_number(text, "uptime_ms", at->uptime, 0);
	buffer_print(text, ",");
	print_number(text, "round_trip_ms", at->trip, 0);
	buffer_print(text, ",");
	print_number(text, "clock_ms", at->ahead,
		     at->trip < 0 ? INT64_MAX : -INT64_MAX);
	buffer_print(text, ",");
	print_warnings(text, &at->warnings, accepted);
	buffer_print(text, "}");
}

static void print_origins(struct buffer *text, const struct settings *settings)
{
	const char *before = "\"settings\":{";

	for (size_t i = 0; i < option_count; i++) {
		struct buffer origin = {0};

		if (!options_has_origin(settings, &options[i]))
			continue;
		options_tell_origin(&origin, settings, &options[i]);
		buffer_print(text, "%s", before);
		print_text(text, options[i].name, origin.data);
		buffer_release(&origin);
		before = ",";
	}
	buffer_print(text, "%s}", *before == ',' ? "" : before);
}

void json_doctor(struct buffer *text, const struct doctor *doctor,
		 const struct settings *settings)
{
	const struct quorum *quorum = doctor->lock.quorum;

	buffer_print(text, "{\"servers\":[");
	for (size_t i = 0; i < quorum->count; i++) {
		buffer_print(text, i > 0 ? "," : "");
		print_checkup(text, quorum->servers[i].url.name, &doctor->at[i],
			      settings->accepted);
	}
	buffer_print(text,
		     "],\"would_grant\":%zu,\"needed\":%zu,\"quorum\":%s,",
		     doctor_count(doctor), quorum_size(quorum),
		     doctor->well ? "true" : "false");
	print_warnings(text, &doctor->warnings, settings->accepted);
	buffer_print(text, ",");
	print_origins(text, settings);
	buffer_print(text, "}\n");
}

void json_ending(struct buffer *text, const struct lock *lock,
		 const struct ending *ending)
{
	buffer_print(text, "{\"outcome\":\"%s\",", ending->outcome);
	print_number(text, "child_exit", ending->exit, 0);
	buffer_print(text, ",");
	print_number(text, "child_signal", ending->signal, 1);
	buffer_print(text,
		     ",\"waited_ms\":%" PRId64 ",\"held_ms\":%" PRId64
		     ",\"renewals\":%u,\"key\":",
		     ending->waited, ending->held, ending->renewals);
	output_json(text, lock->key.data, lock->key.length);
	buffer_print(text, ",");
	print_text(text, "token", ending->granted ? lock->token : NULL);
	buffer_print(text, ",");
	print_number(text, "fence", ending->granted ? lock->fence : -1, 0);
	buffer_print(text, "}\n");
}
