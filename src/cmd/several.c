#include "cmd/several.h"

#include <unistd.h>

#include "base/duration.h"
#include "base/lease.h"
#include "base/signals.h"
#include "base/threads.h"
#include "base/title.h"
#include "run/watchdogs.h"

#define ROUNDS_LATE 3 /* that may take all of a lease */
/* of one server: what it takes those who are refused a key to give back the others, if
 * votes are split and servers are down */
#define ROUNDS_REFUSED 3

struct taking {
	struct session *session;
	struct waiter *waiter;
	struct session *sorted[LOCKS_MOST];
	bool held[LOCKS_MOST];     /* of the sorted */
	bool answered[LOCKS_MOST]; /* its servers have, at least once */
	struct deadline brief;     /* of all brief waits; 0: there was none */
	size_t chosen[LOCKS_MOST], chosen_count; /* for each_chosen */
};

static void each_chosen(struct taking *taking,
			void (*act)(void *taking, size_t i))
{
	threads_each(taking->chosen_count, act, taking);
}

/* --- giving back ---------------------------------------------------------- */

static void give_back_one(void *context, size_t i)
{
	struct taking *taking = context;

	cmd_release_one(taking->sorted[taking->chosen[i]], 0);
}

/* All that are held from this one on. */
static void give_back(struct taking *taking, size_t from)
{
	char text[DURATION_TEXT];

	taking->chosen_count = 0;
	for (size_t i = from; i < taking->session->count; i++)
		if (taking->held[i])
			taking->chosen[taking->chosen_count++] = i;
	each_chosen(taking, give_back_one);
	for (size_t n = 0; n < taking->chosen_count; n++) {
		struct session *each = taking->sorted[taking->chosen[n]];
		const struct lock *lock = &each->lock;

		taking->held[taking->chosen[n]] = false;
		if (each->answer.result == LOCK_ERROR)
			log_notice(
				"%s: not released; the lease ends by itself in %s: "
				"%s",
				lock->names.key.data,
				duration_format(
					text, deadline_left(lock->grant.valid)),
				each->answer.error.text);
		else
			log_step("%s: given back", lock->names.key.data);
	}
}

/* --- a round --------------------------------------------------------------- */

/* An attempt that does not wait. Where there is a wait, what might come of it by
 * waiting is no reason to let the others wait for it. */
static void try_once(struct taking *taking, size_t i)
{
	struct session *each = taking->sorted[i];
	struct answer *answer = &each->answer;
	struct patience once = *taking->waiter->patience;
	struct waiter waiter;

	once.limit = once.wait ? 0 : -1;
	once.wait = false;
	once.tries = 0;
	waiter_init(&waiter, &once);
	answer->result = waiter_acquire(&waiter, &each->lock, &answer->busy,
					&answer->error);
	taking->held[i] = answer->result == LOCK_OK;
}

static bool is_renewed_later(const struct lock *lock)
{
	return lock->wish.validity_needed > 0;
}

/* Of a lease that nobody renews, most has to be left. */
static bool is_long_enough(const struct lock *lock)
{
	return deadline_left(lock->grant.valid) >
	       (is_renewed_later(lock) ? lock->wish.validity_needed
				       : lease_unconfirmed(lock->wish.ttl));
}

/* Somebody has asked us to stop: it is not asked for anew. */
static void end_broken(struct taking *taking, struct session *each)
{
	struct answer *answer = &each->answer;
	struct buffer how = {0};

	record_print_breaker(&how, "broken", &each->lock.breaker);
	lock_note_end(&each->lock,
		      each->lock.grant.acquired - taking->waiter->began,
		      how.data);
	answer->result = LOCK_ERROR;
	error_set(&answer->error, EXIT_LOST, "%s: while waiting for other keys",
		  how.data);
	buffer_release(&how);
}

/* One that is held already. */
static void confirm(struct taking *taking, size_t i)
{
	struct session *each = taking->sorted[i];
	struct answer *answer = &each->answer;

	if (!each->lock.broken)
		answer->result = lock_extend(
			&each->lock,
			(struct wait){deadline_in(each->quorum.timeout),
				      taking->waiter->patience->interrupt},
			&answer->error);
	if (each->lock.broken) {
		end_broken(taking, each);
		return;
	}
	if (answer->result == LOCK_ERROR && is_renewed_later(&each->lock) &&
	    is_long_enough(&each->lock))
		answer->result = LOCK_OK;
	if (answer->result == LOCK_OK || answer->result == LOCK_INTERRUPTED)
		return;
	log_step("%s: lost meanwhile, asked for anew: %s",
		 each->lock.names.key.data, answer->error.text);
	cmd_release_one(each, 0);
	try_once(taking, i);
}

static void ask_one(void *context, size_t i)
{
	struct taking *taking = context;

	if (taking->held[taking->chosen[i]])
		confirm(taking, taking->chosen[i]);
	else
		try_once(taking, taking->chosen[i]);
}

