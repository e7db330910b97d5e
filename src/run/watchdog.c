#include "run/watchdog.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/log.h"
#include "base/threads.h"
#include "base/title.h"

#define LISTEN_AFTER 100 /* ms: a command that ends sooner needs no thread */
#define APART 100        /* ms from a round to one that somebody asks for */
#define FIRST_CALL 1000  /* ms: to servers that were away (lock_idle) */

struct lease_times watchdog_plan(const struct lock *lock, int64_t kill_after)
{
	const struct deadline valid = lock->grant.valid;

	if (kill_after == NOTHING_TO_STOP)
		return (struct lease_times){valid, valid, valid};
	return lease_times(valid, lock->grant.lease, lock->wish.ttl,
			   kill_after);
}

static struct lease_times plan(const struct watchdog *watchdog)
{
	return watchdog_plan(watchdog->lock, watchdog->kill_after);
}

/* COMMAND may take so long to stop that the lock cannot wait for grant.renew. */
static struct deadline renewal_due(const struct watchdog *watchdog)
{
	const struct grant *grant = &watchdog->lock->grant;

	return lease_renewal_due(grant->renew, grant->started,
				 plan(watchdog).term);
}

static void tell_guard(const struct watchdog *watchdog,
		       struct lease_times times)
{
	if (watchdog->guard != NULL)
		guard_tell(watchdog->guard, watchdog->index, times);
}

/* Says that the lock is lost, and has COMMAND stopped. */
static void lose(struct watchdog *watchdog, const struct error *why)
{
	struct lease_times times = plan(watchdog);
	struct lock *lock = watchdog->lock;

	listening_end(&lock->listening, lock->ballot.quorum);
	pthread_mutex_lock(&watchdog->mutex);
	watchdog->lost = true;
	watchdog->why = *why;
	pthread_mutex_unlock(&watchdog->mutex);
	times.kill =
		deadline_earlier(times.kill, deadline_in(watchdog->kill_after));
	times.term = deadline_at(0);
	tell_guard(watchdog, times);
	eventfd_write(watchdog->lost_event, 1);
}

void watchdog_explain(const struct watchdog *watchdog, struct error *why)
{
	char text[DURATION_TEXT];

	error_set(why, EXIT_LOST, "not renewed for %s: %s",
		  duration_format(text,
				  clock_ms() - watchdog->lock->grant.started),
		  watchdog->failures > 0 ? watchdog->last.text
					 : "redlock itself was stopped");
}

/* Of the last good round; a title stands, so it names moments. */
static void show_lease(const struct lock *lock)
{
	int64_t renewed = clock_wall_ms() - (clock_ms() - lock->grant.started);
	char from[CLOCK_TEXT], until[CLOCK_TEXT];

	title_set("%s: held, renewed %s, lease until %s", lock->names.key.data,
		  clock_format(from, renewed),
		  clock_format(until, renewed + lock->grant.lease));
}

static bool has_title(const struct watchdog *watchdog)
{
	return watchdog->guard != NULL && watchdog->index == 0;
}

static void note_renewal(struct watchdog *watchdog)
{
	char text[DURATION_TEXT];

	tell_guard(watchdog, plan(watchdog));
	pthread_mutex_lock(&watchdog->mutex);
	watchdog->renewals++;
	pthread_mutex_unlock(&watchdog->mutex);
	if (has_title(watchdog))
		show_lease(watchdog->lock);
	log_step("%s: renewed, %s left", watchdog->lock->names.key.data,
		 duration_format(text,
				 deadline_left(watchdog->lock->grant.valid)));
}

/* A round with the servers, and what follows from it. False: it is over. */
static bool renew(struct watchdog *watchdog, int interrupt)
{
	struct lock *lock = watchdog->lock;
	struct deadline round = deadline_in(lock->ballot.quorum->timeout);
	struct error latest = {0};
	enum lock_result result;

	watchdog->began = clock_ms();
	if (deadline_passed(watchdog->end)) {
		watchdog_explain(watchdog, &latest);
		lose(watchdog, &latest);
		return false;
	}
	result = lock_extend(
		lock,
		(struct wait){deadline_earlier(watchdog->end, round),
			      interrupt},
		&latest);
	if (result == LOCK_INTERRUPTED)
		return false;
	if (result == LOCK_NOT_HELD) {
		lose(watchdog, &latest);
		return false;
	}
	if (result == LOCK_OK && !deadline_passed(watchdog->end)) {
		watchdog->failures = 0;
		watchdog->end = plan(watchdog).term;
		watchdog->next = renewal_due(watchdog);
		note_renewal(watchdog);
		return true;
	}
	log_step("%s: not renewed: %s", lock->names.key.data, latest.text);
	/* a round that was cut short tells less than the one before */
	if (watchdog->failures == 0 || round.at <= watchdog->end.at)
		watchdog->last = latest;
	quorum_renew_silent(lock->ballot.quorum);
	watchdog->next = watchdog->failures++ == 0
				 ? deadline_in(0)
				 : deadline_in(lease_retry(lock->grant.lease));
	return true;
}

