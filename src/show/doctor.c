#include "show/doctor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lock/alias.h"
#include "lock/attempt.h"
#include "server/refusal.h"
#include "base/duration.h"
#include "base/alloc.h"
#include "base/log.h"
#include "lock/script.h"
#include "show/sentinel.h"

#define ROUNDS_MOST 10 /* that the lock has to live for */
#define RIGHTS_LONGEST 200

/* What is asked, in this order. */
enum stage {
	STAGE_INFO,
	STAGE_CONFIG,
	STAGE_TIME,
	STAGE_TIME_AGAIN,
	STAGE_TIME_AT_LAST,
	STAGE_RIGHTS,
	STAGE_ACQUIRE,
	STAGE_EXTEND,
	STAGE_INSPECT,
	STAGE_LOOK,
	STAGE_SCAN,
	STAGE_QUEUE,
	STAGE_RELEASE,
	STAGE_HAND_OVER,
	STAGES,
};

static const char stage_names[STAGES][10] = {
	"INFO",   "CONFIG",  "TIME", "TIME", "TIME",  "rights",  "acquire",
	"extend", "inspect", "look", "scan", "queue", "release", "hand over",
};

void doctor_init(struct doctor *doctor, struct quorum *quorum, const char *key,
		 int64_t quarantine, int64_t ttl)
{
	struct buffer name = {0};
	char number[TOKEN_SIZE];

	token_make(number);
	buffer_print(&name, "%s:doctor:%s", key, number);
	doctor->key = name.data;
	doctor->ttl = ttl;
	lock_init(&doctor->lock, quorum, name.data,
		  ROUNDS_MOST * quorum->timeout, quarantine);
	doctor->lock.afterlife = 0;
	doctor->hearing = (struct hearing){&doctor->lock, &doctor->busy};
	attempt_begin(&doctor->lock);
	buffer_print(&doctor->lock.description, "command=redlock doctor\n");
	doctor->waiter = doctor->lock;
	attempt_begin(&doctor->waiter);
	for (size_t i = 0; i < quorum->count; i++) {
		checkup_init(&doctor->at[i]);
		server_aim(&quorum->servers[i], doctor->lock.key);
	}
}

void doctor_release(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->lock.quorum->count; i++)
		checkup_release(&doctor->at[i]);
	buffer_release(&doctor->warnings);
	lock_release_memory(&doctor->lock);
	free(doctor->key);
}

size_t doctor_count(const struct doctor *doctor)
{
	return ballot_count(&doctor->lock, VOTE_YES);
}

static bool is_in(const struct doctor *doctor, size_t i)
{
	return doctor->lock.vote[i] != VOTE_FAILED;
}

/* It would grant no lock, and that will not pass. */
static void refuse(struct doctor *doctor, size_t i, enum cause cause,
		   const char *text, const char *more)
{
	struct server *server = &doctor->lock.quorum->servers[i];

	ballot_reject(&doctor->lock, i);
	blame(server, cause, "%s%s", text, more);
}

/* --- what we may do there ------------------------------------------------- */

static const char *join(char text[RIGHTS_LONGEST], const struct reply *reply,
			size_t list)
{
	size_t length = 0;

	text[0] = '\0';
	for (size_t n = 0; n < reply_item_count(reply, list); n++) {
		struct value item = reply_item(reply, list, n);

		if (item.text != NULL && length < RIGHTS_LONGEST)
			length += (size_t)snprintf(text + length,
						   RIGHTS_LONGEST - length,
						   " %s", item.text);
	}
	return text;
}

static void hear_rights(struct doctor *doctor, size_t i,
			const struct reply *reply)
{
	char text[RIGHTS_LONGEST];

	if (*join(text, reply, 1) != '\0')
		refuse(doctor, i, CAUSE_LACK, "its user lacks", text);
	else if (*join(text, reply, 2) != '\0')
		checkup_warn(
			&doctor->at[i].warnings, WARNING_RIGHTS,
			"its user lacks", text,
			", which waiters, status or list miss: see its ACL");
}

/* --- asking --------------------------------------------------------------- */