/* As the waiter sees it (waiter.h). */
static bool has_answered(const struct session *each)
{
	const struct answer *answer = &each->answer;

	return answer->result != LOCK_ERROR || answer->busy.unraised ||
	       lock_is_quarantined(&each->lock);
}

/* The calling thread asks for KEY: it has something to do meanwhile (before_wait). */
static void ask_all(struct taking *taking)
{
	size_t first = settings_key_index(taking->session->settings,
					  taking->session->settings->key);

	taking->chosen_count = taking->session->count;
	for (size_t i = 0; i < taking->chosen_count; i++)
		taking->chosen[i] = i;
	taking->chosen[0] = first;
	taking->chosen[first] = 0;
	each_chosen(taking, ask_one);
	taking->waiter->tries++;
	for (size_t i = 0; i < taking->session->count; i++)
		taking->answered[i] |= has_answered(taking->sorted[i]);
}

/* --- what follows from it --------------------------------------------------- */

/* The first for which this is so; count: there is none. */
static size_t find(const struct taking *taking,
		   bool (*is_so)(const struct taking *taking, size_t i))
{
	size_t i = 0;

	while (i < taking->session->count && !is_so(taking, i))
		i++;
	return i;
}

static const struct answer *answer_at(const struct taking *taking, size_t i)
{
	return &taking->sorted[i]->answer;
}

static bool is_interrupted(const struct taking *taking, size_t i)
{
	return answer_at(taking, i)->result == LOCK_INTERRUPTED;
}

static bool is_busy(const struct taking *taking, size_t i)
{
	return answer_at(taking, i)->result == LOCK_BUSY;
}

static bool has_failed(const struct taking *taking, size_t i)
{
	return answer_at(taking, i)->result == LOCK_ERROR;
}

static bool is_unreached(const struct taking *taking, size_t i)
{
	return has_failed(taking, i) &&
	       answer_at(taking, i)->error.code == EXIT_UNREACHED;
}

/* Waiting, for this lock or for others, would be in vain, whatever the others say. */
static bool is_hopeless(const struct taking *taking, size_t i)
{
	const struct answer *answer = answer_at(taking, i);

	if (has_failed(taking, i))
		return !answer->error.transient && !is_unreached(taking, i);
	return is_busy(taking, i) &&
	       (answer->busy.nested || answer->busy.has_run);
}

/* An outage that is not waited through (waiter.h). */
static bool is_away(const struct taking *taking, size_t i)
{
	return has_failed(taking, i) &&
	       (!answer_at(taking, i)->error.transient ||
		(!taking->answered[i] && taking->waiter->patience->limit < 0));
}

static bool is_out_of_patience(const struct waiter *waiter)
{
	const struct patience *patience = waiter->patience;

	return !patience->wait || deadline_passed(waiter->limit) ||
	       (patience->tries > 0 && waiter->tries >= patience->tries);
}

/* Others have it, but not for long yet: perhaps in a round in which they were refused
 * an earlier key. */
static bool may_come_back(const struct taking *taking, size_t refused)
{
	const struct session *each = taking->sorted[refused];
	const struct busy *busy = &each->answer.busy;

	return refused > 0 && is_busy(taking, refused) && busy->held >= 0 &&
	       busy->held < ROUNDS_REFUSED * each->quorum.timeout &&
	       (taking->brief.at == 0 || !deadline_passed(taking->brief));
}

/* An answer that decides all; count: there is none. */
static size_t find_final(const struct taking *taking)
{
	size_t i = find(taking, is_interrupted);

	return i < taking->session->count ? i : find(taking, is_hopeless);
}

/* The one to wait for, or to name: the first that is busy, or else one that cannot be
 * reached. But an outage that ends the taking comes first, unless waiting is over or COMMAND
 * would run beside a holder. count: all are held. */
static size_t find_refused(const struct taking *taking, bool spent)
{
	size_t count = taking->session->count;
	size_t busy = find(taking, is_busy), away = find(taking, is_away);

	if (busy < count && (spent || taking->waiter->patience->unlocked))
		return busy;
	if (away < count)
		return away;
	return busy < count ? busy : find(taking, has_failed);
}

/* Ends the taking with what was said of this lock. */
static enum lock_result conclude(struct taking *taking, size_t i,
				 struct lock **about, struct busy *busy,
				 struct error *error)
{
	const struct answer answer = taking->sorted[i]->answer;

	*about = &taking->sorted[i]->lock;
	*busy = answer.busy;
	*error = answer.error;
	give_back(taking, 0);
	return answer.result;
}

/* Renews all before this one that are held. */
static void keep_earlier(struct taking *taking, size_t refused,
			 struct watchdogs *watchdogs)
{
	struct lock *locks[LOCKS_MOST];
	size_t count = 0;

