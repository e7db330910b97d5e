#include "show/sentinel.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "show/server_facts.h"
#include "base/duration.h"
#include "base/lease.h"
#include "base/number.h"
#include "server/quorum.h"

/* ms from the moment when a master is taken for dead until redlock knows another:
 * the Sentinels' votes, the change, and a question each second */
#define FAILOVER_TIME 3000

struct heard {
	int64_t longest;
	bool from[SEEDS_MAX];
};

static void hear(void *context, size_t i, const struct reply *reply)
{
	struct heard *heard = context;
	struct value value;
	int64_t time;

	if (reply == NULL || reply->failure != NULL)
		return;
	heard->from[i] = true;
	value = reply_pair(reply, "down-after-milliseconds");
	if (value.text != NULL &&
	    number_parse(value.text, 0, DURATION_MAX, &time) == 0 &&
	    time > heard->longest)
		heard->longest = time;
}

static void ask(struct quorum *quorum, const char *master)
{
	const struct argument words[] = {
		{"SENTINEL", 8}, {"MASTER", 6}, {master, strlen(master)}};

	quorum_round(quorum);
	for (size_t i = 0; i < quorum->count; i++) {
		quorum->servers[i].conn.login_optional = true;
		quorum_ask(quorum, i, ASK_PLAINLY, words, 3);
	}
}

static void note_failures(struct sentinels *sentinels,
			  const struct quorum *quorum,
			  const struct heard *heard)
{
	sentinels->count = quorum->count;
	for (size_t i = 0; i < quorum->count; i++) {
		const struct server *server = &quorum->servers[i];

		if (heard->from[i])
			continue;
		buffer_print(&sentinels->why, "%s%s: %s",
			     sentinels->failed++ > 0 ? ", " : "",
			     server->url.name, server->conn.refusal.text);
	}
}

void sentinels_ask(struct sentinels *sentinels, const struct url *url,
		   int64_t timeout)
{
	struct heard heard = {.longest = -1};
	struct reply_handler handler = {&heard, hear, NULL};
	struct quorum quorum;

	*sentinels = (struct sentinels){0};
	quorum_init_seeds(&quorum, url, timeout);
	ask(&quorum, url->master);
	quorum_gather(&quorum, wait_until(deadline_in(timeout)), &handler);
	sentinels->down_after = heard.longest;
	note_failures(sentinels, &quorum, &heard);
	quorum_release(&quorum);
}

void sentinels_release(struct sentinels *sentinels)
{
	buffer_release(&sentinels->why);
}

static void advise_time(struct buffer *warnings, int64_t down_after,
			int64_t ttl)
{
	int64_t most = lease_outage(ttl) - FAILOVER_TIME;
	int64_t enough = lease_for_outage(down_after + FAILOVER_TIME);
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
	warning_add(warnings, WARNING_SENTINEL, text, remedy, "");
}

void sentinels_advise(struct buffer *warnings,
		      const struct sentinels *sentinels, int64_t ttl)
{
	char text[64];

	advise_time(warnings, sentinels->down_after, ttl);
	if (sentinels->failed == 0)
		return;
	snprintf(text, sizeof(text),
		 "%zu of %zu Sentinels did not answer: ", sentinels->failed,
		 sentinels->count);
	warning_add(warnings, WARNING_SENTINEL, text, sentinels->why.data, "");
}