static void ask(struct doctor *doctor, size_t i)
{
	struct lock *lock = &doctor->lock;
	const char *name = stage_names[doctor->stage];

	switch (doctor->stage) {
	case STAGE_CONFIG:
		quorum_ask(lock->quorum, i, false,
			   (struct argument[]){
				   {"CONFIG", 6}, {"GET", 3}, {"[as][ap]*", 9}},
			   3);
		break;
	case STAGE_RIGHTS:
		script_rights(&doctor->waiter, i);
		break;
	case STAGE_ACQUIRE:
		script_acquire(lock, i);
		break;
	case STAGE_EXTEND:
		script_extend(lock, i);
		break;
	case STAGE_INSPECT:
		script_inspect(lock, i, 0, 0);
		break;
	case STAGE_LOOK:
		script_look(lock, i,
			    (struct argument[]){lock->key, lock->record}, 1);
		break;
	case STAGE_SCAN:
		script_scan(lock, i, "0", lock->record.data);
		break;
	case STAGE_QUEUE:
		script_queue(&doctor->waiter, i, 1, 0);
		break;
	case STAGE_RELEASE:
		script_release(lock, i, 0);
		break;
	case STAGE_HAND_OVER:
		script_release(&doctor->waiter, i, 0);
		break;
	default: /* INFO and TIME */
		quorum_ask(lock->quorum, i, false,
			   &(struct argument){name, strlen(name)}, 1);
	}
}

/* --- hearing -------------------------------------------------------------- */

static void hear_script(struct doctor *doctor, size_t i,
			const struct reply *reply)
{
	const struct value *said = reply->value;
	bool is_number = reply->count > 0 && said->text == NULL;
	int64_t place, expected = doctor->stage == STAGE_QUEUE ? 0 : 1;

	if (doctor->stage == STAGE_ACQUIRE) {
		attempt_read(&doctor->hearing, i, reply, &place);
		if (doctor->lock.vote[i] == VOTE_HELD)
			ballot_reject(&doctor->lock, i);
	} else if (is_number && said->number == expected) {
		if (doctor->stage == STAGE_RIGHTS)
			hear_rights(doctor, i, reply);
	} else if (is_number && said->number == 1) {
		refuse(doctor, i, CAUSE_UNFIT, "it grants a lock that is held",
		       "");
	} else if (is_number && said->number == -1 &&
		   doctor->stage == STAGE_HAND_OVER) {
		if (mailbox_is_open(&doctor->mailbox, i))
			checkup_warn(
				&doctor->at[i].warnings, WARNING_SUBSCRIPTION,
				"a waiter was not told of its turn", "", "");
	} else {
		ballot_reject(&doctor->lock, i);
	}
}

/* What it says of itself is good to know, and no more. */
static void hear_facts(struct doctor *doctor, size_t i,
		       const struct reply *reply)
{
	struct checkup *at = &doctor->at[i];
	const struct server *server = &doctor->lock.quorum->servers[i];
	const char *wrong = NULL;

	if (doctor->stage == STAGE_CONFIG)
		checkup_read_config(at, reply);
	else if (doctor->stage != STAGE_INFO)
		checkup_read_time(at, reply, doctor->asked,
				  clock_ms() - doctor->lock.quorum->asked_at);
	else if (reply->count == 1 && reply->value[0].text != NULL)
		wrong = checkup_read_info(at, reply->value[0].text,
					  server->url.kind == URL_CLUSTER);
	if (wrong != NULL)
		refuse(doctor, i, CAUSE_UNFIT, wrong, "");
}

static void hear(void *context, size_t i, const struct reply *reply)
{
	struct doctor *doctor = context;
	const struct server *server = &doctor->lock.quorum->servers[i];
	bool facts = doctor->stage < STAGE_RIGHTS;
	bool optional = facts || (doctor->stage == STAGE_SCAN &&
				  cause_code(server->cause) == EXIT_REFUSED);

	if (reply == NULL || server_is_barred(server) ||
	    (reply->failure != NULL && !optional))
		doctor->lock.vote[i] = VOTE_FAILED;
	else if (reply->failure == NULL && facts)
		hear_facts(doctor, i, reply);
	else if (reply->failure == NULL)
		hear_script(doctor, i, reply);
}

static bool never(void *context)
{
	(void)context;
	return false;
}

/* All are asked, and waited for. What has failed is not asked again, so that
 * it stays known why. */
static void go_through(struct doctor *doctor)
{
	struct judge judge = {doctor, hear, never};
	struct quorum *quorum = doctor->lock.quorum;

	log_step("%s", stage_names[doctor->stage]);
	quorum_round(quorum);
	doctor->asked = clock_wall_ms();
	for (size_t i = 0; i < quorum->count; i++)
		if (is_in(doctor, i))
			ask(doctor, i);
	quorum_gather(quorum, deadline_in(quorum->timeout), &judge);
	for (size_t i = 0; i < quorum->count; i++) {
		if (quorum_is_waiting(quorum, i))
			doctor->lock.vote[i] = VOTE_FAILED;
		if (!is_in(doctor, i) || alias_is_one(&doctor->lock, i))
			quorum_abandon(quorum, i);
	}
}

