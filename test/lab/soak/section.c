/*
 * section: what runs under a lock in a soak, and the resource that it protects.
 *
 *	section [-t] [-c] [-l] MS [COMMAND [ARGUMENT...]]
 *
 * Its first act is the line `enter`, its last one `leave`. In between, for MS
 * milliseconds, it proves every millisecond that it is alive, in a shared
 * mapping that survives SIGKILL, and writes to the resource every few: a file
 * with the largest fence that it has seen, which refuses a smaller one. COMMAND
 * is a wish of its own (a nested redlock), that it waits for.
 *
 * -t ignores SIGTERM; -c has a child that lives as long; -l is for a lock that
 * nobody renews: it leaves a quarter of the ttl before the end of the validity,
 * and does not enter after that.
 *
 * From the environment: SOAK_DIR (with log, beats and the resources), SOAK_ID,
 * SOAK_KEY, SOAK_KIND, SOAK_LIMIT, SOAK_TTL (ms), for -l SOAK_UNTIL (a file), for
 * COMMAND SOAK_INNER (its id). SOAK_ALSO is for several keys at once, "ID=KEY ...":
 * each of them is a section of its own, with the fence that REDLOCK_FENCES has.
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
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TOO_LATE 69 /* the lock was over before anything began */

/* One for each id, at its place in the file; the driver reads it. */
struct slot {
	volatile int64_t last, pid, wanted, ended, group;
	char token[96];
};

/* A key, its resource and its section. */
struct part {
	char id[24], key[64], fence[32];
	int resource;
};

#define PARTS_MOST 4

static const char *dir;
static struct part parts[PARTS_MOST];
static int part_count, log_fd, until_fd = -1;
static int64_t margin;

static int64_t now(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_BOOTTIME, &ts))
		err(71, "clock_gettime");
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static const char *setting(const char *name)
{
	const char *value = getenv(name);

	if (value == NULL)
		errx(64, "%s is not set", name);
	return value;
}

static int open_in(const char *name, int flags)
{
	char path[PATH_MAX];
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >=
	    (int)sizeof(path))
		errx(64, "%s: too long", dir);
	fd = open(path, flags | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		err(71, "%s", path);
	return fd;
}

__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...)
{
	char line[512];
	va_list values;
	int length = snprintf(line, sizeof(line), "%lld ", (long long)now());

	va_start(values, format);
	length += vsnprintf(line + length, sizeof(line) - (size_t)length,
			    format, values);
	va_end(values);
	if (length >= (int)sizeof(line))
		errx(70, "a line that is too long");
	if (write(log_fd, line, (size_t)length) != length)
		err(71, "log");
}

static struct slot *slot_of(const char *number)
{
	off_t place = (off_t)(strtoul(number, NULL, 10) * sizeof(struct slot));
	off_t page = place & ~(off_t)4095;
	int fd = open_in("beats", O_RDWR);
	char *map =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, page);

	if (map == MAP_FAILED)
		err(71, "beats");
	close(fd);
	return (struct slot *)(map + (place - page));
}

/* When a lock that nobody renews is not to be relied on any more. */
static int64_t limit(void)
{
	static int64_t known = INT64_MAX;
	char text[32] = "";

	/* shorter while it is being replaced */
	if (until_fd >= 0 && pread(until_fd, text, 20, 0) == 20)
		known = strtoll(text, NULL, 10) - margin;
	return known;
}

/* The lock on the file keeps judgement and line together. */
static void write_resource(const struct part *part)
{
	long long largest = 0, mine = strtoll(part->fence, NULL, 10);
	char text[32] = "";
	bool accepted;

	while (flock(part->resource, LOCK_EX))
		if (errno != EINTR)
			err(71, "flock");
	if (pread(part->resource, text, 20, 0) > 0)
		largest = strtoll(text, NULL, 10);
	accepted = mine >= largest && now() < limit();
	if (accepted) {
		snprintf(text, sizeof(text), "%020lld", mine);
		if (pwrite(part->resource, text, 20, 0) != 20)
			err(71, "resource");
	}
	tell("write id=%s key=%s fence=%s accepted=%d\n", part->id, part->key,
	     part->fence, accepted);
	flock(part->resource, LOCK_UN);
}

static void live(struct slot *slot, int64_t duration, bool writes)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	int64_t at = now(), end = at + duration, next = at;

	while (at < end && at < limit()) {
		slot->last = at;
		if (writes && at >= next) {
			for (int i = 0; i < part_count; i++)
				write_resource(&parts[i]);
			next = at + (duration < 500000000 ? 15 : 200) * 1000000;
		}
		nanosleep(&pause, NULL);
		at = now();
	}
}