static struct deadline next_round(const struct watchdog *watchdog)
{
	return deadline_earlier(watchdog->next, watchdog->end);
}

/* When to make a round that somebody else has asked for. Not while answers to the last
 * one are on their way: those that come after the next has begun are not heard. */
static struct deadline soon(const struct watchdog *watchdog)
{
	const struct quorum *quorum = watchdog->lock->ballot.quorum;

	return deadline_at(watchdog->began +
			   (quorum_is_idle(quorum) ? APART : quorum->timeout));
}

/* False if it was interrupted. */
static bool await_round(struct watchdog *watchdog, int interrupt)
{
	enum gathered gathered;

	do {
		struct wait wait = {next_round(watchdog), interrupt};

		gathered = lock_idle(watchdog->lock, wait);
		if (gathered == GATHER_CERTAIN)
			watchdog->next = deadline_earlier(watchdog->next,
							  soon(watchdog));
	} while (gathered == GATHER_CERTAIN);
	return gathered == GATHER_OVER;
}

static void *run(void *argument)
{
	struct watchdog *watchdog = argument;

	while (await_round(watchdog, watchdog->stop) &&
	       renew(watchdog, watchdog->stop))
		;
	deadline_end_thread();
	return NULL;
}

bool watchdog_watch(struct watchdog *watchdog, int interrupt)
{
	while (await_round(watchdog, interrupt))
		if (!renew(watchdog, -1))
			return false;
	return true;
}

void watchdog_init(struct watchdog *watchdog, struct lock *lock,
		   struct guard *guard, size_t index, int64_t kill_after)
{
	*watchdog = (struct watchdog){
		.lock = lock,
		.guard = guard,
		.index = index,
		.kill_after = kill_after,
		.stop = -1,
		.lost_event = -1,
	};
	watchdog->end = plan(watchdog).term;
	watchdog->next = renewal_due(watchdog);
	if (lock_misses_servers(lock))
		watchdog->next = deadline_earlier(watchdog->next,
						  deadline_in(FIRST_CALL));
	watchdog->due = quorum_is_idle(lock->ballot.quorum) ? watchdog->next
							    : deadline_at(0);
	if (lock->listening.open)
		watchdog->due = deadline_earlier(watchdog->due,
						 deadline_in(LISTEN_AFTER));
	pthread_mutex_init(&watchdog->mutex, NULL);
	if (has_title(watchdog) && title_is_set())
		show_lease(lock);
}

static int open_event(int *fd)
{
	if (*fd < 0)
		*fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return *fd;
}

int watchdog_start(struct watchdog *watchdog)
{
	int result;

	if (open_event(&watchdog->stop) < 0 ||
	    open_event(&watchdog->lost_event) < 0)
		return errno;
	result = threads_start(&watchdog->thread, run, watchdog);
	watchdog->running = result == 0;
	if (watchdog->running)
		watchdog->due = deadline_never();
	return result;
}

void watchdog_act(struct watchdog *watchdog)
{
	int cause;

	if (!deadline_passed(watchdog->due))
		return;
	cause = watchdog_start(watchdog);
	watchdog->due = deadline_never();
	if (cause == 0)
		return;
	log_step("no thread to renew the lock: %s", strerror(cause));
	if (!deadline_passed(next_round(watchdog)) || renew(watchdog, -1))
		watchdog->due = next_round(watchdog);
}

struct deadline watchdog_due(const struct watchdog *watchdog)
{
	return watchdog->due;
}

int watchdog_fd(const struct watchdog *watchdog)
{
	return watchdog->lost_event;
}

bool watchdog_lost(struct watchdog *watchdog, struct error *why)
{
	bool lost;

	pthread_mutex_lock(&watchdog->mutex);
	lost = watchdog->lost;
	if (lost)
		*why = watchdog->why;
	pthread_mutex_unlock(&watchdog->mutex);
	return lost;
}

static void close_event(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void watchdog_stop(struct watchdog *watchdog)
{
	if (watchdog->running) {
		eventfd_write(watchdog->stop, 1);
		pthread_join(watchdog->thread, NULL);
	}
	watchdog->running = false;
	close_event(&watchdog->stop);
	close_event(&watchdog->lost_event);
}
