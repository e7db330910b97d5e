/*
 * Moments, and the time until them, in ms on CLOCK_BOOTTIME. Like a lease, it runs on
 * while a machine is suspended, and nobody can set it.
 *
 * Everything that may block takes a struct deadline. A reading is rounded
 * down, so a lease counted from it ends early, never late.
 */
#ifndef BASE_DEADLINE_H
#define BASE_DEADLINE_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

struct deadline {
	int64_t at; /* ms since boot */
};

static inline int64_t clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The wall clock: for people and as the start of fences, never for leases. */
static inline int64_t clock_wall_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static inline struct deadline deadline_at(int64_t at)
{
	return (struct deadline){at};
}

static inline struct deadline deadline_in(int64_t ms)
{
	return deadline_at(clock_ms() + ms);
}

static inline struct deadline deadline_never(void)
{
	return deadline_at(INT64_MAX);
}

static inline struct deadline deadline_earlier(struct deadline a,
					       struct deadline b)
{
	return a.at < b.at ? a : b;
}

static inline struct deadline deadline_later(struct deadline a,
					     struct deadline b)
{
	return a.at > b.at ? a : b;
}

static inline bool deadline_passed(struct deadline deadline)
{
	return deadline.at != INT64_MAX && clock_ms() >= deadline.at;
}

/* ms left, 0 once it has passed */
static inline int64_t deadline_left(struct deadline deadline)
{
	int64_t left;

	if (deadline.at == INT64_MAX)
		return INT64_MAX;
	left = deadline.at - clock_ms();
	return left > 0 ? left : 0;
}

/* How long to wait, and what may end it sooner. */
struct wait {
	struct deadline until;
	int interrupt; /* readable: give up at once; -1: nothing ends it */
};

static inline struct wait wait_until(struct deadline until)
{
	return (struct wait){until, -1};
}

static inline struct wait wait_earlier(struct wait wait, struct deadline until)
{
	wait.until = deadline_earlier(wait.until, until);
	return wait;
}

#define DEADLINE_POLL_MAX 600 /* descriptors */

/*
 * poll(2) until the deadline; what poll returns. poll's own clock stands still
 * while a machine is suspended; so a long sleep has a timer on CLOCK_BOOTTIME
 * beside it (timerfd_create(2)), which wakes it when the machine does.
 */
int deadline_poll(struct pollfd *polled, nfds_t count, struct deadline until);

/* In a forked child that has closed its descriptors. */
void deadline_after_fork(void);

/* The last act of a thread that has polled. */
void deadline_end_thread(void);

/* A random number of ms from 0 to limit, for a pause with full jitter. */
static inline int64_t deadline_jitter(int64_t limit)
{
	if (limit <= 0)
		return 0;
	return arc4random_uniform(
		(uint32_t)(limit < UINT32_MAX - 1 ? limit + 1 : UINT32_MAX));
}

#endif
