#include "cmd/take.h"

#include <inttypes.h>

#include "base/duration.h"
#include "base/log.h"
#include "base/signals.h"
#include "cmd/journal.h"
#include "cmd/several.h"
#include "show/history.h"
#include "show/inspect.h"

/* We would wait for ourselves. */
static void complain_nested(const struct lock *lock, const struct busy *busy)
{
	enum kind kind = lock->wish.kind;

	log_error(
		"%s: held by an ancestor of this process, which waits for it%s",
		lock->names.key.data,
		kind == KIND_NONE        ? ""
		: kind == KIND_REENTRANT ? ": use -r there, too"
		: kind == KIND_EXCLUSIVE && !busy->is_sorted
			? ": use -r in both to enter KEY again"
			: "");
}

/* For how long KEY is held usually; 0 if that is not known. */
static int64_t usual_of(const struct lock *lock)
{
	struct history history;
	struct error ignored;
	int64_t usual = 0;

	history_init(&history, lock->ballot.quorum, lock->names.key.data);
	history.hasty = true;
	if (history_read(&history, &ignored) == 0)
		usual = history_usual(&history);
	history_release(&history);
	return usual;
}

/* Those that a quorum has, whatever servers have that did not answer. */
static int64_t count_certain(const struct holders *holders)
{
	int64_t count = 0;

	for (size_t n = 0; n < holders->holding.count; n++)
		count +=
			!holders_is_partial(holders, &holders->holding.seen[n]);
	return count;
}

/* Grants of different slots name nobody. But if a quorum has a holder of each, nobody
 * competes with us. */
static void name_holders(const struct lock *lock, struct busy *busy)
{
	struct holders holders;
	struct error ignored;
	const struct seen *longest;
	bool unknown;

	holders_init(&holders, lock->ballot.quorum, lock->names.key.data);
	holders.owing = true;
	if (inspect_lock(&holders, &ignored) == 0 &&
	    (longest = holders_longest(&holders, &unknown)) != NULL &&
	    count_certain(&holders) >= lock->wish.permits) {
		*busy = longest->who;
		busy->holders = count_certain(&holders);
		busy->permits = lock->wish.permits;
		busy->at = clock_ms();
	}
	holders_release(&holders);
}

static void complain_busy(const struct session *session,
			  const struct lock *lock, struct busy *busy)
{
	struct buffer text = {0};

	if (busy->split && !busy->has_reply && busy->outage == NULL)
		name_holders(lock, busy);
	journal_busy(session->settings, lock, busy);
	if (busy->nested) {
		complain_nested(lock, busy);
		return;
	}
	/* -E 0 asks for silence: cron lines use it if it is fine that
	 * another machine has KEY */
	if (session->settings->conflict_code == 0)
		return;
	if (busy->held >= 0 && !busy->has_run && !busy->holder.over &&
	    busy->outage == NULL)
		busy->usual = usual_of(lock);
	if (busy->has_run)
		run_print_success(&text, &lock->success, lock->wish.once_in);
	else
		record_print_busy(&text, busy);
	log_error("%s: %s", lock->names.key.data, text.data);
	buffer_release(&text);
}

const char *cmd_outcome(int status)
{
	switch (status) {
	case EXIT_UNREACHED:
		return "unreachable";
	case EXIT_REFUSED:
		return "refused";
	case EXIT_MISUSED:
		return "misused";
	case EXIT_LOST:
		return "lost";
	default:
		return "error";
	}
}

/* The owner above us that REDLOCK_HELD names may have let go of KEY since. What is left of
 * it, such as two workers that a script starts after its `release`, is not one owner:
 * each is an owner of its own. If that cannot be told, the attempt will say why. */
static void disown_past(void *session, size_t i)
{
	struct session *each = session_at(session, i);
	struct lock *lock = &each->lock;
	struct holders holders;
	struct error ignored;

	holders_init(&holders, lock->ballot.quorum, lock->names.key.data);
	if (lock->wish.owner == each->ancestor &&
	    inspect_is_held(&holders, each->ancestor, &ignored) == 0 &&
	    holders.holding.count == 0)
		lock->wish.owner = NULL;
	holders_release(&holders);
}

static enum lock_result take(struct session *session,
			     const struct patience *patience,
			     struct lock **about, struct busy *busy,
			     struct error *error)
{
	struct waiter waiter;
	enum lock_result result;

	waiter_init(&waiter, patience);
	*about = &session->lock;
	if (session->count > 1)
		return several_take(session, &waiter, about, busy, error);
	result = waiter_acquire(&waiter, &session->lock, &session->answer.busy,
				error);
	*busy = session->answer.busy;
	return result;
}

