#include "show/history.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "lock/alias.h"
#include "lock/explain.h"
#include "lock/script.h"

#define TOLD_MOST 40       /* entries of one server that are read */
#define AHEAD_MOST 3600000 /* ms; as in runs.lua */
#define ALMOST 1000        /* ms that servers may differ in when a run began */

struct told {
	struct past_run run;
	size_t server;
	bool merged;
};

void history_init(struct history *history, struct quorum *quorum,
		  const char *key)
{
	*history = (struct history){0};
	names_init(&history->names, key);
	ballot_init(&history->ballot, quorum, 0, 0);
}

void history_release(struct history *history)
{
	names_release(&history->names);
	free(history->run);
	free(history->told);
	*history = (struct history){0};
}

/* --- what the servers tell -------------------------------------------------- */

void history_add(struct history *history, size_t server,
		 const struct past_run *run)
{
	if (run->token[0] == '\0')
		return;
	if (history->told_count == history->told_capacity) {
		history->told_capacity = history->told_capacity > 0
						 ? 2 * history->told_capacity
						 : 8;
		history->told =
			xrealloc(history->told,
				 history->told_capacity * sizeof(struct told));
	}
	history->told[history->told_count++] =
		(struct told){.run = *run, .server = server};
}

void history_hear(void *context, size_t i, const struct reply *reply)
{
	struct history *history = context;
	int64_t answer = 0;
	size_t count;

	if (!alias_read(&history->ballot, i, reply, 1, &answer))
		return;
	count = reply_item_count(reply, 2);
	if (reply->count < 3 || reply->value[1].text != NULL) {
		ballot_reject(&history->ballot, i);
		return;
	}
	history->ballot.vote[i] = VOTE_YES;
	for (size_t n = 0; n < count && n < TOLD_MOST; n++) {
		struct value item = reply_item(reply, 2, n);
		struct past_run run;

		if (item.text != NULL && run_read(&run, item.text, item.length,
						  reply->value[1].number) == 0)
			history_add(history, i, &run);
	}
}

/* --- the runs of all of them ------------------------------------------------ */

static bool is_same_run(const struct past_run *a, const struct past_run *b)
{
	return strcmp(a->token, b->token) == 0 && a->fence == b->fence;
}

static bool is_same_end(const struct past_run *a, const struct past_run *b)
{
	return a->end == b->end && a->number == b->number &&
	       strcmp(a->by, b->by) == 0;
}

/* How many servers report this run; same_end: and this end. */
static size_t count_servers(const struct history *history,
			    const struct past_run *run, bool same_end)
{
	uint32_t servers = 0;

	for (size_t n = 0; n < history->told_count; n++) {
		const struct told *told = &history->told[n];

		if (is_same_run(&told->run, run) &&
		    (!same_end || is_same_end(&told->run, run)))
			servers |= UINT32_C(1) << told->server;
	}
	return (size_t)__builtin_popcount(servers);
}

/* Whether this end of a run is to be taken rather than the other one. */
static bool is_better(const struct history *history, const struct past_run *run,
		      const struct past_run *than)
{
	if ((run->end == RUN_UNKNOWN) != (than->end == RUN_UNKNOWN))
		return than->end == RUN_UNKNOWN;
	return count_servers(history, run, true) >
	       count_servers(history, than, true);
}

static bool tells_same(const struct told *told, const struct past_run *run)
{
	return is_same_run(&told->run, run) && is_same_end(&told->run, run);
}

/* Of those that tell this of the run, the one in the middle by its age, and of two the
 * older: a server that was late with the acquire knows of a later beginning. */
static const struct past_run *find_middle(const struct history *history,
					  const struct past_run *run)
{
	const struct told *told = history->told;

	for (size_t n = 0; n < history->told_count; n++) {
		size_t count = 0, older = 0, as_old = 0;

		if (!tells_same(&told[n], run))
			continue;
		for (size_t k = 0; k < history->told_count; k++) {
			if (!tells_same(&told[k], run))
				continue;
			count++;
			older += told[k].run.age > told[n].run.age;
			as_old += told[k].run.age == told[n].run.age;
		}
		if (older <= (count - 1) / 2 &&
		    (count - 1) / 2 < older + as_old)
			return &told[n].run;
	}
	return run;
}

