#include "show/doctor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "lock/alias.h"
#include "lock/attempt.h"
#include "lock/explain.h"
#include "base/log.h"
#include "lock/rights.h"
#include "lock/script.h"
#include "show/sentinel.h"

#define ROUNDS_MOST 10 /* that the lock has to live for */

/* A question that all servers are asked. */
struct stage {
	const char *name; /* for -v */
	void (*ask)(struct doctor *doctor, size_t i);
	/* what answers it, if nothing failed */
	void (*hear)(struct doctor *doctor, size_t i,
		     const struct reply *reply);
	/* which failures do not matter */
	enum { NONE, REFUSALS, ALL } harmless;
	/* NULL, or what is done before */
	void (*prepare)(struct doctor *doctor);
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
	doctor->lock.wish.afterlife = 0;
	attempt_begin(&doctor->lock);
	buffer_print(&doctor->lock.wish.description,
		     "command=redlock doctor\n");
	doctor->waiter = doctor->lock;
	attempt_begin(&doctor->waiter);
	for (size_t i = 0; i < quorum->count; i++) {
		server_facts_init(&doctor->at[i]);
		server_aim(&quorum->servers[i], doctor->lock.names.key);
	}
}

void doctor_release(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->lock.ballot.quorum->count; i++)
		server_facts_release(&doctor->at[i]);
	buffer_release(&doctor->warnings);
	lock_release_memory(&doctor->lock);
	free(doctor->key);
}

size_t doctor_count(const struct doctor *doctor)
{
	return ballot_count(&doctor->lock.ballot, VOTE_YES);
}

static bool is_in(const struct doctor *doctor, size_t i)
{
	return doctor->lock.ballot.vote[i] != VOTE_FAILED;
}

/* It would grant no lock, and trying again will not help. */
static void refuse(struct doctor *doctor, size_t i, enum cause cause,
		   const char *text, const char *more)
{
	struct server *server = &doctor->lock.ballot.quorum->servers[i];

	ballot_reject(&doctor->lock.ballot, i);
	conn_blame(&server->conn, cause, "%s%s", text, more);
}

/* --- what it says of itself ----------------------------------------------- */

static void ask_info(struct doctor *doctor, size_t i)
{
	quorum_ask(doctor->lock.ballot.quorum, i, ASK_PATIENTLY,
		   &(struct argument){"INFO", 4}, 1);
}

static void hear_info(struct doctor *doctor, size_t i,
		      const struct reply *reply)
{
	const struct url *url = &doctor->lock.ballot.quorum->servers[i].url;
	const char *wrong = NULL;

	if (reply->count == 1 && reply->value[0].text != NULL)
		wrong = server_facts_read_info(&doctor->at[i],
					       reply->value[0].text,
					       url->kind == URL_CLUSTER);
	if (wrong != NULL)
		refuse(doctor, i, CAUSE_UNFIT, wrong, "");
}

static void ask_config(struct doctor *doctor, size_t i)
{
	static const struct argument words[] = {
		{"CONFIG", 6}, {"GET", 3}, {"[as][ap]*", 9}};

	quorum_ask(doctor->lock.ballot.quorum, i, ASK_PATIENTLY, words, 3);
}

static void hear_config(struct doctor *doctor, size_t i,
			const struct reply *reply)
{
	server_facts_read_config(&doctor->at[i], reply);
}

static void ask_user(struct doctor *doctor, size_t i)
{
	static const struct argument words[] = {
		{"ACL", 3}, {"GETUSER", 7}, {"default", 7}};

	quorum_ask(doctor->lock.ballot.quorum, i, ASK_PATIENTLY, words, 3);
}

static void hear_user(struct doctor *doctor, size_t i,
		      const struct reply *reply)
{
	server_facts_read_user(&doctor->at[i], reply);
}

static void ask_time(struct doctor *doctor, size_t i)
{
	quorum_ask(doctor->lock.ballot.quorum, i, ASK_PATIENTLY,
		   &(struct argument){"TIME", 4}, 1);
}

