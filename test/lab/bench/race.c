/*
 * race: what command lines cost, one beside the other.
 *
 *	race [-n ROUNDS] [-w ROUNDS] [-j JOBS] [-s SEED] [-o]
 *	     ::: [@EVERY] COMMAND ... [::+ COMMAND ...] [::: ...]
 *
 * In each round every contestant (after a ":::") has its turn, in an order
 * that is drawn anew; one with @EVERY only in each EVERY-th round.  -w rounds
 * come first and are not printed.  A turn is the contestant's commands, one
 * after the other, or with -j so many processes of its one command at once.
 * In arguments {n} is the number of the process among these (from 0), {turn} a
 * number that no other turn has, and {out} the first line that the command
 * before has printed.  A line for each turn, when all is over:
 *
 *	CONTESTANT WALL CPU RSS START
 *
 * WALL is from before the first process is made to the end of the last one, and
 * CPU what these and all their descendants took, both in nanoseconds; RSS is
 * the largest peak of any of them, in kB.  With -o a turn prints a time in
 * nanoseconds of CLOCK_MONOTONIC, and START is when that was, in nanoseconds of
 * the turn; without it it is -1.
 *
 * Processes are made by posix_spawn from a small program, so that what the
 * runner costs is small and the same for all.  It is the reaper of orphans: of
 * what a contestant leaves behind the CPU counts, too, though not the time.
 * The first command that fails, or leaves a process for longer than
 * LEFT_LONGEST, ends the race with status 1.
 */
#define _GNU_SOURCE 1

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CONTESTANTS_MAX 64
#define JOBS_MAX 10000
#define ARGUMENTS_MAX 256
#define ARGUMENT_LONGEST 4096
#define LEFT_LONGEST 5 /* seconds */

extern char **environ;

static struct contestant {
	char **words; /* with ::+ between the commands, NULL after the last */
	int every;
} contestants[CONTESTANTS_MAX];

struct turn {
	int contestant;
	int64_t wall, cpu, start;
	long rss;
};

static int jobs = 1, null_fd;
static bool wants_start;
static long turn_number;

static int64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int64_t ns_of(struct timeval time)
{
	return (int64_t)time.tv_sec * 1000000000 + time.tv_usec * 1000;
}

/* The word with its {...} filled in; it is the caller's to free. */
static char *fill_in(const char *word, int job, const char *output)
{
	char filled[ARGUMENT_LONGEST], number[32];
	size_t used = 0;

	while (*word != '\0') {
		const char *text = NULL;

		if (strncmp(word, "{n}", 3) == 0) {
			snprintf(number, sizeof(number), "%d", job);
			text = number;
		} else if (strncmp(word, "{turn}", 6) == 0) {
			snprintf(number, sizeof(number), "%ld", turn_number);
			text = number;
		} else if (strncmp(word, "{out}", 5) == 0) {
			text = output;
		}
		if (used + (text == NULL ? 1 : strlen(text)) >= sizeof(filled))
			errx(64, "an argument is too long");
		if (text == NULL) {
			filled[used++] = *word++;
			continue;
		}
		memcpy(filled + used, text, strlen(text));
		used += strlen(text);
		word = strchr(word, '}') + 1;
	}
	filled[used] = '\0';
	return strdup(filled);
}

/* The command that begins at words; where the next one begins, or NULL. */
static char **fill_command(char **words, int job, const char *output,
			   char *argv[ARGUMENTS_MAX])
{
	int count = 0;

	for (; *words != NULL && strcmp(*words, "::+") != 0; words++) {
		if (count == ARGUMENTS_MAX - 1)
			errx(64, "too many arguments");
		argv[count++] = fill_in(*words, job, output);
	}
	argv[count] = NULL;
	if (count == 0)
		errx(64, "a command is missing");
	return *words == NULL ? NULL : words + 1;
}

static pid_t spawn(char *argv[], int output_fd)
{
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int error;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, null_fd, 0);
	posix_spawn_file_actions_adddup2(&actions, output_fd, 1);
	error = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error != 0)
		errx(1, "%s: %s", argv[0], strerror(error));
	return pid;
}

static void count_in(struct turn *turn, const struct rusage *usage)
{
	turn->cpu += ns_of(usage->ru_utime) + ns_of(usage->ru_stime);
	if (usage->ru_maxrss > turn->rss)
		turn->rss = usage->ru_maxrss;
}

/* Until these have ended, whoever ends besides. */
static void await(struct turn *turn, const pid_t *pids, int count)
{
	int left = count;

	while (left > 0) {
		struct rusage usage;
		int status;
		pid_t pid = wait4(-1, &status, 0, &usage);

		if (pid < 0)
			err(1, "wait4");
		count_in(turn, &usage);
		for (int i = 0; i < count; i++) {
			if (pids[i] != pid)
				continue;
			left--;
			if (status != 0)
				errx(1, "contestant %d ended with %s %d",
				     turn->contestant,
				     WIFEXITED(status) ? "status" : "signal",
				     WIFEXITED(status) ? WEXITSTATUS(status)
						       : WTERMSIG(status));
			break;
		}
	}
}