/* --- listening, as waiters do --------------------------------------------- */

static void on_change(void *context, size_t i)
{
	(void)context;
	(void)i;
}

static void on_message(void *context, size_t i, const char *text, size_t length)
{
	(void)context;
	(void)i;
	(void)text;
	(void)length;
}

static bool is_heard(void *context)
{
	const struct doctor *doctor = context;

	for (size_t i = 0; i < doctor->lock.quorum->count; i++)
		if (is_in(doctor, i) && !mailbox_is_open(&doctor->mailbox, i) &&
		    mailbox_failure(&doctor->mailbox, i) == NULL)
			return false;
	return true;
}

/* Returns the channel's name. */
static struct argument subscribe(struct doctor *doctor)
{
	struct judge judge = {doctor, hear, is_heard};
	struct quorum *quorum = doctor->lock.quorum;
	struct buffer channel = {0};
	struct argument name;

	doctor->listener =
		(struct listener){NULL, on_change, on_change, on_message};
	buffer_print(&channel, "%s:%s", doctor->lock.record.data,
		     doctor->waiter.token);
	name = (struct argument){channel.data, channel.length};
	mailbox_init(&doctor->mailbox, quorum->servers, quorum->count,
		     quorum->timeout, &doctor->listener);
	mailbox_subscribe(&doctor->mailbox, name);
	quorum->mailbox = &doctor->mailbox;
	quorum_idle(quorum, deadline_in(quorum->timeout), &judge);
	return name;
}

/* --- what to make of it --------------------------------------------------- */

static void advise(struct doctor *doctor, size_t i)
{
	const struct quorum *quorum = doctor->lock.quorum;
	const struct url *url = &quorum->servers[i].url;
	const struct server *deaf = mailbox_failure(&doctor->mailbox, i);

	if (!mailbox_is_open(&doctor->mailbox, i))
		checkup_warn(&doctor->at[i].warnings, WARNING_SUBSCRIPTION,
			     "no subscription: ",
			     deaf != NULL ? deaf->why : "no answer",
			     ": waiters ask again and again");
	checkup_advise(&doctor->at[i], doctor->lock.quarantine);
	if (url->kind == URL_SENTINEL)
		sentinel_advise(&doctor->at[i].warnings,
				sentinel_down_after(url, quorum->timeout),
				doctor->ttl);
}

/* With so many permits no server may be down. */
static void warn_of_permits(struct doctor *doctor)
{
	const struct quorum *quorum = doctor->lock.quorum;
	char text[64];

	if (quorum->permits < 2 || quorum->count < 2 ||
	    quorum_size(quorum) < quorum->count)
		return;
	snprintf(text, sizeof(text), "with -P %" PRId64 " all %zu servers",
		 quorum->permits, quorum->count);
	checkup_warn(&doctor->warnings, WARNING_PERMITS, text, " must be up",
		     ": use fewer permits, or more servers");
}

int doctor_examine(struct doctor *doctor, struct error *error)
{
	struct lock *lock = &doctor->lock;
	struct argument channel = {0};

	ballot_open(lock);
	for (doctor->stage = 0; doctor->stage < STAGES; doctor->stage++) {
		if (doctor->stage == STAGE_QUEUE)
			channel = subscribe(doctor);
		go_through(doctor);
	}
	for (size_t i = 0; i < lock->quorum->count; i++) {
		if (is_in(doctor, i))
			advise(doctor, i);
		if (lock->vote[i] != VOTE_YES)
			ballot_explain_server(lock, i, &doctor->at[i].error);
	}
	if (lock->quorum->count % 2 == 0)
		checkup_warn(
			&doctor->warnings, WARNING_EVEN,
			"an even number of servers",
			" tolerates no more failures than one server fewer",
			"");
	warn_of_permits(doctor);
	lock->quorum->mailbox = NULL;
	mailbox_release(&doctor->mailbox);
	free((char *)channel.data);
	doctor->well = ballot_has_quorum(lock) && !lock->alias;
	if (doctor->well)
		return 0;
	ballot_explain_failure(lock, error);
	return -1;
}
