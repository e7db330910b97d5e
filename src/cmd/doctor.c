#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd/print.h"
#include "cmd/session.h"
#include "cmd/json.h"
#include "cmd/metrics.h"
#include "settings/command.h"
#include "settings/config.h"
#include "show/doctor.h"
#include "base/duration.h"
#include "base/alloc.h"
#include "settings/options.h"

static void print_line(struct buffer *text, const char *name, const char *kind,
		       const char *more)
{
	struct buffer line = {0};

	buffer_print(&line, "%s: %s%s", name, kind, more);
	cmd_add_line(text, &line, STDOUT_FILENO, "\n");
	buffer_release(&line);
}

/* INFO or CONFIG GET may be forbidden. */
static const char *or_unknown(const char *text)
{
	return text[0] != '\0' ? text : "unknown";
}

static void print_persistence(struct buffer *text,
			      const struct server_facts *at)
{
	if (at->appends > 0)
		buffer_print(text, ", appendfsync %s", or_unknown(at->fsync));
	else
		buffer_print(text, ", appendonly %s%s",
			     at->appends < 0 ? "unknown" : "no",
			     at->saves > 0 ? ", snapshots" : "");
}

/* What is known of a server that would grant a lock. */
static void print_facts(struct buffer *text, const struct server_facts *at,
			const struct endpoint *endpoint)
{
	char up[DURATION_TEXT], trip[DURATION_TEXT], name[ENDPOINT_TEXT];

	buffer_print(text, "ok");
	if (endpoint != NULL)
		buffer_print(text, ", at %s", endpoint_format(name, endpoint));
	if (at->version[0] != '\0')
		buffer_print(text, ", %s %s", at->software, at->version);
	if (at->uptime >= 0)
		buffer_print(text, ", up for %s",
			     duration_format(up, at->uptime));
	if (at->trip >= 0)
		buffer_print(text,
			     ", answers in under %s, clock %+" PRId64 "ms",
			     duration_format(trip, at->trip + 1), at->ahead);
	buffer_print(text, ", maxmemory-policy %s", or_unknown(at->policy));
	print_persistence(text, at);
}

static void print_warnings(struct buffer *text, const char *name,
			   const char *kind, const struct buffer *warnings,
			   uint32_t accepted)
{
	const char *warning, *accept;
	size_t at = 0;

	while ((warning = warning_next(warnings, &at, accepted, &accept))) {
		struct buffer line = {0};

		buffer_print(&line, "%s (--accept %s)", warning, accept);
		print_line(text, name, kind, line.data);
		buffer_release(&line);
	}
}

static void print_server(struct buffer *lines, const struct doctor *doctor,
			 size_t i, const struct settings *settings)
{
	const struct server *server = &doctor->lock.ballot.quorum->servers[i];
	const struct server_facts *at = &doctor->at[i];
	int64_t quarantine = doctor->lock.ballot.quarantine;
	struct buffer facts = {0};
	char text[DURATION_TEXT];

	print_facts(&facts, at, server_endpoint(server));
	if (quarantine > 0 &&
	    !(server->conn.identity.claim.durable && at->reads > 0))
		buffer_print(&facts, ", no vote for %s after a restart",
			     duration_format(text, quarantine));
	if (settings->replicas > 0 && at->replicas >= 0)
		buffer_print(&facts, ", %" PRId64 " replica%s", at->replicas,
			     at->replicas == 1 ? "" : "s");
	if (at->error.text[0] != '\0')
		print_line(lines, server->url.name, "error: ", at->error.text);
	else if (!settings->quiet)
		print_line(lines, server->url.name, "", facts.data);
	print_warnings(lines, server->url.name, "warning: ", &at->warnings,
		       settings->accepted);
	buffer_release(&facts);
}

static void print_verdict(struct buffer *text, const struct doctor *doctor)
{
	const struct quorum *quorum = doctor->lock.ballot.quorum;
	size_t good = doctor_count(doctor), need = quorum_size(quorum);

	buffer_print(text, "%zu of %zu servers would grant a lock, %zu needed",
		     good, quorum->count, need);
	if (good >= need)
		buffer_print(text, ": %zu more may fail", good - need);
}

/* The origins of the settings: another user, or cron, may have others. */
static void print_origins(struct buffer *text, const struct settings *settings)
{
	struct buffer origins = {0};

	options_tell_origins(&origins, settings);
	if (origins.length > 0)
		print_line(text, "settings", "", origins.data);
	buffer_release(&origins);
}

static int print_lines(const struct doctor *doctor,
		       const struct settings *settings,
		       const struct buffer *verdict)
{
	struct buffer text = {0};
	int status;

	if (settings->format == FORMAT_JSON) {
		json_doctor(&text, doctor, settings);
	} else {
		if (!settings->quiet)
			print_origins(&text, settings);
		for (size_t i = 0; i < doctor->lock.ballot.quorum->count; i++)
			print_server(&text, doctor, i, settings);
		print_warnings(&text, "warning", "", &doctor->warnings,
			       settings->accepted);
		if (doctor->well && !settings->quiet)
			cmd_add_line(&text, verdict, STDOUT_FILENO, "\n");
	}
	status = text.length > 0 ? cmd_show(text.data, text.length) : 0;
	buffer_release(&text);
	return status;
}

static int show(const struct doctor *doctor, const struct settings *settings,
		const struct error *error)
{
	struct buffer verdict = {0};
	int status;

	print_verdict(&verdict, doctor);
	status = settings->format == FORMAT_PROMETHEUS
			 ? metrics_tell_doctor(doctor, settings)
			 : print_lines(doctor, settings, &verdict);
	if (!doctor->well) {
		log_error("%s", doctor->lock.ballot.alias ? error->text
							  : verdict.data);
		status = error->code;
	}
	buffer_release(&verdict);
	return status;
}

/* Servers would grant such a lock, but these commands do not ask for it. */
static void check_ttl(struct doctor *doctor, const struct settings *settings)
{
	struct error error;

	if (config_check_ttl(settings, &error) < 0)
		warning_add(&doctor->warnings, WARNING_TTL,
			    "run and acquire --pid would be refused: ",
			    error.text, "");
}

int cmd_doctor(struct settings *settings)
{
	struct doctor *doctor;
	struct quorum quorum;
	struct error error;
	int status = cmd_open_quorum(&quorum, settings);

	if (status != 0) {
		if (settings->format == FORMAT_PROMETHEUS)
			metrics_tell_nothing(settings, true);
		return status;
	}
	doctor = xcalloc(1, sizeof(*doctor));
	doctor_init(doctor, &quorum,
		    settings->key != NULL ? settings->key : "redlock",
		    settings->quarantine, settings->ttl);
	check_ttl(doctor, settings);
	doctor_examine(doctor, &error);
	status = show(doctor, settings, &error);
	doctor_release(doctor);
	free(doctor);
	quorum_release(&quorum);
	return status;
}
