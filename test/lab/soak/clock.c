/*
 * clock: a wall clock that can be set and made to run fast or slow, for one
 * process: LD_PRELOAD=clock.so CLOCK=FILE ...
 *
 * FILE holds three int64: an offset (ns), a rate (parts per million faster than
 * it is) and the moment since when it has this rate (ns, by the true clock). It
 * is mapped: a change is felt at once, by all that have it. Other clocks than
 * CLOCK_REALTIME are let alone. Nothing here allocates: malloc itself may ask
 * for the time.
 */
#define _GNU_SOURCE 1

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct setting {
	int64_t offset, rate, since;
};

static const volatile struct setting *setting;

__attribute__((constructor)) static void clock_open(void)
{
	const char *path = getenv("CLOCK");
	void *map;
	int fd;

	if (path == NULL)
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		abort();
	map = mmap(NULL, sizeof(*setting), PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		abort();
	close(fd);
	setting = map;
}

static int64_t wall(void)
{
	struct timespec ts;
	int64_t at;

	syscall(SYS_clock_gettime, CLOCK_REALTIME, &ts);
	at = (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
	if (setting == NULL)
		return at;
	return at + setting->offset +
	       (at - setting->since) / 1000 * setting->rate / 1000;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	int64_t at;

	if (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)
		return (int)syscall(SYS_clock_gettime, id, ts);
	at = wall();
	ts->tv_sec = (time_t)(at / 1000000000);
	ts->tv_nsec = (long)(at % 1000000000);
	return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	int64_t at = wall();

	(void)zone;
	tv->tv_sec = (time_t)(at / 1000000000);
	tv->tv_usec = (long)(at % 1000000000 / 1000);
	return 0;
}

time_t time(time_t *result)
{
	time_t at = (time_t)(wall() / 1000000000);

	if (result != NULL)
		*result = at;
	return at;
}
