#include "stands.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#include "base/deadline.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/threads.h"
#include "base/title.h"
#include "net/local.h"
#include "net/stream.h"
#include "net/tls_load.h"
#include "network.h"
#include "run/watchdog.h"
#include "server/drain.h"
#include "server/last_place.h"

#define DRAIN_TIME 100 /* ms (drain.c) */

/* --- clocks and chance ----------------------------------------------------- */

int __wrap_clock_gettime(clockid_t id, struct timespec *time);
int __wrap_gethostname(char *name, size_t size);
pid_t __wrap_getppid(void);
char *__wrap_getenv(const char *name);
uid_t __wrap_getuid(void);
int __wrap_eventfd(unsigned count, int flags);
int __wrap_eventfd_write(int fd, uint64_t value);
int __wrap_close(int fd);
int __real_close(int fd);
int __wrap_pthread_join(pthread_t thread, void **result);

int __wrap_clock_gettime(clockid_t id, struct timespec *time)
{
	const struct process *process = world_process();
	int64_t now;

	if (process == NULL)
		abort();
	now = clock_read(id == CLOCK_REALTIME ? &process->wall
					      : &process->boot);
	*time = (struct timespec){now / SECOND, now % SECOND * 1000};
	world_trap();
	return 0;
}

/* In place of the C library's. */
void arc4random_buf(void *data, size_t size)
{
	struct process *process = world_process();

	for (size_t i = 0; i < size; i++)
		((uint8_t *)data)[i] =
			(uint8_t)(chance_draw(&process->chance) >> 32);
}

uint32_t arc4random_uniform(uint32_t limit)
{
	return limit > 0 ? (uint32_t)(chance_draw(&world_process()->chance) %
				      limit)
			 : 0;
}

pid_t __wrap_getppid(void)
{
	return 1;
}

int __wrap_gethostname(char *name, size_t size)
{
	snprintf(name, size, "host%zu", world_process()->host);
	return 0;
}

char *__wrap_getenv(const char *name)
{
	(void)name;
	return NULL;
}

uid_t __wrap_getuid(void)
{
	return 1000;
}

/* --- events and threads ---------------------------------------------------- */

int __wrap_eventfd(unsigned count, int flags)
{
	(void)count;
	(void)flags;
	return network_event();
}

int __wrap_eventfd_write(int fd, uint64_t value)
{
	(void)value;
	network_signal(fd);
	return 0;
}

int __wrap_close(int fd)
{
	if (fd < FD_FIRST)
		return __real_close(fd); /* of the simulator itself */
	network_close(fd, false);
	return 0;
}

/* A pthread_t is the fiber. */
int threads_start(pthread_t *thread, void *(*run)(void *), void *argument)
{
	*thread = (pthread_t)world_thread(run, argument);
	return 0;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
	(void)result;
	world_join((struct fiber *)thread);
	return 0;
}

struct call {
	void (*act)(void *context, size_t i);
	void *context;
	size_t i;
};

static void *run_call(void *argument)
{
	const struct call *call = argument;

	call->act(call->context, call->i);
	return NULL;
}

void threads_each(size_t count, void (*act)(void *context, size_t i),
		  void *context)
{
	struct call calls[LOCKS_MOST];
	struct fiber *fibers[LOCKS_MOST];

	for (size_t i = 1; i < count; i++) {
		calls[i] = (struct call){act, context, i};
		fibers[i] = world_thread(run_call, &calls[i]);
	}
	if (count > 0)
		act(context, 0);
	for (size_t i = 1; i < count; i++)
		world_join(fibers[i]);
}

void deadline_end_thread(void)
{
}

void deadline_after_fork(void)
{
}

static int look(struct pollfd *polled, nfds_t count)
{
	int ready = 0;

	for (nfds_t i = 0; i < count; i++) {
		polled[i].revents = 0;
		if (polled[i].fd < 0)
			continue;
		polled[i].revents = network_ready(
			polled[i].fd, polled[i].events, world_fiber());
		ready += polled[i].revents != 0;
	}
	return ready;
}

