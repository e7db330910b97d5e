#include "show/server_facts.h"

#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/number.h"
#include "server/identity.h"

#define OLDEST_VERSION '5' /* whose scripts may write what they know by TIME */
#define USERS_VERSION '6'  /* the first that has users */
#define CLOCKS_APART 1000  /* ms; less is what NTP is content with */

void server_facts_init(struct server_facts *at)
{
	*at = (struct server_facts){
		.software = "Redis",
		.appends = -1,
		.reads = -1,
		.saves = -1,
		.uptime = -1,
		.replicas = -1,
		.trip = -1,
	};
}

void server_facts_release(struct server_facts *at)
{
	buffer_release(&at->warnings);
}

/* --- what it says --------------------------------------------------------- */

static void read_text(char to[FACT_SIZE], const char *info, const char *name)
{
	size_t length;
	const char *text = identity_find(info, name, &length);

	if (text != NULL && length < FACT_SIZE)
		memcpy(to, text, length);
}

/* -1: there is none, or it is beyond belief. */
static int64_t to_number(const char *text)
{
	int64_t number;

	return text != NULL && number_read(&text, 0, DURATION_MAX, &number) == 0
		       ? number
		       : -1;
}

static int64_t read_number(const char *info, const char *name)
{
	size_t length;

	return to_number(identity_find(info, name, &length));
}

static bool is_before(const struct server_facts *at, char version)
{
	return at->version[0] < version && at->version[1] == '.';
}

const char *server_facts_read_info(struct server_facts *at, const char *info,
				   bool clustered)
{
	read_text(at->version, info, "\nvalkey_version:");
	if (at->version[0] != '\0')
		at->software = "Valkey";
	else
		read_text(at->version, info, "\nredis_version:");
	read_text(at->policy, info, "\nmaxmemory_policy:");
	if (strstr(info, "\nmaxmemory:0\r") != NULL)
		strlcpy(at->policy, "noeviction", FACT_SIZE);
	at->appends = read_number(info, "\naof_enabled:");
	if (at->appends > 1)
		at->appends = 1;
	at->uptime = read_number(info, "\nuptime_in_seconds:");
	if (at->uptime > 0)
		at->uptime *= 1000;
	at->replicas = read_number(info, "\nconnected_slaves:");
	if (is_before(at, USERS_VERSION))
		at->reads = 1;
	if (is_before(at, OLDEST_VERSION))
		return "too old: locks need Redis 5 or later";
	if (strstr(info, "\nrole:slave") != NULL)
		return "a replica: name its master";
	if (!clustered && strstr(info, "\ncluster_enabled:1") != NULL)
		return "a node of a cluster: name it redis+cluster://host:port";
	return NULL;
}

void server_facts_read_config(struct server_facts *at,
			      const struct reply *reply)
{
	for (size_t n = 0; n + 1 < reply->count; n += 2) {
		const char *name = reply->value[n].text;
		const char *value = reply->value[n + 1].text;

		if (name == NULL || value == NULL)
			continue;
		if (strcmp(name, "appendonly") == 0)
			at->appends = *value == 'y';
		else if (strcmp(name, "appendfsync") == 0)
			strlcpy(at->fsync, value, FACT_SIZE);
		else if (strcmp(name, "save") == 0)
			at->saves = *value != '\0';
	}
}

void server_facts_read_user(struct server_facts *at, const struct reply *reply)
{
	at->reads = identity_may_do_all(reply);
}

void server_facts_read_time(struct server_facts *at, const struct reply *reply,
			    int64_t asked, int64_t trip)
{
	int64_t seconds = to_number(reply->value[0].text);
	int64_t more = to_number(reply->value[1].text);

	if (seconds < 0 || more < 0 || (at->trip >= 0 && at->trip <= trip))
		return;
	at->trip = trip;
	/* the server read its clock at some point of the round trip: a
	 * difference of up to half of it is not clock skew */
	at->ahead = seconds * 1000 + more / 1000 - asked - trip / 2;
	if (llabs(at->ahead) <= trip / 2 + 1)
		at->ahead = 0;
}

/* --- what it means -------------------------------------------------------- */

void server_facts_advise(struct server_facts *at, int64_t quarantine)
{
	char text[DURATION_TEXT];

	if (at->policy[0] != '\0' && strcmp(at->policy, "noeviction") != 0)
		warning_add(&at->warnings, WARNING_EVICTION,
			    "it may evict locks: maxmemory-policy is ",
			    at->policy, ": set it to noeviction");
	if (at->appends < 1 && quarantine == 0)
		warning_add(&at->warnings, WARNING_RESTART, "in a restart it ",
			    at->appends < 0 ? "may forget its locks"
			    : at->saves > 0 ? "forgets its latest locks"
					    : "forgets its locks",
			    ", and grants them anew: set appendonly yes, or "
			    "use --quarantine");
	if (at->appends > 0 && at->reads < 1)
		warning_add(
			&at->warnings, WARNING_DEFAULT,
			"in a restart it may forget its locks: its user default ",
			at->reads < 0 ? "may lack rights, which our user "
					"may not ask for"
				      : "lacks rights",
			at->reads < 0 ? ": allow it +acl|getuser"
				      : ": give it ~* &* +@all in the server's "
					"ACL, even if it is off");
	if (llabs(at->ahead) > CLOCKS_APART)
		warning_add(&at->warnings, WARNING_CLOCK,
			    "its clock and ours are ",
			    duration_format(text, llabs(at->ahead)),
			    " apart: fences may decrease if data is lost: "
			    "set both clocks by NTP");
}