static void hear_time(struct doctor *doctor, size_t i,
		      const struct reply *reply)
{
	server_facts_read_time(&doctor->at[i], reply, doctor->asked,
			       clock_ms() -
				       doctor->lock.ballot.quorum->asked_at);
}

/* --- what must be known before it is tried -------------------------------- */

static void ask_shard(struct doctor *doctor, size_t i)
{
	struct quorum *quorum = doctor->lock.ballot.quorum;

	if (quorum->servers[i].url.kind == URL_CLUSTER)
		script_shard(quorum, i);
}

/* Nobody must publish there, and so must we not. */
static void hear_shard(struct doctor *doctor, size_t i,
		       const struct reply *reply)
{
	if (reply->count >= 2 && reply->value[1].text == NULL &&
	    reply->value[1].number == 1)
		refuse(doctor, i, CAUSE_UNFIT,
		       "its cluster was upgraded, and it aborts when a lock is "
		       "handed over: run CLUSTER SAVECONFIG there, and restart "
		       "it",
		       "");
}

/* --- what our user may do there ------------------------------------------- */

static void ask_rights(struct doctor *doctor, size_t i)
{
	script_rights(doctor->lock.ballot.quorum, i, &doctor->lock.names, "",
		      true);
}

static bool says(const struct reply *reply, int64_t number)
{
	return reply->count > 0 && reply->value[0].text == NULL &&
	       reply->value[0].number == number;
}

static void warn_of_rights(struct doctor *doctor, size_t i,
			   const struct reply *reply)
{
	struct buffer *warnings = &doctor->at[i].warnings;
	char text[RIGHTS_TEXT];

	if (*rights_read_missing(text, reply, 2) != '\0')
		warning_add(warnings, WARNING_RIGHTS,
			    "it lacks commands:", text,
			    ", which waiters, status, list, history, check, "
			    "break or --once-in need");
	if (*rights_read(text, reply, 2) != '\0')
		warning_add(warnings, WARNING_RIGHTS, "its user lacks", text,
			    ", which waiters, status, list, history, check, "
			    "break or --once-in need: see its ACL");
}

static void hear_rights(struct doctor *doctor, size_t i,
			const struct reply *reply)
{
	char text[RIGHTS_TEXT];

	if (!says(reply, 1)) {
		ballot_reject(&doctor->lock.ballot, i);
		return;
	}
	if (*rights_read_missing(text, reply, 1) != '\0')
		refuse(doctor, i, CAUSE_COMMAND,
		       "it lacks commands that locks need:", text);
	else if (*rights_read(text, reply, 1) != '\0')
		refuse(doctor, i, CAUSE_LACK, "its user lacks", text);
	warn_of_rights(doctor, i, reply);
}

/* --- the life of a lock ---------------------------------------------------- */

static void ask_acquire(struct doctor *doctor, size_t i)
{
	script_acquire(&doctor->lock, i);
}

static void hear_acquire(struct doctor *doctor, size_t i,
			 const struct reply *reply)
{
	struct busy busy;

	attempt_read(&doctor->lock, i, reply, &busy);
	lock_hurry(&doctor->lock, false); /* nobody needs this lock */
	if (doctor->lock.ballot.vote[i] == VOTE_HELD)
		ballot_reject(&doctor->lock.ballot, i);
}

static void hear_done(struct doctor *doctor, size_t i,
		      const struct reply *reply)
{
	if (!says(reply, 1))
		ballot_reject(&doctor->lock.ballot, i);
}

static void ask_extend(struct doctor *doctor, size_t i)
{
	script_extend(&doctor->lock, i);
}

static void ask_inspect(struct doctor *doctor, size_t i)
{
	script_inspect(doctor->lock.ballot.quorum, i, &doctor->lock.names,
		       doctor->lock.grant.token, "", 0);
}

static void ask_batch(struct doctor *doctor, size_t i)
{
	script_batch(doctor->lock.ballot.quorum, i, &doctor->lock.names, 1,
		     true);
}

