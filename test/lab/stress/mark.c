/*
 * mark: the command that runs under a lock in bench and stress, and its
 * witness.
 *
 *	mark [-n SLOTS | -s] [-d MICROSECONDS] [-i ID] FILE...
 *
 * The kernel is the witness: it takes one of SLOTS (1) files FILE.0, FILE.1 ...
 * with flock(LOCK_EX | LOCK_NB), with -s the first one with LOCK_SH, and keeps
 * it until it ends.  FILE gets two lines, each by one write to its end:
 *
 *	S TIME ID FENCE TOKEN SLOT	the first thing it did; SLOT is -1 where
 *					all slots were taken: an overlap
 *	E TIME ID FENCE TOKEN SLOT	the last thing, unless it was killed
 *
 * TIME is in microseconds of CLOCK_REALTIME, which is the clock of MONITOR.
 * FENCE is REDLOCK_FENCE, or that of the key whose name follows the last dot of
 * FILE, if REDLOCK_FENCES has it.
 */
#define _GNU_SOURCE 1

#include <sys/file.h>

#include <err.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FILES_MOST 8

static int64_t now(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_REALTIME, &ts))
		err(71, "clock_gettime");
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value == NULL || *value == '\0' ? "0" : value;
}

/* FILE's key may be one of several; its fence is written there. */
static void fence_find(const char *file, char *fence, size_t size)
{
	const char *at = variable("REDLOCK_FENCES");
	const char *key = strrchr(file, '.') ? strrchr(file, '.') + 1 : file;
	size_t length = strlen(key);

	snprintf(fence, size, "%s", variable("REDLOCK_FENCE"));
	for (; *at != '\0'; at += strcspn(at, " "), at += strspn(at, " "))
		if (strncmp(at, key, length) == 0 && at[length] == '=')
			snprintf(fence, size, "%.*s",
				 (int)strcspn(at + length + 1, " "),
				 at + length + 1);
}

static void note(const char *file, char what, int64_t time, const char *id,
		 int slot)
{
	int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	char fence[32];

	if (fd < 0)
		err(71, "%s", file);
	fence_find(file, fence, sizeof(fence));
	dprintf(fd, "%c %lld %s %s %s %d\n", what, (long long)time, id, fence,
		variable("REDLOCK_TOKEN"), slot);
	close(fd);
}

static int slot_take(const char *file, int slots, int how)
{
	char path[PATH_MAX];

	for (int i = 0; i < slots; i++) {
		int fd;

		if (snprintf(path, sizeof(path), "%s.%d", file, i) >=
		    (int)sizeof(path))
			errx(64, "%s: too long", file);
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
		if (fd < 0)
			err(71, "%s", path);
		if (flock(fd, how | LOCK_NB) == 0)
			return i; /* it stays open until we end */
		close(fd);
	}
	return -1;
}

int main(int argc, char *argv[])
{
	int64_t started = now();
	int64_t pause = 0, ended;
	int slots = 1, how = LOCK_EX, slot[FILES_MOST], count = 0;
	const char *id = "-", *option;

	while ((option = *++argv) != NULL && *option == '-') {
		if (strcmp(option, "-s") == 0) {
			how = LOCK_SH;
			continue;
		}
		if (*++argv == NULL)
			break;
		if (strcmp(option, "-n") == 0)
			slots = atoi(*argv);
		else if (strcmp(option, "-d") == 0)
			pause = atoll(*argv);
		else if (strcmp(option, "-i") == 0)
			id = *argv;
	}
	while (argc >= 2 && argv[count] != NULL)
		count++;
	if (count == 0 || count > FILES_MOST)
		errx(64, "usage: mark [-n SLOTS | -s] [-d MICROSECONDS] "
			 "[-i ID] FILE...");
	for (int i = 0; i < count; i++) {
		slot[i] = slot_take(argv[i], slots, how);
		note(argv[i], 'S', started, id, slot[i]);
	}
	if (pause > 0)
		nanosleep(&(struct timespec){(time_t)(pause / 1000000),
					     (long)(pause % 1000000 * 1000)},
			  NULL);
	ended = now();
	for (int i = 0; i < count; i++)
		note(argv[i], 'E', ended, id, slot[i]);
	return 0;
}
