/*
 * What servers send, in answer to every request that there is, in a world of
 * its own (world.h): whatever they say, the call ends in its time, nothing is
 * held that a quorum has not granted, and what is shown is fit for a terminal.
 * Built with -fsanitize=fuzzer.
 *
 * The servers may be one that Sentinels or a cluster's nodes are asked for. Of several
 * keys at once each has connections of its own; what is done to them at once is done
 * to one after the other.
 *
 * The input's first byte is what is done, the second what kind of lock and how
 * many servers, the third how the world is; the rest is what servers say.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/json.h"
#include "cmd/several.h"
#include "cmd/text.h"
#include "show/doctor.h"
#include "show/inspect.h"
#include "show/scan.h"
#include "show/stopping.h"
#include "base/output.h"
#include "base/threads.h"
#include "base/log.h"
#include "wait/waiter.h"
#include "world.h"

#define TIMEOUT 200 /* ms */
#define TTL 3000
#define WAIT 8000

static int interrupt; /* a descriptor, or -1 */

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
	if (world_granted() < quorum_size(lock->ballot.quorum))
		abort();
	if (lock->wish.kind == KIND_NONE)
		return;
	if (lock->grant.fence <= 0 || lock->grant.fence > FENCE_LARGEST ||
	    deadline_passed(lock->grant.valid) ||
	    deadline_left(lock->grant.valid) > TTL)
		abort();
}

static void renew(struct lock *lock)
{
	struct error error;
	int64_t began = world_age();

	lock_idle(lock, (struct wait){lock->grant.renew, interrupt});
	if (lock_extend(lock, (struct wait){deadline_in(TIMEOUT), interrupt},
			&error) == LOCK_OK &&
	    deadline_left(lock->grant.valid) > TTL)
		abort();
	lock_idle(lock, (struct wait){deadline_in(50), interrupt});
	check_age(began, TTL + 2 * TIMEOUT);
}