static void ask_scan(struct doctor *doctor, size_t i)
{
	script_scan(doctor->lock.ballot.quorum, i, "0",
		    doctor->lock.names.record.data);
}

static void ask_queue(struct doctor *doctor, size_t i)
{
	script_queue(&doctor->waiter, i, 1, 0, ASK_PATIENTLY);
}

static void hear_queue(struct doctor *doctor, size_t i,
		       const struct reply *reply)
{
	if (says(reply, 1))
		refuse(doctor, i, CAUSE_UNFIT, "it grants a lock that is held",
		       "");
	else if (!says(reply, 0))
		ballot_reject(&doctor->lock.ballot, i);
}

static void ask_release(struct doctor *doctor, size_t i)
{
	script_release(&doctor->lock, i, 0);
}

static void ask_hand_over(struct doctor *doctor, size_t i)
{
	script_release(&doctor->waiter, i, 0);
}

static void hear_hand_over(struct doctor *doctor, size_t i,
			   const struct reply *reply)
{
	if (!says(reply, -1))
		hear_done(doctor, i, reply);
	else if (mailbox_is_open(&doctor->mailbox, i))
		warning_add(&doctor->at[i].warnings, WARNING_SUBSCRIPTION,
			    "a waiter was not told that it was its turn", "",
			    "");
}

/* --- asking and hearing ---------------------------------------------------- */

static void hear(void *context, size_t i, const struct reply *reply)
{
	struct doctor *doctor = context;
	const struct stage *stage = doctor->stage;
	const struct server *server = &doctor->lock.ballot.quorum->servers[i];
	enum cause cause = server->conn.refusal.cause;
	bool harmless =
		stage->harmless == ALL ||
		(stage->harmless == REFUSALS &&
		 (cause_code(cause) == EXIT_REFUSED || cause == CAUSE_COMMAND));

	if (reply == NULL || server_is_barred(server) ||
	    (reply->failure != NULL && !harmless))
		doctor->lock.ballot.vote[i] = VOTE_FAILED;
	else if (reply->failure == NULL)
		stage->hear(doctor, i, reply);
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

	for (size_t i = 0; i < doctor->lock.ballot.quorum->count; i++)
		if (is_in(doctor, i) && !mailbox_is_open(&doctor->mailbox, i) &&
		    mailbox_failure(&doctor->mailbox, i) == NULL)
			return false;
	return true;
}

static void subscribe(struct doctor *doctor)
{
	struct reply_handler handler = {doctor, hear, is_heard};
	struct quorum *quorum = doctor->lock.ballot.quorum;
	struct buffer *channel = &doctor->channel;

	doctor->listener =
		(struct listener){NULL, on_change, on_change, on_message};
	buffer_print(channel, "%s:%s", doctor->lock.names.record.data,
		     doctor->waiter.grant.token);
	mailbox_init(&doctor->mailbox, quorum->servers, quorum->count,
		     quorum->timeout, &doctor->listener);
	mailbox_subscribe(&doctor->mailbox,
			  (struct argument){channel->data, channel->length});
	quorum->mailbox = &doctor->mailbox;
	quorum_idle(quorum, wait_until(deadline_in(quorum->timeout)), &handler);
}

static const struct stage stages[] = {
	{"INFO", ask_info, hear_info, ALL, NULL},
	{"CONFIG", ask_config, hear_config, ALL, NULL},
	{"ACL", ask_user, hear_user, ALL, NULL},
	{"TIME", ask_time, hear_time, ALL, NULL},
	{"TIME", ask_time, hear_time, ALL, NULL},
	{"TIME", ask_time, hear_time, ALL, NULL},
	{"shard", ask_shard, hear_shard, ALL, NULL},
	{"rights", ask_rights, hear_rights, NONE, NULL},
	{"acquire", ask_acquire, hear_acquire, NONE, NULL},
	{"extend", ask_extend, hear_done, NONE, NULL},
	{"inspect", ask_inspect, hear_done, NONE, NULL},
	{"batch", ask_batch, hear_done, NONE, NULL},
	{"scan", ask_scan, hear_done, REFUSALS, NULL},
	{"queue", ask_queue, hear_queue, NONE, subscribe},
	{"release", ask_release, hear_done, NONE, NULL},
	{"hand over", ask_hand_over, hear_hand_over, NONE, NULL},
};

