#include "show/sentinel.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "show/server_facts.h"
#include "base/duration.h"
#include "base/alloc.h"
#include "server/quorum.h"

/* ms from a master that is taken for dead to another that redlock knows of: their
 * votes, the change, and a look at them each second */
#define FAILOVER_TIME 3000

static void hear(void *context, size_t i, const struct reply *reply)
{
	int64_t *longest = context;
	struct value value;
	size_t digits;

	(void)i;
	if (reply == NULL || reply->failure != NULL)
		return;
	value = reply_pair(reply, "down-after-milliseconds");
	digits = value.text != NULL ? strspn(value.text, "0123456789") : 0;
	if (digits == 0 || digits > 15 || value.text[digits] != '\0')
		return;
	if (strtoll(value.text, NULL, 10) > *longest)
		*longest = strtoll(value.text, NULL, 10);
}

static bool never(void *context)
{
	(void)context;
	return false;
}

static void ask(struct quorum *quorum, const char *master)
{
	const struct argument words[] = {
		{"SENTINEL", 8}, {"MASTER", 6}, {master, strlen(master)}};

	quorum_round(quorum);
	for (size_t i = 0; i < quorum->count; i++) {
		quorum->servers[i].guest = true;
		quorum->servers[i].identify = false;
		quorum_ask(quorum, i, false, words, 3);
	}
}

int64_t sentinel_down_after(const struct url *url, int64_t timeout)
{
	struct url *urls = heap_get(url->seed_count, sizeof(*urls));
	int64_t longest = -1;
	struct judge judge = {&longest, hear, never};
	struct quorum quorum;

	for (size_t i = 0; i < url->seed_count; i++) {
		urls[i] = url_copy(&url->seeds[i]);
		urls[i].user = heap_copy(url->user);
		urls[i].password = heap_copy(url->password);
	}
	quorum_init(&quorum, urls, url->seed_count, timeout, false);
	ask(&quorum, url->master);
	quorum_gather(&quorum, deadline_in(timeout), &judge);
	quorum_release(&quorum);
	free(urls);
	return longest;
}

void sentinel_advise(struct buffer *warnings, int64_t down_after, int64_t ttl)
{
	int64_t most = ttl / 2 - FAILOVER_TIME;
	int64_t enough = 2 * (down_after + FAILOVER_TIME);
	char waits[DURATION_TEXT], lease[DURATION_TEXT];
	char text[256], remedy[128], lower[96] = "";

	if (down_after < 0 || down_after <= most)
		return;
	if (most > 0)
		snprintf(lower, sizeof(lower),
			 "set down-after-milliseconds to %" PRId64
			 " at most, or ",
			 most);
	snprintf(text, sizeof(text),
		 "its Sentinels wait %s for a silent master, too long for a "
		 "run with a ttl of %s: ",
		 duration_format(waits, down_after),
		 duration_format(lease, ttl));
	snprintf(remedy, sizeof(remedy), "%suse -t %" PRId64 "s", lower,
		 (enough + 999) / 1000);
	checkup_warn(warnings, WARNING_SENTINEL, text, remedy, "");
}
