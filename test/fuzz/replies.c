/*
 * What servers send, in answer to every request that there is, in a world of
 * its own (world.h): whatever they say, the call ends in its time, nothing is
 * held that a quorum has not granted, and what is shown is fit for a terminal.
 * Built with -fsanitize=fuzzer.
 *
 * The servers may be one that Sentinels or a cluster's nodes are asked for.
 *
 * The input's first byte is what is done, the second what kind of lock and how
 * many servers, the third how the world is; the rest is what servers say.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/json.h"
#include "show/doctor.h"
#include "show/inspect.h"
#include "show/scan.h"
#include "base/log.h"
#include "wait/waiter.h"
#include "world.h"

#define TIMEOUT 200 /* ms */
#define TTL 3000
#define WAIT 8000

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	log_init(LOG_QUIET);
	return 0;
}

/* A text as it would be shown: lines that a terminal shows as they are. */
static void check_shown(struct buffer *text)
{
	struct buffer shown = {0};

	for (size_t at = 0; at < text->length; at++) {
		size_t length = strcspn(text->data + at, "\n");

		output_visible(&shown, text->data + at, length, 1);
		if (shown.length != length)
			abort();
		shown.length = 0;
		at += length;
	}
	buffer_release(&shown);
	buffer_release(text);
}

static void check_age(int64_t began, int64_t most)
{
	if (world_age() - began > most)
		abort();
}

/* --- a lock's life -------------------------------------------------------- */

static void check_lock(const struct lock *lock)
{
	if (world_granted() < quorum_size(lock->quorum))
		abort();
	if (lock->kind == KIND_NONE)
		return;
	if (lock->fence <= 0 || lock->fence > FENCE_LARGEST ||
	    deadline_passed(lock->valid) || deadline_left(lock->valid) > TTL)
		abort();
}

static void renew(struct lock *lock)
{
	struct error error;
	int64_t began = world_age();

	lock_idle(lock, lock->renew);
	if (lock_extend(lock, deadline_in(TIMEOUT), &error) == LOCK_OK &&
	    deadline_left(lock->valid) > TTL)
		abort();
	lock_idle(lock, deadline_in(50));
	check_age(began, TTL + 2 * TIMEOUT);
}

/* As somebody who has the token: the holder's validity is its own. */
static void extend_beside(struct lock *lock)
{
	struct deadline valid = lock->valid;
	struct error error;
	struct lock beside;

	lock_init(&beside, lock->quorum, "key", TTL / 10, 0);
	lock_adopt(&beside, lock->token);
	beside.as_taken = true;
	if (lock_extend(&beside, deadline_in(TIMEOUT), &error) == LOCK_OK &&
	    (beside.left < 0 || beside.left == INT64_MAX))
		abort();
	if (lock->valid.at != valid.at)
		abort();
	lock_release_memory(&beside);
}

static void release(struct lock *lock, int64_t linger)
{
	struct error error;
	int64_t began = world_age();

	lock_release(lock, linger, deadline_in(TIMEOUT), &error);
	check_age(began, 2 * TIMEOUT);
}

static void live(struct lock *lock, struct patience patience, bool beside)
{
	struct buffer text = {0}, shown = {0};
	struct error error;
	struct busy busy;
	enum lock_result result;

	result = waiter_acquire(lock, &patience, &busy, &error);
	check_age(0, (patience.wait ? WAIT : 0) + 12 * TIMEOUT);
	if (result == LOCK_BUSY)
		record_print_busy(&text, &busy);
	if (result == LOCK_ERROR)
		buffer_print(&text, "%s", error.text);
	output_visible(&shown, text.data, text.length, 1);
	buffer_release(&text);
	check_shown(&shown);
	if (result != LOCK_OK)
		return;
	check_lock(lock);
	if (lock->kind == KIND_NONE)
		return;
	renew(lock);
	if (beside)
		extend_beside(lock);
	renew(lock);
	release(lock, lock->room);
}

/* --- looking -------------------------------------------------------------- */

static void inspect(struct quorum *quorum, unsigned how)
{
	struct error error;
	struct view view;
	struct buffer text = {0};

	view_init(&view, quorum, "key");
	if (how == 0)
		lock_break(&view, "", false, &error);
	else if (how == 1)
		lock_is_held(&view, NULL, &error);
	else if (how == 2)
		lock_is_held(&view, "0123456789abcdef", &error);
	else
		lock_inspect(&view, &error);
	if (view.holders.count > SHOWN_MOST || view.waiters.count > SHOWN_MOST)
		abort();
	for (size_t n = 0; n < view.holders.count; n++)
		if (seen_count(&view.holders.seen[n]) == 0 ||
		    seen_count(&view.holders.seen[n]) > quorum->count)
			abort();
	json_view(&text, &view, "held");
	check_shown(&text);
	view_release(&view);
}

