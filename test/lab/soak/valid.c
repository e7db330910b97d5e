/*
 * valid: until when redlock itself says that its lock is good, written to the
 * soak's log: LD_PRELOAD=valid.so SOAK_DIR=... SOAK_ID=... redlock
 * SOAK_ALSO has the ids of its other keys (section.c): what is said is of them, too.
 *
 * run: what the guard goes by. Its orders come by its pipe, and each of them has
 * the end of the validity (src/run/guard.h).
 *
 * acquire: valid_ms in what it prints. Where SOAK_UNTIL names a file, this is
 * written there, too, for the section.
 *
 * The guard gets a processor as soon as it wants one, where that is permitted: it
 * has no promise to keep on a machine that starves it, and tests run on such.
 *
 * valid_ms is counted from a moment after the one that redlock counted from: by
 * as long as the system kept it from running in between, the end that is written
 * is later than redlock's own.
 */
#define _GNU_SOURCE 1

#include <sys/prctl.h>
#include <sys/syscall.h>

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "run/guard.h"

static char log_path[256], until_path[256], ids[128];
static bool told;

__attribute__((constructor)) static void valid_open(void)
{
	const char *dir = getenv("SOAK_DIR"), *number = getenv("SOAK_ID");
	const char *also = getenv("SOAK_ALSO");
	const char *until = getenv("SOAK_UNTIL");

	if (dir == NULL || number == NULL)
		return;
	snprintf(log_path, sizeof(log_path), "%s/log", dir);
	snprintf(until_path, sizeof(until_path), "%s", until ? until : "");
	snprintf(ids, sizeof(ids), "%s %s", number, also ? also : "");
}

static int64_t now(void)
{
	struct timespec ts;

	syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void put(const char *path, int flags, const char *text, int length)
{
	long fd = syscall(SYS_openat, AT_FDCWD, path,
			  O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);

	if (fd < 0 || syscall(SYS_write, fd, text, length) != length)
		abort();
	syscall(SYS_close, fd);
}

static void tell(int64_t until)
{
	int64_t at = now();
	char line[128];

	for (const char *id = ids; *id != '\0';
	     id += strcspn(id, " "), id += strspn(id, " ")) {
		int length = snprintf(
			line, sizeof(line), "%lld valid id=%lu until=%lld\n",
			(long long)at, strtoul(id, NULL, 10), (long long)until);

		put(log_path, O_APPEND, line, length);
	}
	told = true;
}

static bool is_guard(void)
{
	char name[16] = "";

	if (log_path[0] == '\0')
		return false;
	syscall(SYS_prctl, PR_GET_NAME, name);
	return strcmp(name, "lease-guard") == 0;
}

ssize_t read(int fd, void *data, size_t size)
{
	ssize_t got = syscall(SYS_read, fd, data, size);
	struct sched_param first = {.sched_priority = 1};
	struct guard_orders orders;

	if (fd == 0 && size == sizeof(orders) && got == (ssize_t)size &&
	    is_guard()) {
		memcpy(&orders, data, sizeof(orders));
		if (!told)
			sched_setscheduler(0, SCHED_FIFO, &first);
		tell(orders.times.end.at * 1000000);
	}
	return got;
}

ssize_t write(int fd, const void *data, size_t size)
{
	const char *found;
	char text[32];

	/* a pipe is opened anew, so it need not be standard output's descriptor */
	if (log_path[0] != '\0' && !told &&
	    (found = memmem(data, size, "\"valid_ms\":", 11)) != NULL) {
		int64_t until = now() + strtoll(found + 11, NULL, 10) * 1000000;

		tell(until);
		snprintf(text, sizeof(text), "%020lld", (long long)until);
		if (until_path[0] != '\0')
			put(until_path, 0, text, 20);
	}
	return syscall(SYS_write, fd, data, size);
}