/* The n-th, as most servers report it. Nobody reports it again. */
static struct past_run merge(struct history *history, size_t n)
{
	const struct past_run *best = &history->told[n].run, *middle;

	for (size_t k = n; k < history->told_count; k++) {
		struct told *told = &history->told[k];

		if (!is_same_run(&told->run, &history->told[n].run))
			continue;
		told->merged = true;
		if (is_better(history, &told->run, best))
			best = &told->run;
	}
	middle = find_middle(history, best);
	/* else it would change by some ms with the servers that answer */
	return llabs(middle->age - best->age) < ALMOST ? *best : *middle;
}

static bool is_attempt(const struct history *history,
		       const struct past_run *run)
{
	return run->end == RUN_UNKNOWN &&
	       2 * count_servers(history, run, false) <=
		       ballot_count(&history->ballot, VOTE_YES);
}

/* A wrong clock noted it. */
static bool is_ahead(const struct past_run *run)
{
	return run->age < -AHEAD_MOST;
}

static int by_age(const void *a, const void *b)
{
	const struct past_run *one = a, *other = b;

	if (is_ahead(one) != is_ahead(other))
		return is_ahead(one) ? 1 : -1;
	if (one->age != other->age)
		return one->age < other->age ? -1 : 1;
	return (one->fence < other->fence) - (one->fence > other->fence);
}

void history_merge(struct history *history)
{
	history->run =
		xcalloc(history->told_count + 1, sizeof(struct past_run));
	for (size_t n = 0; n < history->told_count; n++) {
		struct past_run run;

		if (history->told[n].merged)
			continue;
		run = merge(history, n);
		if (!is_attempt(history, &run))
			history->run[history->known++] = run;
	}
	qsort(history->run, history->known, sizeof(struct past_run), by_age);
	history->count =
		history->known < HISTORY_SHOWN ? history->known : HISTORY_SHOWN;
}

static bool is_enough(void *context)
{
	const struct history *history = context;

	return history->hasty && ballot_has_quorum(&history->ballot);
}

int history_read(struct history *history, struct error *error)
{
	struct ballot *ballot = &history->ballot;
	struct reply_handler handler = {history, history_hear, is_enough};
	struct deadline until = deadline_in(ballot->quorum->timeout);

	ballot_open(ballot, NULL);
	for (size_t i = 0; i < ballot->quorum->count; i++) {
		/* one that was silent before is not waited for again */
		if (server_is_silent(&ballot->quorum->servers[i]))
			ballot->vote[i] = VOTE_FAILED;
		else
			script_history(ballot->quorum, i, &history->names);
	}
	quorum_gather(ballot->quorum, wait_until(until), &handler);
	history_merge(history);
	if (ballot_has_quorum(ballot) && !ballot->alias)
		return 0;
	explain_failure(ballot, error);
	return -1;
}

/* --- what follows from them ------------------------------------------------- */

/* The one that ended last. Those who share KEY need not end in the order in which they
 * began, which is theirs here. */
static const struct past_run *find_last(const struct history *history,
					bool succeeded)
{
	const struct past_run *last = NULL;

	for (size_t n = 0; n < history->known; n++) {
		const struct past_run *run = &history->run[n];

		if ((!succeeded || run_succeeded(run)) &&
		    (last == NULL ||
		     (!is_ahead(run) &&
		      run->age - run->held < last->age - last->held)))
			last = run;
	}
	return last;
}

const struct past_run *history_last(const struct history *history)
{
	return find_last(history, false);
}

const struct past_run *history_success(const struct history *history)
{
	return find_last(history, true);
}

static int by_size(const void *a, const void *b)
{
	int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;

	return one < other ? -1 : one > other;
}

int64_t history_usual(const struct history *history)
{
	int64_t held[HISTORY_SHOWN] = {0};
	size_t count = 0;

	for (size_t n = 0; n < history->count; n++)
		if (history->run[n].end != RUN_UNKNOWN)
			held[count++] = history->run[n].held;
	qsort(held, count, sizeof(*held), by_size);
	return count > 0 ? held[(count - 1) / 2] : -1;
}

int64_t history_longest(const struct history *history)
{
	int64_t longest = -1;

	for (size_t n = 0; n < history->count; n++)
		if (history->run[n].end != RUN_UNKNOWN &&
		    history->run[n].held > longest)
			longest = history->run[n].held;
	return longest;
}
