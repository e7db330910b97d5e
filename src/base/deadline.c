#include "base/deadline.h"

#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define POLL_LONGEST 1000 /* ms, without a timer */
#define FEW 8             /* descriptors */

static _Thread_local int timer = -1;

/* all: room for these and one more. */
static int poll_beside_timer(struct pollfd *all, struct pollfd *polled,
			     nfds_t count)
{
	int ready;

	memcpy(all, polled, count * sizeof(*polled));
	all[count] = (struct pollfd){.fd = timer, .events = POLLIN};
	ready = poll(all, count + 1, -1);
	memcpy(polled, all, count * sizeof(*polled));
	return ready > 0 && all[count].revents != 0 ? ready - 1 : ready;
}

/* A function of its own: of a smaller stack fewer pages are touched. */
__attribute__((noinline)) static int poll_many(struct pollfd *polled,
					       nfds_t count)
{
	struct pollfd all[DEADLINE_POLL_MAX + 1];

	return poll_beside_timer(all, polled, count);
}

static int poll_with_timer(struct pollfd *polled, nfds_t count,
			   struct deadline until)
{
	struct pollfd all[FEW + 1];
	struct itimerspec at = {
		.it_value = {.tv_sec = until.at / 1000,
			     .tv_nsec = (long)(until.at % 1000 * 1000000)},
	};

	if (timer < 0)
		timer = timerfd_create(CLOCK_BOOTTIME,
				       TFD_CLOEXEC | TFD_NONBLOCK);
	if (timer < 0 || count > DEADLINE_POLL_MAX ||
	    timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL) < 0)
		return poll(polled, count, POLL_LONGEST);
	return count <= FEW ? poll_beside_timer(all, polled, count)
			    : poll_many(polled, count);
}

int deadline_poll(struct pollfd *polled, nfds_t count, struct deadline until)
{
	int64_t left = deadline_left(until);

	if (left == INT64_MAX)
		return poll(polled, count, -1);
	if (left <= POLL_LONGEST)
		return poll(polled, count, (int)left);
	return poll_with_timer(polled, count, until);
}

void deadline_after_fork(void)
{
	timer = -1;
}

void deadline_end_thread(void)
{
	if (timer >= 0)
		close(timer);
	timer = -1;
}