/* Only what a quorum said is told. */
static bool on_found(void *context, const struct listed *listed)
{
	struct buffer text = {0};

	if (listed->holders < 1 || listed->key.length == 0 ||
	    world_granted() < quorum_size(context))
		abort();
	json_listed(&text, listed);
	check_shown(&text);
	return true;
}

static void list(struct quorum *quorum, const char *pattern)
{
	struct lister lister = {quorum, on_found, NULL};
	struct error error;

	lock_list(quorum, pattern, &lister, &error);
}

/* What it advises is fit to be shown, too. */
static void examine(struct quorum *quorum)
{
	struct doctor *doctor = calloc(1, sizeof(*doctor));
	struct settings *settings = calloc(1, sizeof(*settings));
	struct buffer text = {0};
	struct error error;

	doctor_init(doctor, quorum, "key", 0, TTL);
	if (doctor_examine(doctor, &error) < 0 && error.text[0] == '\0')
		abort();
	if (doctor->well && world_granted() < quorum_size(quorum))
		abort();
	check_age(0, 17 * TIMEOUT);
	json_doctor(&text, doctor, settings);
	check_shown(&text);
	doctor_release(doctor);
	free(doctor);
	free(settings);
}

/* --- one run -------------------------------------------------------------- */

static void exercise(struct lock *lock, uint8_t what)
{
	switch (what % 14) {
	case 0:
	case 13:
		live(lock, (struct patience){0}, what % 14 == 13);
		break;
	case 1:
		live(lock, (struct patience){.wait = true, .limit = WAIT},
		     false);
		break;
	case 2:
		live(lock,
		     (struct patience){
			     .wait = true, .limit = WAIT, .poll = true},
		     false);
		break;
	case 3:
		lock_adopt(lock, "token");
		renew(lock);
		break;
	case 4:
		lock_adopt(lock, "token");
		release(lock, 0);
		break;
	case 5:
	case 6:
	case 7:
	case 8:
		inspect(lock->quorum, what % 14U - 5);
		break;
	case 9:
		list(lock->quorum, NULL);
		break;
	case 10:
		list(lock->quorum, "k?y*");
		break;
	case 12:
		examine(lock->quorum);
		break;
	default:
		live(lock,
		     (struct patience){.wait = true,
				       .limit = WAIT,
				       .tries = 3,
				       .every = 100},
		     false);
	}
}

/* One server, that others are asked for. */
static void make_search(struct quorum *quorum, bool cluster, size_t seeds,
			bool identify)
{
	static const char *const hosts[] = {"h:1", "h:1,h:2", "h:1,h:2,h:3"};
	struct error error;
	struct url url;
	char text[80];

	snprintf(text, sizeof(text), "redis+%s://%s%s%s",
		 cluster ? "cluster" : "sentinel",
		 identify ? "user:secret@" : "", hosts[seeds % 3],
		 cluster ? "" : "/m/1");
	if (url_parse(&url, text, &error) < 0)
		abort();
	quorum_init(quorum, &url, 1, TIMEOUT, identify);
}

static void make_quorum(struct quorum *quorum, size_t count, bool identify)
{
	struct url urls[WORLD_SERVERS] = {0};

	for (size_t i = 0; i < count; i++) {
		char path[] = "/0", name[] = "unix:///0";

		path[1] = (char)('0' + i);
		name[8] = (char)('0' + i);
		urls[i].kind = URL_UNIX;
		urls[i].path = strdup(path);
		urls[i].name = strdup(name);
		if (identify)
			urls[i].password = strdup("secret");
	}
	quorum_init(quorum, urls, count, TIMEOUT, identify);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t counts[] = {1, 3, 2, 5};
	struct world_rules rules = {0};
	struct quorum quorum;
	struct lock lock;

	if (size < 3 || size > 20000)
		return -1;
	rules.greets = !(data[2] & 1);
	rules.drips = data[2] & 2;
	rules.hints = data[2] & 32;
	rules.down = data[2] & 4 ? data[2] >> 5 : 0;
	rules.interrupts = data[2] & 8 ? 150 : 0;
	world_begin(rules, data + 3, size - 3);
	if (data[1] & 8)
		make_search(&quorum, data[2] & 16, data[1] >> 4 & 3,
			    data[2] & 1);
	else
		make_quorum(&quorum, counts[data[1] >> 4 & 3], data[2] & 1);
	quorum.interrupt = rules.interrupts > 0 ? WORLD_INTERRUPT : -1;
	lock_init(&lock, &quorum, "key", TTL, data[1] & 64 ? 1000 : 0);
	lock.kind = data[1] % 8 % (KIND_NONE + 1);
	lock.permits = lock.kind == KIND_PERMITS ? 2 : 0;
	quorum.permits = lock.permits > 0 ? lock.permits : 1;
	lock.room = data[1] & 128 ? 500 : 0;
	record_describe(&lock.description, 1, "fuzz", TTL, true);
	exercise(&lock, data[0]);
	lock_release_memory(&lock);
	quorum_release(&quorum);
	world_end();
	return 0;
}