/* COMMAND does not run without the lock if it might run beside those who had KEY, or another
 * of the keys, when servers were last heard: it is as if they had it still. */
static enum lock_result hold_back(struct session *session, struct lock **about,
				  struct busy *busy, const struct error *error)
{
	for (size_t i = 0; i < session->count; i++) {
		struct session *each = session_at(session, i);

		if (!each->lock.seen_busy)
			continue;
		*about = &each->lock;
		*busy = each->answer.busy;
		busy->outage = error->text;
		return LOCK_BUSY;
	}
	return LOCK_ERROR;
}

static void tell_granted(const struct session *session)
{
	char text[DURATION_TEXT];

	for (size_t i = 0; log_is_verbose() && i < session->count; i++) {
		const struct lock *lock = session->locks[i];

		if (lock->wish.kind == KIND_NONE)
			log_step("%s: free", lock->names.key.data);
		else
			log_step("%s: granted, fence %" PRId64 ", %s left",
				 lock->names.key.data, lock->grant.fence,
				 duration_format(
					 text,
					 deadline_left(lock->grant.valid)));
	}
}

static void fail(struct taken *taken, const struct settings *settings,
		 const struct lock *about, struct error *error)
{
	taken->status = error->code;
	taken->outcome = cmd_outcome(error->code);
	taken->unlocked = settings->unlocked && taken->signal == 0 &&
			  error->code == EXIT_UNREACHED;
	if (taken->unlocked) {
		journal_unlocked(settings, about, error->text);
		error_append(error, ": COMMAND runs without the lock");
	}
	if (error->code == EXIT_LOST) {
		journal_lost(settings, about, error->text);
		error_prepend(error, "lock lost: ");
	}
	cmd_complain(about, error);
}

/* What is done if somebody asks us to stop. */
static enum on_break on_break(const struct settings *settings,
			      const struct lock *lock)
{
	if (lock->wish.validity_needed == 0)
		return BREAK_EXTENDED;
	switch (settings->on_lost) {
	case ON_LOST_WARN:
		return BREAK_WARNS;
	case ON_LOST_SIGNAL:
		return BREAK_SIGNALS;
	default:
		return BREAK_STOPS;
	}
}

/* What succeeds is remembered for as long as it matters. */
static void describe(struct lock *lock, const struct settings *settings,
		     pid_t pid, const char *label)
{
	int64_t remember = settings->remember;

	if (remember == UNSET && settings->once_in > lock->wish.afterlife)
		remember = settings->once_in;
	record_describe(&lock->wish.description, pid,
			settings->label != NULL ? settings->label : label,
			settings->ttl, lock->wish.validity_needed > 0,
			on_break(settings, lock));
	lock->wish.once_in = settings->once_in;
	lock_describe_history(lock, remember);
}

struct taken cmd_take(struct session *session, pid_t pid, const char *label)
{
	const struct settings *settings = session->settings;
	/* in case nothing below says how it went */
	struct taken taken = {.status = EXIT_BUG, .outcome = "error"};
	const struct patience patience = {
		.wait = !settings->nonblock,
		.poll = settings->poll,
		.unlocked = settings->unlocked,
		.limit = settings->wait,
		.every = settings->poll_pause,
		.tries = settings->tries,
		.interrupt = session->interrupt,
	};
	int64_t start = clock_ms();
	struct lock *about;
	struct busy busy;
	struct error error;
	enum lock_result result;

	for (size_t i = 0; i < session->count; i++)
		describe(session->locks[i], settings, pid, label);
	if (session->lock.wish.kind == KIND_REENTRANT)
		cmd_each(session, disown_past);
	log_hurry(true);
	result = take(session, &patience, &about, &busy, &error);
	log_hurry(false);
	if (result == LOCK_ERROR && error.code == EXIT_UNREACHED &&
	    settings->unlocked)
		result = hold_back(session, &about, &busy, &error);
	taken.waited = session->waited = clock_ms() - start;
	taken.signal = signals_next();
	switch (result) {
	case LOCK_OK:
		taken.held = true;
		tell_granted(session);
		break;
	case LOCK_INTERRUPTED:
		taken.interrupted = true;
		break;
	case LOCK_BUSY:
		taken.status = settings->conflict_code;
		taken.outcome = busy.has_run ? "done-already" : "busy";
		complain_busy(session, about, &busy);
		break;
	default:
		fail(&taken, settings, about, &error);
	}
	if (taken.signal == 0)
		return taken;
	/* it came in time: nothing is started, and nothing is left */
	taken.outcome = "interrupted";
	if (taken.held && session->lock.wish.kind != KIND_NONE)
		cmd_give_back(session);
	taken.held = false;
	return taken;
}