	for (size_t i = 0; i < refused; i++)
		if (taking->held[i])
			locks[count++] = &taking->sorted[i]->lock;
	watchdogs_init(watchdogs, locks, count, NULL, NOTHING_TO_STOP);
	if (watchdogs_start(watchdogs, 0) != 0) {
		watchdogs_stop(watchdogs);
		give_back(taking, 0);
	}
}

/* Waits for one that was refused, or until one of those that are held is lost. briefly:
 * for the time that others may need to give it back, whatever the patience is. */
static void wait_for(struct taking *taking, size_t refused, bool briefly)
{
	struct session *each = taking->sorted[refused];
	struct answer *answer = &each->answer;
	struct waiter brief = {0}, *waiter = briefly ? &brief : taking->waiter;
	const struct patience *patience = taking->waiter->patience;
	struct patience moment = *patience;
	struct watchdogs watchdogs;
	int events;

	give_back(taking, is_busy(taking, refused) ? refused + 1 : 0);
	keep_earlier(taking, refused, &watchdogs);
	events = watchdogs_interrupt(&watchdogs, patience->interrupt);
	if (events >= 0)
		moment.interrupt = events;
	if (briefly && taking->brief.at == 0)
		taking->brief =
			deadline_in(ROUNDS_REFUSED * each->quorum.timeout);
	if (briefly) {
		moment.wait = true;
		moment.limit = deadline_left(taking->brief);
		moment.tries = 0;
		waiter_init(&brief, &moment);
	}
	waiter->patience = &moment;
	waiter->answered = taking->answered[refused];
	answer->result = waiter_go_on(waiter, &each->lock, answer->result,
				      &answer->busy, &answer->error);
	taking->waiter->patience = patience;
	taking->held[refused] = answer->result == LOCK_OK;
	watchdogs_stop(&watchdogs);
	watchdogs_release(&watchdogs);
	if (events >= 0)
		close(events);
}

/* The wait was ended by one that was held, and nobody wants us to end. */
static bool has_lost_one(const struct taking *taking, size_t waited)
{
	return is_interrupted(taking, waited) &&
	       !signals_have_come(taking->waiter->patience->interrupt);
}

/* Which lock to report. If an outage has ended the wait for this one, what is known of the
 * others is out of date: they are asked again, and a busy one is reported, so that COMMAND
 * does not run beside its holder. */
static size_t look_again(struct taking *taking, size_t waited)
{
	size_t count = taking->session->count, i;

	if (!is_unreached(taking, waited))
		return waited;
	taking->chosen_count = 0;
	for (i = 0; i < count; i++)
		if (i != waited && !taking->held[i])
			taking->chosen[taking->chosen_count++] = i;
	each_chosen(taking, ask_one);
	i = find_final(taking);
	if (i == count)
		i = find(taking, is_busy);
	return i < count ? i : waited;
}

static bool are_long_enough(const struct taking *taking)
{
	for (size_t i = 0; i < taking->session->count; i++)
		if (!is_long_enough(&taking->sorted[i]->lock))
			return false;
	return true;
}

static enum lock_result give_up_late(struct taking *taking, struct lock **about,
				     struct busy *busy, struct error *error)
{
	struct answer *answer = &taking->sorted[0]->answer;

	answer->result = LOCK_ERROR;
	error_set(
		&answer->error, EXIT_UNREACHED,
		"the servers granted it too late: too little of the lease (-t) "
		"was left when the answers came");
	return conclude(taking, 0, about, busy, error);
}

enum lock_result several_take(struct session *session, struct waiter *waiter,
			      struct lock **about, struct busy *busy,
			      struct error *error)
{
	struct taking taking = {.session = session, .waiter = waiter};
	size_t count = session->count, late = 0, i;
	bool spent;

	for (i = 0; i < count; i++)
		taking.sorted[settings_key_index(
			session->settings,
			settings_key(session->settings, i))] =
			session_at(session, i);
	/* the first title moves the environment, which threads may use */
	title_set("%s: waiting", session->settings->key);
	for (;;) {
		ask_all(&taking);
		i = find_final(&taking);
		if (i < count)
			return conclude(&taking, i, about, busy, error);
		spent = is_out_of_patience(waiter);
		i = find_refused(&taking, spent);
		if (i == count && are_long_enough(&taking))
			return LOCK_OK;
		if (i == count && ++late == ROUNDS_LATE)
			return give_up_late(&taking, about, busy, error);
		if (i == count)
			continue;
		if (is_away(&taking, i) ||
		    (spent && !may_come_back(&taking, i)))
			return conclude(&taking, i, about, busy, error);
		wait_for(&taking, i, spent);
		if (!taking.held[i] && !has_lost_one(&taking, i))
			return conclude(&taking, look_again(&taking, i), about,
					busy, error);
	}
}
