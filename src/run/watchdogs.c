#include "run/watchdogs.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/alloc.h"

static struct watchdog *at(const struct watchdogs *watchdogs, size_t i)
{
	return i == 0 ? (struct watchdog *)&watchdogs->first
		      : &watchdogs->others[i - 1];
}

void watchdogs_init(struct watchdogs *watchdogs, struct lock *const *locks,
		    size_t count, struct guard *guard, int64_t kill_after)
{
	watchdogs->count = count;
	watchdogs->others =
		count < 2 ? NULL
			  : xcalloc(count - 1, sizeof(*watchdogs->others));
	for (size_t i = 0; i < count; i++)
		watchdog_init(at(watchdogs, i), locks[i], guard, i, kill_after);
}

struct deadline watchdogs_due(const struct watchdogs *watchdogs)
{
	struct deadline due = deadline_never();

	for (size_t i = 0; i < watchdogs->count; i++)
		due = deadline_earlier(due, watchdog_due(at(watchdogs, i)));
	return due;
}

void watchdogs_act(struct watchdogs *watchdogs)
{
	for (size_t i = 0; i < watchdogs->count; i++)
		watchdog_act(at(watchdogs, i));
}

int watchdogs_start(struct watchdogs *watchdogs, size_t but)
{
	int cause = 0;

	for (size_t i = but; i < watchdogs->count && cause == 0; i++)
		cause = watchdog_start(at(watchdogs, i));
	return cause;
}

void watchdogs_poll(const struct watchdogs *watchdogs, struct pollfd *polled)
{
	for (size_t i = 0; i < watchdogs->count; i++)
		polled[i].fd = watchdog_fd(at(watchdogs, i));
}

int watchdogs_interrupt(const struct watchdogs *watchdogs, int interrupt)
{
	struct epoll_event event = {.events = EPOLLIN};
	int events = epoll_create1(EPOLL_CLOEXEC);

	if (events >= 0 &&
	    epoll_ctl(events, EPOLL_CTL_ADD, interrupt, &event) < 0) {
		close(events);
		return -1;
	}
	for (size_t i = 0; i < watchdogs->count; i++)
		epoll_ctl(events, EPOLL_CTL_ADD, watchdog_fd(at(watchdogs, i)),
			  &event);
	return events;
}

const struct lock *watchdogs_lost(struct watchdogs *watchdogs,
				  struct error *why)
{
	for (size_t i = 0; i < watchdogs->count; i++)
		if (!watchdogs->parted[i] &&
		    watchdog_lost(at(watchdogs, i), why))
			return at(watchdogs, i)->lock;
	return NULL;
}

size_t watchdogs_part(struct watchdogs *watchdogs, const struct lock *lost)
{
	size_t i = 0;

	while (at(watchdogs, i)->lock != lost)
		i++;
	watchdog_stop(at(watchdogs, i));
	watchdogs->parted[i] = true;
	return i;
}

const struct lock *watchdogs_explain(const struct watchdogs *watchdogs,
				     struct error *why)
{
	const struct watchdog *first = &watchdogs->first;

	for (size_t i = 1; i < watchdogs->count; i++)
		if (at(watchdogs, i)->lock->grant.valid.at <
		    first->lock->grant.valid.at)
			first = at(watchdogs, i);
	watchdog_explain(first, why);
	return first->lock;
}

unsigned watchdogs_renewals(const struct watchdogs *watchdogs)
{
	unsigned renewals = 0;

	for (size_t i = 0; i < watchdogs->count; i++)
		renewals += at(watchdogs, i)->renewals;
	return renewals;
}

void watchdogs_stop(struct watchdogs *watchdogs)
{
	for (size_t i = 0; i < watchdogs->count; i++)
		watchdog_stop(at(watchdogs, i));
}

void watchdogs_release(struct watchdogs *watchdogs)
{
	free(watchdogs->others);
	*watchdogs = (struct watchdogs){0};
}