/* What it polls no longer may wake it no longer. */
static void look_away(const struct pollfd *polled, nfds_t count)
{
	struct pollfd none;

	for (nfds_t i = 0; i < count; i++) {
		none = polled[i];
		if (none.fd >= 0 && network_connection(none.fd) != NULL)
			network_ready(none.fd, 0, NULL);
	}
}

int deadline_poll(struct pollfd *polled, nfds_t count, struct deadline until)
{
	const struct clock *clock = &world_process()->boot;
	int ready;

	world_trap();
	while ((ready = look(polled, count)) == 0 &&
	       (until.at == INT64_MAX || clock_read(clock) < until.at * MS))
		world_wait(until.at == INT64_MAX
				   ? INT64_MAX
				   : clock_when(clock, until.at * MS));
	look_away(polled, count);
	return ready;
}

/* --- signals, titles, the guard -------------------------------------------- */

bool signals_tell_to_end(void)
{
	return false;
}

bool signals_have_come(int fd)
{
	return fd >= 0 && network_ready(fd, POLLIN, NULL) != 0;
}

bool title_is_set(void)
{
	return false;
}

void title_set(const char *format, ...)
{
	(void)format;
}

static void note_earliest(struct stand_guard *stand)
{
	stand->times = stand->guard.times[0];
	for (size_t i = 1; i < stand->guard.locks; i++)
		stand->times = lease_times_earlier(stand->times,
						   stand->guard.times[i]);
}

void stand_entrust(struct stand_guard *stand, struct lock *const *locks,
		   size_t count, int64_t kill_after)
{
	stand->guard.locks = count;
	for (size_t i = 0; i < count; i++)
		stand->guard.times[i] = watchdog_plan(locks[i], kill_after);
	note_earliest(stand);
}

void guard_tell(struct guard *guard, size_t lock, struct lease_times times)
{
	struct stand_guard *stand = (struct stand_guard *)guard;

	guard->times[lock] = times;
	note_earliest(stand);
	stand->told(stand->context);
}

/* --- what is said ---------------------------------------------------------- */

static void tell(const char *format, va_list arguments)
{
	const struct process *process = world_process();
	char who[32], text[600];

	snprintf(who, sizeof(who), "client %zu", process->number);
	vsnprintf(text, sizeof(text), format, arguments);
	world_tell(who, "  %s", text);
}

void log_step(const char *format, ...)
{
	va_list arguments;

	if (!world_tells)
		return;
	va_start(arguments, format);
	tell(format, arguments);
	va_end(arguments);
}

void log_notice(const char *format, ...) __attribute__((alias("log_step")));
void log_error(const char *format, ...) __attribute__((alias("log_step")));

void log_hurry(bool hurry)
{
	(void)hurry;
}

bool log_is_verbose(void)
{
	return world_tells;
}

bool log_is_quiet(void)
{
	return false;
}

bool log_is_live(void)
{
	return false;
}

void log_live(const char *name, const char *who, const char *times,
	      const char *rest)
{
	(void)name;
	(void)who;
	(void)times;
	(void)rest;
}

void log_live_end(void)
{
}

/* --- what the last process found: of this host ----------------------------- */

static struct {
	char name[200], word[LAST_PLACE_WORD];
	int64_t at;
} words[HOSTS_MOST];

void last_place_init(struct last_place *last, const char *what,
		     const char *name)
{
	*last = (struct last_place){0};
	snprintf(last->path, sizeof(last->path), "%.20s %.80s", what, name);
}

int last_place_read(struct last_place *last, unsigned slot,
		    struct endpoint *endpoint)
{
	(void)last;
	(void)slot;
	(void)endpoint;
	return -1;
}