/* It has not answered in time. What it refuses for a moment, and goes on to refuse, does
 * not matter in some stages. */
static bool is_silent(const struct doctor *doctor, size_t i)
{
	struct quorum *quorum = doctor->lock.ballot.quorum;
	const struct server *server = &quorum->servers[i];

	return quorum_is_waiting(quorum, i) &&
	       (doctor->stage->harmless != ALL || server_is_barred(server) ||
		!server_is_put_off(server));
}

/* All are asked, and waited for. What has failed is not asked again, so that
 * it stays known why. */
static void go_through(struct doctor *doctor, const struct stage *stage)
{
	struct reply_handler handler = {doctor, hear, NULL};
	struct quorum *quorum = doctor->lock.ballot.quorum;

	log_step("%s", stage->name);
	doctor->stage = stage;
	if (stage->prepare != NULL)
		stage->prepare(doctor);
	quorum_round(quorum);
	doctor->asked = clock_wall_ms();
	for (size_t i = 0; i < quorum->count; i++)
		if (is_in(doctor, i))
			stage->ask(doctor, i);
	quorum_gather(quorum, wait_until(deadline_in(quorum->timeout)),
		      &handler);
	for (size_t i = 0; i < quorum->count; i++) {
		if (is_silent(doctor, i))
			doctor->lock.ballot.vote[i] = VOTE_FAILED;
		if (!is_in(doctor, i) || alias_is_one(&doctor->lock.ballot, i))
			quorum_abandon(quorum, i);
	}
}

/* --- what to make of it --------------------------------------------------- */

static void advise(struct doctor *doctor, size_t i)
{
	const struct quorum *quorum = doctor->lock.ballot.quorum;
	const struct url *url = &quorum->servers[i].url;
	const struct server *deaf = mailbox_failure(&doctor->mailbox, i);
	struct sentinels sentinels;

	if (!mailbox_is_open(&doctor->mailbox, i))
		warning_add(&doctor->at[i].warnings, WARNING_SUBSCRIPTION,
			    "no subscription: ",
			    deaf != NULL ? deaf->conn.refusal.text
					 : "no answer",
			    ": waiters ask again and again");
	server_facts_advise(&doctor->at[i], doctor->lock.ballot.quarantine);
	if (url->kind != URL_SENTINEL)
		return;
	sentinels_ask(&sentinels, url, quorum->timeout);
	sentinels_advise(&doctor->at[i].warnings, &sentinels, doctor->ttl);
	sentinels_release(&sentinels);
}

int doctor_examine(struct doctor *doctor, struct error *error)
{
	struct lock *lock = &doctor->lock;

	ballot_open(&lock->ballot, NULL);
	for (size_t n = 0; n < sizeof(stages) / sizeof(stages[0]); n++)
		go_through(doctor, &stages[n]);
	for (size_t i = 0; i < lock->ballot.quorum->count; i++) {
		if (is_in(doctor, i))
			advise(doctor, i);
		if (lock->ballot.vote[i] != VOTE_YES)
			explain_server(&lock->ballot, i, &doctor->at[i].error);
	}
	if (lock->ballot.quorum->count % 2 == 0)
		warning_add(&doctor->warnings, WARNING_EVEN,
			    "an even number of servers",
			    " tolerates no more failures than one server fewer",
			    "");
	lock->ballot.quorum->mailbox = NULL;
	mailbox_release(&doctor->mailbox);
	buffer_release(&doctor->channel);
	doctor->well = ballot_has_quorum(&lock->ballot) && !lock->ballot.alias;
	if (doctor->well)
		return 0;
	explain_failure(&lock->ballot, error);
	return -1;
}