/* As somebody who has the token: the holder's validity is its own. */
static void extend_beside(struct lock *lock)
{
	struct deadline valid = lock->grant.valid;
	struct error error;
	struct lock beside;

	lock_init(&beside, lock->ballot.quorum, "key", TTL / 10, 0);
	lock_adopt(&beside, lock->grant.token);
	beside.wish.as_taken = true;
	if (lock_extend(&beside, wait_until(deadline_in(TIMEOUT)), &error) ==
		    LOCK_OK &&
	    (beside.grant.left < 0 || beside.grant.left == INT64_MAX))
		abort();
	if (lock->grant.valid.at != valid.at)
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

static void check_said(enum lock_result result, const struct busy *busy,
		       const struct error *error)
{
	struct buffer text = {0}, shown = {0};

	if (result == LOCK_BUSY)
		record_print_busy(&text, busy);
	if (result == LOCK_ERROR)
		buffer_print(&text, "%s", error->text);
	output_visible(&shown, text.data, text.length, 1);
	buffer_release(&text);
	check_shown(&shown);
}

static void live(struct lock *lock, struct patience patience, bool beside)
{
	struct error error;
	struct busy busy;
	struct waiter waiter;
	enum lock_result result;

	patience.interrupt = interrupt;
	waiter_init(&waiter, &patience);
	result = waiter_acquire(&waiter, lock, &busy, &error);
	check_age(0, (patience.wait ? WAIT : 0) + 12 * TIMEOUT);
	check_said(result, &busy, &error);
	if (result != LOCK_OK)
		return;
	check_lock(lock);
	if (lock->wish.kind == KIND_NONE)
		return;
	renew(lock);
	if (beside)
		extend_beside(lock);
	renew(lock);
	release(lock, lock->wish.validity_needed);
}

/* --- looking -------------------------------------------------------------- */

static void ask_to_stop(struct holders *holders)
{
	struct stopping stopping;
	struct error error;
	int rounds = 4; /* a lease is as long as its server says */

	if (inspect_lock(holders, &error) < 0)
		return;
	stopping_init(&stopping, holders, "why");
	while (rounds-- > 0 &&
	       stopping_round(&stopping, &error) == STOPPING_WAITS)
		if (stopping_pause(&stopping) <= 0)
			abort();
	for (size_t n = 0; n < stopping.count; n++)
		if (stopping.asked[n].after < 0)
			abort();
	check_age(0, 10 * TIMEOUT);
	stopping_release(&stopping);
}

static void read_history(struct quorum *quorum)
{
	struct history history;
	struct error error;
	struct buffer text = {0};

	history_init(&history, quorum, "key");
	(void)history_read(&history, &error);
	if (history.count > HISTORY_SHOWN || history.count > history.known)
		abort();
	check_age(0, 4 * TIMEOUT);
	json_history(&text, &history);
	check_shown(&text);
	text_history(&text, &history);
	check_shown(&text);
	history_release(&history);
}

static void inspect(struct quorum *quorum, unsigned how, bool ask)
{
	struct error error;
	struct holders holders;
	struct buffer text = {0};

	holders_init(&holders, quorum, "key");
	if (how == 0 && ask)
		ask_to_stop(&holders);
	else if (how == 0)
		inspect_break(&holders, false, "why", &error);
	else if (how == 1)
		inspect_is_held(&holders, NULL, &error);
	else if (how == 2)
		inspect_is_held(&holders, "0123456789abcdef", &error);
	else
		inspect_lock(&holders, &error);
	if (holders.holding.count > SHOWN_MOST ||
	    holders.waiting.count > SHOWN_MOST)
		abort();
	for (size_t n = 0; n < holders.holding.count; n++)
		if (seen_count(&holders.holding.seen[n]) == 0 ||
		    seen_count(&holders.holding.seen[n]) > quorum->count)
			abort();
	json_holders(&text, &holders, "held", NULL);
	check_shown(&text);
	holders_release(&holders);
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
	struct lister lister = {.context = quorum, .found = on_found};
	struct error error;

	scan_locks(quorum, pattern, &lister, &error);
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
	check_age(0, 18 * TIMEOUT);
	json_doctor(&text, doctor, settings);
	check_shown(&text);
	doctor_release(doctor);
	free(doctor);
	free(settings);
}

/* --- one run -------------------------------------------------------------- */

static void exercise(struct lock *lock, uint8_t what)
{
	switch (what % 16) {
	case 0:
	case 13:
		live(lock, (struct patience){0}, what % 16 == 13);
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
		inspect(lock->ballot.quorum, what % 16U - 5, what & 16);
		break;
	case 9:
		list(lock->ballot.quorum, NULL);
		break;
	case 10:
		list(lock->ballot.quorum, "k?y*");
		break;
	case 11:
		read_history(lock->ballot.quorum);
		break;
	case 12:
		examine(lock->ballot.quorum);
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
		urls[i].at.path = strdup(path);
		urls[i].name = strdup(name);
		if (identify)
			urls[i].password = strdup("secret");
	}
	quorum_init(quorum, urls, count, TIMEOUT, identify);
}

static void make_session(struct session *session, struct settings *settings,
			 size_t i, const uint8_t *data)
{
	static const uint8_t counts[] = {1, 3, 2, 5};
	struct quorum *quorum = &session->quorum;
	struct lock *lock = &session->lock;

	session->settings = settings;
	if (data[1] & 8)
		make_search(quorum, data[2] & 16, data[1] >> 4 & 3,
			    data[2] & 1);
	else
		make_quorum(quorum, counts[data[1] >> 4 & 3], data[2] & 1);
	if (data[2] & 64)
		quorum_want_replicas(quorum, 1);
	lock_init(lock, quorum, settings_key(settings, i), TTL,
		  data[1] & 64 ? 1000 : 0);
	lock->wish.kind = data[1] % 8 % (KIND_NONE + 1);
	lock->wish.permits = lock->wish.kind == KIND_PERMITS ? 2 : 0;
	lock->wish.validity_needed = data[1] & 128 ? 500 : 0;
	record_describe(&lock->wish.description, 1, "fuzz", TTL, true,
			BREAK_STOPS);
}

static void close_session(struct session *session)
{
	lock_release_memory(&session->lock);
	quorum_release(&session->quorum);
}

/* All or none; KEY is the first of the two, or the second. */
static void live_several(struct session *session, bool wait)
{
	struct patience patience = {
		.wait = wait, .limit = WAIT, .interrupt = interrupt};
	struct lock *about = NULL;
	struct waiter waiter;
	struct error error;
	struct busy busy;
	enum lock_result result;

	waiter_init(&waiter, &patience);
	result = several_take(session, &waiter, &about, &busy, &error);
	check_age(0, (wait ? WAIT : 0) + 60 * TIMEOUT);
	check_said(result, &busy, &error);
	if ((result == LOCK_OK) != (about == NULL))
		abort();
	for (size_t i = 0; i < session->count && result == LOCK_OK; i++)
		check_lock(&session_at(session, i)->lock);
	if (result == LOCK_OK)
		threads_each(session->count, cmd_release_one, session);
}

static void exercise_several(const uint8_t *data)
{
	struct settings *settings = calloc(1, sizeof(*settings));
	struct session *session = calloc(1, sizeof(*session));

	settings->key = "key";
	settings->also[settings->also_count++] = data[0] & 16 ? "a" : "z";
	session->count = settings_key_count(settings);
	session->others = calloc(1, sizeof(*session->others));
	for (size_t i = 0; i < session->count; i++)
		make_session(session_at(session, i), settings, i, data);
	live_several(session, data[0] & 1);
	for (size_t i = 0; i < session->count; i++)
		close_session(session_at(session, i));
	free(session->others);
	free(session);
	free(settings);
}

static void exercise_one(const uint8_t *data)
{
	struct settings *settings = calloc(1, sizeof(*settings));
	struct session *session = calloc(1, sizeof(*session));

	settings->key = "key";
	make_session(session, settings, 0, data);
	exercise(&session->lock, data[0]);
	close_session(session);
	free(session);
	free(settings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world_rules rules = {0};

	if (size < 3 || size > 20000)
		return -1;
	rules.greets = !(data[2] & 1);
	rules.drips = data[2] & 2;
	rules.hints = data[2] & 32;
	rules.down = data[2] & 4 ? data[2] >> 5 : 0;
	rules.interrupts = data[2] & 8 ? 150 : 0;
	interrupt = rules.interrupts > 0 ? WORLD_INTERRUPT : -1;
	world_begin(rules, data + 3, size - 3);
	if (data[0] % 16 >= 14)
		exercise_several(data);
	else
		exercise_one(data);
	world_end();
	return 0;
}