void last_place_write(struct last_place *last, unsigned slot,
		      const struct endpoint *endpoint)
{
	(void)last;
	(void)slot;
	(void)endpoint;
}

int last_place_read_word(struct last_place *last, char word[LAST_PLACE_WORD])
{
	const struct process *process = world_process();

	if (strcmp(words[process->host].name, last->path) != 0)
		return -1;
	last->age =
		(clock_read(&process->wall) - words[process->host].at) / SECOND;
	if (last->age < 0)
		return -1;
	strlcpy(word, words[process->host].word, LAST_PLACE_WORD);
	return 0;
}

void last_place_write_word(struct last_place *last, const char *word)
{
	const struct process *process = world_process();
	size_t host = process->host;

	strlcpy(words[host].name, last->path, sizeof(words[host].name));
	strlcpy(words[host].word, word, sizeof(words[host].word));
	words[host].at = clock_read(&process->wall);
}

/* --- what is there, and what is not ---------------------------------------- */

/* As drain.c does, which forks for it. */
void drain_connections(struct quorum *quorum)
{
	quorum_drain(quorum, 0);
	if (quorum_may_lose(quorum))
		quorum_drain(quorum, DRAIN_TIME);
}

int signals_open(void)
{
	return -1;
}

int local_resolve(struct url *url, struct error *error)
{
	(void)url;
	(void)error;
	abort();
}

void local_start_again(void)
{
	abort();
}

int tls_load(const struct tls_settings *settings, struct error *error)
{
	(void)settings;
	(void)error;
	abort();
}

/* --- streams --------------------------------------------------------------- */

void stream_init(struct stream *stream)
{
	*stream = (struct stream){.fd = -1};
}

static void shut(struct stream *stream, bool reset)
{
	if (stream->fd >= 0)
		network_close(stream->fd, reset);
	stream->fd = -1;
	stream->state = STREAM_DOWN;
}

void stream_close(struct stream *stream)
{
	shut(stream, false);
}

void stream_reset(struct stream *stream)
{
	shut(stream, true);
}

void stream_leave(struct stream *stream)
{
	shut(stream, false);
}

const char *stream_open(struct stream *stream, const struct endpoint *at,
			bool tls)
{
	world_trap();
	if (tls || at->port == 0 || at->port > node_count)
		abort();
	stream_close(stream);
	stream->error = 0;
	stream->fd = network_connect(at->port - 1U);
	stream->state = STREAM_CONNECTING;
	return NULL;
}

const char *stream_step(struct stream *stream, short revents)
{
	(void)revents;
	if (stream->state != STREAM_CONNECTING)
		return NULL;
	switch (network_state(stream->fd, &stream->error)) {
	case LINK_UP:
		stream->state = STREAM_UP;
		break;
	case LINK_FAILED:
		shut(stream, false);
		return strerror(stream->error);
	default:
		break;
	}
	return NULL;
}

int stream_fd(const struct stream *stream)
{
	return stream->fd;
}

short stream_events(const struct stream *stream, bool output)
{
	return stream->state == STREAM_CONNECTING ? POLLOUT
	       : output                           ? POLLIN | POLLOUT
						  : POLLIN;
}

struct deadline stream_wake(const struct stream *stream)
{
	(void)stream;
	return deadline_never();
}

ssize_t stream_receive(struct stream *stream, void *data, size_t size)
{
	world_trap();
	return network_receive(stream->fd, data, size);
}

ssize_t stream_send(struct stream *stream, const void *data, size_t size)
{
	world_trap();
	return network_send(stream->fd, data, size);
}

const char *stream_why(struct stream *stream)
{
	stream->error = errno;
	return strerror(errno);
}

size_t stream_backlog(const struct stream *stream, int64_t ms)
{
	(void)stream;
	(void)ms;
	return 0;
}

int stream_address(const struct stream *stream, char *text, size_t size)
{
	(void)stream;
	snprintf(text, size, "10.0.0.1");
	return 0;
}