static void await_orphans(struct turn *turn)
{
	int64_t end = now() + (int64_t)LEFT_LONGEST * 1000000000;

	for (;;) {
		struct rusage usage;
		pid_t pid = wait4(-1, NULL, WNOHANG, &usage);

		if (pid < 0 && errno == ECHILD)
			return;
		if (pid > 0) {
			count_in(turn, &usage);
			continue;
		}
		if (now() > end)
			errx(1, "contestant %d has left a process",
			     turn->contestant);
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	}
}

static void first_line(int fd, char line[ARGUMENT_LONGEST])
{
	ssize_t got = read(fd, line, ARGUMENT_LONGEST - 1);

	line[got > 0 ? got : 0] = '\0';
	line[strcspn(line, "\n")] = '\0';
}

static void run_steps(struct turn *turn, char **words)
{
	char output[ARGUMENT_LONGEST] = "", *argv[ARGUMENTS_MAX];
	int64_t begin = now();

	while (words != NULL) {
		int ends[2] = {-1, null_fd};
		char **next = fill_command(words, 0, output, argv);
		bool keeps = next != NULL || wants_start;
		pid_t pid;

		if (keeps && pipe2(ends, O_CLOEXEC | O_NONBLOCK))
			err(1, "pipe2");
		pid = spawn(argv, ends[1]);
		await(turn, &pid, 1);
		turn->wall = now() - begin;
		for (int i = 0; argv[i] != NULL; i++)
			free(argv[i]);
		if (keeps) {
			first_line(ends[0], output);
			close(ends[0]);
			close(ends[1]);
		}
		words = next;
	}
	if (wants_start)
		turn->start = atoll(output) - begin;
}

static void run_crowd(struct turn *turn, char **words)
{
	static pid_t pids[JOBS_MAX];
	char *argv[ARGUMENTS_MAX];
	int64_t begin = now();

	for (int i = 0; i < jobs; i++) {
		if (fill_command(words, i, "", argv) != NULL)
			errx(64, "-j is for single commands");
		pids[i] = spawn(argv, null_fd);
		for (int k = 0; argv[k] != NULL; k++)
			free(argv[k]);
	}
	await(turn, pids, jobs);
	turn->wall = now() - begin;
}

static struct turn take_turn(int contestant)
{
	struct turn turn = {.contestant = contestant, .start = -1};

	turn_number++;
	if (jobs > 1)
		run_crowd(&turn, contestants[contestant].words);
	else
		run_steps(&turn, contestants[contestant].words);
	await_orphans(&turn);
	return turn;
}

static int read_contestants(char **words)
{
	int count = 0;

	while (*words != NULL) {
		struct contestant *one = &contestants[count++];

		*words++ = NULL; /* the ":::" ends the one before */
		one->every = 1;
		if (*words != NULL && **words == '@')
			one->every = atoi(*words++ + 1);
		one->words = words;
		if (one->every < 1 || count == CONTESTANTS_MAX)
			errx(64,
			     "@EVERY is a number from 1, and there are "
			     "less than %d contestants",
			     CONTESTANTS_MAX);
		while (*words != NULL && strcmp(*words, ":::") != 0)
			words++;
	}
	return count;
}

static void shuffle(int *order, int count)
{
	for (int i = count - 1; i > 0; i--) {
		int other = (int)(random() % (i + 1)), kept = order[i];

		order[i] = order[other];
		order[other] = kept;
	}
}

static void race(int count, int warm, int rounds)
{
	struct turn *turns =
		calloc((size_t)rounds * (size_t)count + 1, sizeof(*turns));
	int order[CONTESTANTS_MAX];
	size_t used = 0;

	if (turns == NULL)
		err(1, "calloc");
	for (int i = 0; i < count; i++)
		order[i] = i;
	for (int round = -warm; round < rounds; round++) {
		shuffle(order, count);
		for (int i = 0; i < count; i++) {
			if (round % contestants[order[i]].every != 0)
				continue;
			turns[used] = take_turn(order[i]);
			used += round >= 0;
		}
	}
	for (size_t i = 0; i < used; i++)
		printf("%d %lld %lld %ld %lld\n", turns[i].contestant,
		       (long long)turns[i].wall, (long long)turns[i].cpu,
		       turns[i].rss, (long long)turns[i].start);
	free(turns);
}

int main(int argc, char *argv[])
{
	int rounds = 10, warm = 0, option, count;

	while ((option = getopt(argc, argv, "+n:w:j:s:o")) != -1) {
		switch (option) {
		case 'n':
			rounds = atoi(optarg);
			break;
		case 'w':
			warm = atoi(optarg);
			break;
		case 'j':
			jobs = atoi(optarg);
			break;
		case 's':
			srandom((unsigned)strtoul(optarg, NULL, 10));
			break;
		case 'o':
			wants_start = true;
			break;
		default:
			return 64;
		}
	}
	if (optind == argc || strcmp(argv[optind], ":::") != 0 || rounds < 1 ||
	    jobs < 1 || jobs > JOBS_MAX || (jobs > 1 && wants_start))
		errx(64, "usage: race [-n ROUNDS] [-w ROUNDS] [-j JOBS] "
			 "[-s SEED] [-o] ::: [@EVERY] COMMAND ... ::: ...");
	count = read_contestants(argv + optind);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
		err(1, "/dev/null");
	race(count, warm, rounds);
	return 0;
}
