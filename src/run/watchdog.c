#include "run/watchdog.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/title.h"

#define WATCHDOG_STACK ((size_t)512 << 10) /* where memory is limited */

#define KILL_SHARE 6 /* of a short lease, between SIGTERM and SIGKILL */

struct guard_times watchdog_plan(const struct lock *lock, int64_t kill_after)
{
	int64_t most = lock->lease / KILL_SHARE;
	int64_t between = lock->lease < lock->ttl && most < kill_after
				  ? most
				  : kill_after;

	return guard_plan(lock->valid, guard_margin(lock->lease), between);
}

static struct guard_times plan(const struct watchdog *watchdog)
{
	return watchdog_plan(watchdog->lock, watchdog->kill_after);
}

/* Says that the lock is lost, and has COMMAND stopped. */
static void lose(struct watchdog *watchdog, const struct error *why)
{
	struct guard_times times = plan(watchdog);

	pthread_mutex_lock(&watchdog->mutex);
	watchdog->lost = true;
	watchdog->why = *why;
	pthread_mutex_unlock(&watchdog->mutex);
	times.kill =
		deadline_earlier(times.kill, deadline_in(watchdog->kill_after));
	times.term = deadline_at(0);
	guard_tell(watchdog->guard, times);
	eventfd_write(watchdog->lost_event, 1);
}

static void lose_by_silence(struct watchdog *watchdog, const struct error *last,
			    int64_t since)
{
	struct error why;
	char text[DURATION_TEXT];

	error_set(&why, EXIT_LOST, "not renewed for %s: %s",
		  duration_format(text, clock_ms() - since),
		  last->text[0] ? last->text : "redlock itself was stopped");
	lose(watchdog, &why);
}

/* Of the last good round; a title stands, so it names moments. */
static void show_lease(const struct lock *lock)
{
	int64_t renewed = clock_wall_ms() - (clock_ms() - lock->started);
	char from[CLOCK_TEXT], until[CLOCK_TEXT];

	title_set("%s: held, renewed %s, lease until %s", lock->key.data,
		  clock_format(from, renewed),
		  clock_format(until, renewed + lock->lease));
}

static void note_renewal(struct watchdog *watchdog)
{
	char text[DURATION_TEXT];

	guard_tell(watchdog->guard, plan(watchdog));
	pthread_mutex_lock(&watchdog->mutex);
	watchdog->renewals++;
	pthread_mutex_unlock(&watchdog->mutex);
	show_lease(watchdog->lock);
	log_step("renewed, %s left",
		 duration_format(text, deadline_left(watchdog->lock->valid)));
}

/* A round with the servers, and what follows from it. False: it is over. */
static bool renew(struct watchdog *watchdog)
{
	struct lock *lock = watchdog->lock;
	struct deadline round = deadline_in(lock->quorum->timeout);
	struct error latest = {0};
	enum lock_result result;

	if (deadline_passed(watchdog->end)) {
		lose_by_silence(watchdog, &watchdog->last, lock->started);
		return false;
	}
	result = lock_extend(lock, deadline_earlier(watchdog->end, round),
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
		watchdog->next = deadline_at(lock->started + lock->ttl / 3);
		note_renewal(watchdog);
		return true;
	}
	log_step("not renewed: %s", latest.text);
	/* a round that was cut short tells less than the one before */
	if (watchdog->failures == 0 || round.at <= watchdog->end.at)
		watchdog->last = latest;
	quorum_renew_silent(lock->quorum);
	watchdog->next = watchdog->failures++ == 0
				 ? deadline_in(0)
				 : deadline_in(lock->lease / 10);
	return true;
}

static struct deadline next_round(const struct watchdog *watchdog)
{
	return deadline_earlier(watchdog->next, watchdog->end);
}

static void *run(void *argument)
{
	struct watchdog *watchdog = argument;

	while (lock_idle(watchdog->lock, next_round(watchdog)) !=
		       GATHER_INTERRUPTED &&
	       renew(watchdog))
		;
	return NULL;
}

void watchdog_init(struct watchdog *watchdog, struct lock *lock,
		   struct guard *guard, int64_t kill_after)
{
	*watchdog = (struct watchdog){
		.lock = lock,
		.guard = guard,
		.kill_after = kill_after,
		.due = quorum_is_idle(lock->quorum) ? lock->renew
						    : deadline_at(0),
		.next = lock->renew,
		.stop = -1,
		.lost_event = -1,
	};
	watchdog->end = plan(watchdog).term;
	pthread_mutex_init(&watchdog->mutex, NULL);
	lock->quorum->interrupt = -1;
	if (title_is_set())
		show_lease(lock);
}

static int open_event(int *fd)
{
	if (*fd < 0)
		*fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return *fd;
}

/* 0, or an errno. */
static int start_thread(struct watchdog *watchdog)
{
	struct signals_mask before;
	pthread_attr_t attributes;
	int result;

	if (open_event(&watchdog->stop) < 0 ||
	    open_event(&watchdog->lost_event) < 0)
		return errno;
	watchdog->lock->quorum->interrupt = watchdog->stop;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, WATCHDOG_STACK);
	signals_block_all(&before);
	result = pthread_create(&watchdog->thread, &attributes, run, watchdog);
	signals_unblock(&before);
	pthread_attr_destroy(&attributes);
	watchdog->running = result == 0;
	if (!watchdog->running)
		watchdog->lock->quorum->interrupt = -1;
	return result;
}

void watchdog_act(struct watchdog *watchdog)
{
	int cause;

	if (!deadline_passed(watchdog->due))
		return;
	cause = start_thread(watchdog);
	watchdog->due = deadline_never();
	if (cause == 0)
		return;
	log_step("no thread to renew the lock: %s", strerror(cause));
	if (!deadline_passed(next_round(watchdog)) || renew(watchdog))
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

void watchdog_stop(struct watchdog *watchdog)
{
	if (watchdog->running) {
		eventfd_write(watchdog->stop, 1);
		pthread_join(watchdog->thread, NULL);
	}
	watchdog->lock->quorum->interrupt = -1;
	watchdog->running = false;
	if (watchdog->stop >= 0)
		close(watchdog->stop);
	if (watchdog->lost_event >= 0)
		close(watchdog->lost_event);
}