static pid_t start_child(struct slot *slot, int64_t duration)
{
	pid_t pid = fork();

	if (pid == 0) {
		live(slot, duration, false);
		_exit(0);
	}
	return pid;
}

/* Its wish and its end are told here: nobody else sees them. */
static void run_inner(char *argv[])
{
	const char *inner = setting("SOAK_INNER");
	struct slot *slot = slot_of(inner);
	int status;
	pid_t pid;

	tell("want id=%s key=%s kind=%s limit=%s ttl=%s wait=1 owner=%s\n",
	     inner, parts[0].key, setting("SOAK_KIND"), setting("SOAK_LIMIT"),
	     setting("SOAK_TTL"), setting("REDLOCK_TOKEN"));
	slot->wanted = 1;
	pid = fork();
	if (pid < 0)
		err(71, "fork");
	if (pid == 0) {
		setenv("SOAK_ID", inner, 1);
		execv(argv[0], argv);
		err(71, "%s", argv[0]);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			err(71, "waitpid");
	tell("end id=%s status=%d\n", inner,
	     WIFSIGNALED(status) ? 128 + WTERMSIG(status)
				 : WEXITSTATUS(status));
	slot->ended = 1;
}

static void add_part(const char *id, const char *key, const char *fence)
{
	struct part *part = &parts[part_count++];
	char name[80];

	snprintf(part->id, sizeof(part->id), "%s", id);
	snprintf(part->key, sizeof(part->key), "%s", key);
	snprintf(part->fence, sizeof(part->fence), "%s", fence);
	snprintf(name, sizeof(name), "resource.%s", key);
	part->resource = open_in(name, O_RDWR);
}

/* The fence of each of the others is that of its key. */
static void read_parts(void)
{
	const char *also = getenv("SOAK_ALSO"), *fences;
	char id[24], key[64], other[64] = "", fence[32];
	int length;

	add_part(setting("SOAK_ID"), setting("SOAK_KEY"),
		 setting("REDLOCK_FENCE"));
	for (; also != NULL && part_count < PARTS_MOST &&
	       sscanf(also, " %23[0-9]=%63s%n", id, key, &length) == 2;
	     also += length) {
		fences = setting("REDLOCK_FENCES");
		while (sscanf(fences, " %63[^=]=%31s%n", other, fence,
			      &length) == 2 &&
		       strcmp(other, key) != 0)
			fences += length;
		if (strcmp(other, key) != 0)
			errx(70, "no fence of %s", key);
		add_part(id, key, fence);
		sscanf(also, " %*[0-9]=%*s%n", &length);
	}
}

static void enter(const struct slot *slot)
{
	for (int i = 0; i < part_count; i++)
		tell("enter id=%s key=%s kind=%s limit=%s fence=%s token=%s "
		     "pid=%d\n",
		     parts[i].id, parts[i].key, setting("SOAK_KIND"),
		     setting("SOAK_LIMIT"), parts[i].fence,
		     i == 0 ? slot->token : "", (int)getpid());
}

int main(int argc, char **argv)
{
	bool child = false;
	struct slot *slot;
	int64_t duration;

	dir = setting("SOAK_DIR");
	log_fd = open_in("log", O_WRONLY | O_APPEND);
	read_parts();
	slot = slot_of(parts[0].id);
	while (argc-- > 1 && **++argv == '-') {
		if (!strcmp(*argv, "-t"))
			signal(SIGTERM, SIG_IGN);
		else if (!strcmp(*argv, "-c"))
			child = true;
		else if (!strcmp(*argv, "-l"))
			until_fd = open(setting("SOAK_UNTIL"), O_RDONLY);
	}
	if (argc < 1)
		errx(64, "usage: section [-t] [-c] [-l] MS [COMMAND...]");
	margin = strtoll(setting("SOAK_TTL"), NULL, 10) * 1000000 / 4;
	if (now() >= limit())
		return TOO_LATE;
	snprintf(slot->token, sizeof(slot->token), "%s",
		 setting("REDLOCK_TOKEN"));
	slot->last = now();
	slot->group = getpgrp();
	slot->pid = getpid();
	enter(slot);
	duration = strtoll(argv[0], NULL, 10) * 1000000;
	if (child)
		start_child(slot, duration);
	live(slot, duration / 2, true);
	if (argv[1] != NULL)
		run_inner(argv + 1);
	live(slot, duration / 2, true);
	while (wait(NULL) > 0)
		;
	for (int i = 0; i < part_count; i++)
		tell("leave id=%s\n", parts[i].id);
	return 0;
}
