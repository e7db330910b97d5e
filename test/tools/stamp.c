/*
 * stamp: the command that tests run under a lock, and their witness.
 *
 *	stamp [-t] [-d MS] [-u FILE] [-c CHILDREN] [-x STATUS] DIR
 *
 * It leaves its traces in DIR, for the checks in test/helper.bash:
 *
 *	beats.FENCE.PID	two int64 in the machine's byte order, microseconds of
 *			CLOCK_BOOTTIME: the first and the last proof of life,
 *			written each millisecond to a shared mapping, which
 *			survives SIGKILL
 *	witness		locked with flock(LOCK_EX | LOCK_NB); children keep
 *			the description open, so it is held until all are dead
 *	overlap		a line for each refusal of that lock
 *	fences		a line "FENCE PID FIRST-BEAT" for each start, in order
 *
 * It ends after MS milliseconds (60000 unless told) or when FILE exists, with
 * STATUS.  -t ignores SIGTERM, here and in the children; a child beats in a
 * slot of its own and ends by the same rules.
 */
#define _GNU_SOURCE 1

#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct slot {
	volatile int64_t first, last;
};

struct plan {
	const char *dir, *until, *fence;
	int64_t duration;
	long children;
	int status;
};

static int64_t now(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_BOOTTIME, &ts))
		err(71, "clock_gettime");
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static int open_in(const char *dir, const char *name, int flags)
{
	char path[PATH_MAX];
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >=
	    (int)sizeof(path))
		errx(64, "%s: too long", dir);
	fd = open(path, flags | O_CREAT, 0666);
	if (fd < 0)
		err(71, "%s", path);
	return fd;
}

/* One write to a file opened with O_APPEND: lines of rivals do not mix. */
static void append(const struct plan *plan, const char *name, int64_t at)
{
	int fd = open_in(plan->dir, name, O_WRONLY | O_APPEND | O_CLOEXEC);

	if (dprintf(fd, "%s %ld %lld\n", plan->fence, (long)getpid(),
		    (long long)at) < 0)
		err(71, "%s", name);
	close(fd);
}

static struct slot *slot_new(const struct plan *plan)
{
	char name[128];
	void *map;
	int fd;

	snprintf(name, sizeof(name), "beats.%.64s.%ld", plan->fence,
		 (long)getpid());
	fd = open_in(plan->dir, name, O_RDWR | O_CLOEXEC);
	if (ftruncate(fd, sizeof(struct slot)))
		err(71, "%s", name);
	map = mmap(NULL, sizeof(struct slot), PROT_READ | PROT_WRITE,
		   MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		err(71, "%s", name);
	close(fd);
	return map;
}

static void beat(const struct plan *plan, struct slot *slot)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	int64_t end = now() + plan->duration;

	do {
		slot->last = now();
		if (!slot->first)
			slot->first = slot->last;
		if (plan->until && !access(plan->until, F_OK))
			return;
		nanosleep(&pause, NULL);
	} while (now() < end);
}

static void child_start(const struct plan *plan)
{
	switch (fork()) {
	case -1:
		err(71, "fork");
	case 0:
		beat(plan, slot_new(plan));
		_exit(0);
	default:
		break;
	}
}

static long number(const char *text, long max)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (end == text || *end || errno || value < 0 || value > max)
		errx(64, "bad number \"%s\"", text);
	return value;
}

static _Noreturn void usage(void)
{
	errx(64, "usage: stamp [-t] [-d MS] [-u FILE] [-c CHILDREN] "
		 "[-x STATUS] DIR");
}

static struct plan plan_from(char *argv[])
{
	struct plan plan = {.duration = 60000000};
	const char *option, *value;

	while ((option = *++argv) && *option == '-') {
		if (!strcmp(option, "-t")) {
			signal(SIGTERM, SIG_IGN);
			continue;
		}
		value = *++argv;
		if (!value)
			usage();
		else if (!strcmp(option, "-c"))
			plan.children = number(value, 100);
		else if (!strcmp(option, "-d"))
			plan.duration = number(value, 600000) * 1000;
		else if (!strcmp(option, "-u"))
			plan.until = value;
		else if (!strcmp(option, "-x"))
			plan.status = (int)number(value, 255);
		else
			usage();
	}
	plan.dir = argv[0];
	if (!plan.dir || argv[1])
		usage();
	plan.fence = getenv("REDLOCK_FENCE");
	if (!plan.fence)
		plan.fence = "0";
	return plan;
}

int main(int argc, char *argv[])
{
	struct plan plan;
	struct slot *slot;
	int witness;
	long i;

	if (argc < 2)
		usage();
	plan = plan_from(argv);
	witness = open_in(plan.dir, "witness", O_RDWR | O_CLOEXEC);
	if (flock(witness, LOCK_EX | LOCK_NB))
		append(&plan, "overlap", now());
	slot = slot_new(&plan);
	slot->first = slot->last = now();
	append(&plan, "fences", slot->first);
	for (i = 0; i < plan.children; i++)
		child_start(&plan);
	beat(&plan, slot);
	while (wait(NULL) > 0)
		;
	return plan.status;
}
