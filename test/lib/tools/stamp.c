/*
 * stamp: the command that tests run under a lock, and their witness.
 *
 *	stamp [-s] [-t] [-d MS] [-u FILE] [-c CHILDREN] [-g MS] [-p PLACES]
 *	      [-x STATUS] DIR
 *	stamp -l DIR
 *
 * It leaves its traces in DIR, for the checks in test/lib/helper.bash:
 *
 *	beats.FENCE.PID	two int64 in the machine's byte order, microseconds of
 *			CLOCK_BOOTTIME: the first and the last proof of life,
 *			written each millisecond (where there are many children
 *			more seldom) to a shared mapping, which survives SIGKILL
 *	witness		locked with flock(LOCK_EX | LOCK_NB), or LOCK_SH with
 *			-s; children keep the description open, so it is held
 *			until all are dead
 *	witness.N	with -p, from 1 to PLACES: any one of them is locked
 *			instead, behind the lock of witness
 *	overlap		a line for each refusal of that lock
 *	fences		a line "FENCE PID FIRST-BEAT" for each start, in order
 *
 * It ends after MS milliseconds (60000 unless told) or when FILE exists, with
 * STATUS.  -t ignores SIGTERM, here and in the children; a child beats in a
 * slot of its own and ends by the same rules.  With -g a child has a session of its
 * own and lives that long only; a child of its own takes its slot over, and so on:
 * a chain of processes, and each has lost its parent.
 *
 * -l lists who has lived there: lines "FENCE FIRST LAST PID", by FIRST.
 */
#define _GNU_SOURCE 1

#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
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
	int64_t duration, generation;
	long children, places;
	bool shared;
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

/* Whether it has still to live. */
static bool beat(const struct plan *plan, struct slot *slot, int64_t end)
{
	/* a hundred of them leave the machine some time */
	const struct timespec pause = {.tv_nsec = 1000000 *
						  (1 + plan->children / 20)};
	unsigned beats = 0;

	do {
		slot->last = now();
		if (!slot->first)
			slot->first = slot->last;
		if (plan->until && beats++ % 8 == 0 &&
		    !access(plan->until, F_OK))
			return false;
		nanosleep(&pause, NULL);
	} while (slot->last < end);
	return true;
}

static _Noreturn void live(const struct plan *plan)
{
	struct slot *slot = slot_new(plan);
	int64_t end = now() + plan->duration, next = end;

	do {
		if (plan->generation) {
			setsid();
			next = now() + plan->generation;
		}
		if (!beat(plan, slot, next < end ? next : end))
			break;
		if (next < end && fork() != 0)
			break;
	} while (now() < end);
	_exit(0);
}

static void child_start(const struct plan *plan)
{
	switch (fork()) {
	case -1:
		err(71, "fork");
	case 0:
		live(plan);
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

static bool try_lock(const char *dir, const char *name, int how)
{
	int fd = open_in(dir, name, O_RDWR | O_CLOEXEC);

	if (flock(fd, how | LOCK_NB) == 0)
		return true;
	close(fd);
	return false;
}

/* One of the places.  Nobody else looks for one meanwhile: where all are taken,
 * they were all taken at one moment. */
static bool take_place(const struct plan *plan)
{
	int gate = open_in(plan->dir, "witness", O_RDWR | O_CLOEXEC);
	bool taken = false;
	char name[32];

	while (flock(gate, LOCK_EX))
		if (errno != EINTR)
			err(71, "flock");
	for (long i = 1; i <= plan->places && !taken; i++) {
		snprintf(name, sizeof(name), "witness.%ld", i);
		taken = try_lock(plan->dir, name, LOCK_EX);
	}
	close(gate);
	return taken;
}

/* What the lock should keep others from: they are seen by the kernel. */
static bool is_alone(const struct plan *plan)
{
	if (plan->places > 0)
		return take_place(plan);
	return try_lock(plan->dir, "witness", plan->shared ? LOCK_SH : LOCK_EX);
}

/* --- who has lived ------------------------------------------------------- */

struct life {
	struct slot slot;
	char fence[80];
	long pid;
};

static int by_first(const void *a, const void *b)
{
	int64_t first = ((const struct life *)a)->slot.first;
	int64_t second = ((const struct life *)b)->slot.first;

	return (first > second) - (first < second);
}

/* False where nobody has lived yet. */
static bool read_life(struct life *life, const char *dir, const char *name)
{
	int fd;
	bool whole;

	if (sscanf(name, "beats.%79[^.].%ld", life->fence, &life->pid) != 2)
		return false;
	fd = open_in(dir, name, O_RDONLY | O_CLOEXEC);
	whole = read(fd, &life->slot, sizeof(life->slot)) ==
		(ssize_t)sizeof(life->slot);
	close(fd);
	return whole && life->slot.first > 0;
}

static int list(const char *path)
{
	DIR *dir = opendir(path);
	struct life *lives = NULL;
	struct dirent *entry;
	size_t count = 0;

	while (dir && (entry = readdir(dir))) {
		lives = reallocarray(lives, count + 1, sizeof(*lives));
		if (!lives)
			err(71, "%s", path);
		count += read_life(&lives[count], path, entry->d_name);
	}
	if (count > 0)
		qsort(lives, count, sizeof(*lives), by_first);
	for (size_t i = 0; i < count; i++)
		printf("%s %lld %lld %ld\n", lives[i].fence,
		       (long long)lives[i].slot.first,
		       (long long)lives[i].slot.last, lives[i].pid);
	if (dir)
		closedir(dir);
	free(lives);
	return 0;
}

static _Noreturn void usage(void)
{
	errx(64, "usage: stamp [-s] [-t] [-d MS] [-u FILE] [-c CHILDREN] "
		 "[-g MS] [-p PLACES] [-x STATUS] DIR\n       stamp -l DIR");
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
		if (!strcmp(option, "-s")) {
			plan.shared = true;
			continue;
		}
		value = *++argv;
		if (!value)
			usage();
		else if (!strcmp(option, "-c"))
			plan.children = number(value, 1000);
		else if (!strcmp(option, "-d"))
			plan.duration = number(value, 600000) * 1000;
		else if (!strcmp(option, "-g"))
			plan.generation = number(value, 600000) * 1000;
		else if (!strcmp(option, "-p"))
			plan.places = number(value, 100);
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
	long i;

	if (argc < 2)
		usage();
	if (argc == 3 && !strcmp(argv[1], "-l"))
		return list(argv[2]);
	plan = plan_from(argv);
	if (!is_alone(&plan))
		append(&plan, "overlap", now());
	slot = slot_new(&plan);
	slot->first = slot->last = now();
	append(&plan, "fences", slot->first);
	for (i = 0; i < plan.children; i++)
		child_start(&plan);
	beat(&plan, slot, now() + plan.duration);
	while (wait(NULL) > 0)
		;
	return plan.status;
}
