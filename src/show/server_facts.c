#include "show/server_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "server/identity.h"

#define OLDEST_VERSION '5' /* whose scripts may write what they know by TIME */
#define CLOCKS_APART 1000  /* ms; less is what NTP is content with */

static const char warning_names[WARNINGS][13] = {
	[WARNING_RIGHTS] = "rights",
	[WARNING_SUBSCRIPTION] = "subscription",
	[WARNING_EVICTION] = "eviction",
	[WARNING_RESTART] = "restart",
	[WARNING_CLOCK] = "clock",
	[WARNING_SENTINEL] = "sentinel",
	[WARNING_EVEN] = "even",
	[WARNING_PERMITS] = "permits",
};

void checkup_init(struct checkup *at)
{
	*at = (struct checkup){
		.appends = -1,
		.saves = -1,
		.uptime = -1,
		.trip = -1,
	};
}

void checkup_release(struct checkup *at)
{
	buffer_release(&at->warnings);
}

/* Each stands behind its number, counted from 1, and ends with a NUL. */
void checkup_warn(struct buffer *warnings, enum warning warning,
		  const char *text, const char *more, const char *remedy)
{
	buffer_print(warnings, "%c%s%s%s", (int)warning + 1, text, more,
		     remedy);
	buffer_append(warnings, "", 1);
}

const char *checkup_next(const struct buffer *warnings, size_t *at,
			 uint32_t accepted, const char **name)
{
	while (*at < warnings->length) {
		const char *text = warnings->data + *at;
		unsigned warning = (unsigned)text[0] - 1;

		*at += strlen(text) + 1;
		*name = warning_names[warning];
		if (!(accepted >> warning & 1))
			return text + 1;
	}
	return NULL;
}

int checkup_read_names(const char *names, uint32_t *accepted)
{
	*accepted = 0;
	for (;;) {
		size_t length = strcspn(names, ","), n = 0;

		while (n < WARNINGS &&
		       (strlen(warning_names[n]) != length ||
			memcmp(warning_names[n], names, length) != 0))
			n++;
		if (n == WARNINGS)
			return -1;
		*accepted |= UINT32_C(1) << n;
		names += length;
		if (*names++ == '\0')
			return 0;
		names += strspn(names, " ");
	}
}

/* --- what it says --------------------------------------------------------- */

static void read_text(char to[FACT_SIZE], const char *info, const char *name)
{
	size_t length;
	const char *text = identity_find(info, name, &length);

	if (text != NULL && length < FACT_SIZE)
		memcpy(to, text, length);
}

/* Of up to 15 digits, else -1. */
static int64_t to_number(const char *text)
{
	size_t digits = text != NULL ? strspn(text, "0123456789") : 0;

	return digits > 0 && digits <= 15 ? strtoll(text, NULL, 10) : -1;
}

static int64_t read_number(const char *info, const char *name)
{
	size_t length;

	return to_number(identity_find(info, name, &length));
}

const char *checkup_read_info(struct checkup *at, const char *info,
			      bool clustered)
{
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
	if (at->version[0] < OLDEST_VERSION && at->version[1] == '.')
		return "too old: locks need Redis 5 or later";
	if (strstr(info, "\nrole:slave") != NULL)
		return "a replica: name its master";
	if (!clustered && strstr(info, "\ncluster_enabled:1") != NULL)
		return "a node of a cluster: name it redis+cluster://host:port";
	return NULL;
}

void checkup_read_config(struct checkup *at, const struct reply *reply)
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

void checkup_read_time(struct checkup *at, const struct reply *reply,
		       int64_t asked, int64_t trip)
{
	int64_t seconds = to_number(reply->value[0].text);
	int64_t more = to_number(reply->value[1].text);

	if (seconds < 0 || more < 0 || (at->trip >= 0 && at->trip <= trip))
		return;
	at->trip = trip;
	/* it said so somewhen on the way, which is no difference of clocks */
	at->ahead = seconds * 1000 + more / 1000 - asked - trip / 2;
	if (llabs(at->ahead) <= trip / 2 + 1)
		at->ahead = 0;
}

/* --- what it means -------------------------------------------------------- */

void checkup_advise(struct checkup *at, int64_t quarantine)
{
	char text[DURATION_TEXT];

	if (at->policy[0] != '\0' && strcmp(at->policy, "noeviction") != 0)
		checkup_warn(&at->warnings, WARNING_EVICTION,
			     "it may evict locks: maxmemory-policy is ",
			     at->policy, ": set it to noeviction");
	if (at->appends < 1 && quarantine == 0)
		checkup_warn(&at->warnings, WARNING_RESTART, "a restart ",
			     at->appends < 0 ? "may forget its locks"
			     : at->saves > 0 ? "forgets its latest locks"
					     : "forgets its locks",
			     ", and grants them anew: set appendonly yes, or "
			     "use --quarantine");
	if (llabs(at->ahead) > CLOCKS_APART)
		checkup_warn(&at->warnings, WARNING_CLOCK,
			     "its clock and ours are ",
			     duration_format(text, llabs(at->ahead)),
			     " apart: fences may fall where data is lost: set "
			     "both by NTP");
}
