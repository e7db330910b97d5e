/*
 * Simulates redlock: its own code and its own scripts, on servers, networks and clocks
 * that misbehave, in virtual time.
 *
 *	simulate [--servers N] [--permits] [--several] [--crowds] [--peace] [--jobs N]
 *	         FIRST [LAST]
 *	simulate --trace [--drop LIST] SEED
 *	simulate --shrink SEED
 *	simulate --record FILE SEED
 *
 * A seed is a run; the same seed is the same run, byte for byte. Each seed runs in a
 * process of its own. If a promise is broken (judge.h), its line names the seed, and the
 * exit status is 1. --trace prints what happens in that run. --shrink looks for fewer
 * faults (fN) and clients (cN) with which a promise is broken still, and prints the
 * list of the others for --drop. --record writes what happens at server 0 (record.h).
 * With --permits all keys have two permits or more. With --several all are exclusive, and
 * some clients want two or three of them at once, and one may be paused between two while what it has
 * asked for comes late. With --crowds up to sixteen come at the
 * same moment, again and again, and most do not wait, or all do; some of those who rush so come from two
 * sites. With --peace nothing befalls
 * anybody, or little, and some come at the same moment to keys that are new, again and again:
 * whoever waits then without need is seen best (needless.h). Or many take nothing (redlock wait), and a
 * server is stopped now and then; or owners are several, and their releases arrive twice.
 *
 * What it finds of test/lab/mutants (make build/simulate/mutant/NAME/simulate), by the
 * first seed from 1 on that showed it at 1da40d5 (a seed is another run since;
 * simulate.bats has some of today's):
 *
 *	extend-shortens 1, validity-from-reply 1, get-then-del 2, no-drift 2, no-hearing 2,
 *	no-record 2, once-anyway 2, release-anybody 2, young-is-old 2, keeps-broken 3,
 *	extend-anybody 5, late-reply 5, stale-message 5, reads-on 7, silent-unreleased 8,
 *	slots-together 11, no-until 15, no-learning 30, no-quarantine 30, raise-always 59,
 *	short-quarantine 158, slot-unchecked 340 (with --permits 89)
 *
 * What it found of redlock itself (9994fe7), when a minority of the servers was away: 27
 * (all hosts call a key busy that nobody has), 268 (a fence that could not be raised after
 * a whole round), and with --several 665 (two keep each other from a majority, in step) and
 * 4179 (a fence that fell). When scripts and breaks were new here (2c0c77b): 173 (a release
 * that never left for a server that was a little farther away), 147 (a break that would have
 * stopped the next in line), with --several 84 (a break that calls a lock released which is
 * held), and 1200 (two owners that wait for each other). Since attempts that fail while most
 * servers are well are judged: 703 (a server that is given its vote back was called silent at
 * once), 982 (a lock that was taken away while its fence was raised: 0 of 3 gave no vote).
 *
 * What it cannot see: blind-is-empty, parents-only and no-guard (processes), hung-answer and
 * hung-message (Sentinels), unacknowledged (replicas), trusts-file (users), later-is-ours
 * (other versions).
 *
 * The modules, from below: world.h (time, chance, processes), store.h (what a Redis server
 * remembers), network.h (servers and connections), stands.h (what stands in for the
 * system under redlock), client.h (those who want a key), judge.h (what is promised),
 * needless.h (no wait without need),
 * once.h (the same of --once-in), plan.h (what a seed stands for).
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "client.h"
#include "judge.h"
#include "plan.h"

#define JOBS_MOST 64
#define RUNS_MOST 60 /* s, of this machine's, for one seed */

/* What a run hands back. */
struct outcome {
	bool whole; /* it has come to an end */
	bool violated;
	char text[300];
	uint64_t hash;
	struct figures figures;
	size_t faults[FAULT_KINDS];
	int64_t lasted; /* us of virtual time */
};

struct options {
	size_t servers, jobs;
	bool trace, shrink;
	const char *record;
	char drop[4000];
};

static struct outcome outcome;
static int outcome_fd = -1;

/* --- one run --------------------------------------------------------------- */

static void hand_back(void)
{
	outcome.whole = true;
	outcome.hash = world_hash();
	outcome.figures = figures;
	outcome.lasted = world_now;
	for (size_t i = 0; i < plan.servers; i++)
		outcome.figures.commands += store_executed(nodes[i].store);
	memcpy(outcome.faults, plan_faults, sizeof(plan_faults));
	fflush(NULL);
	if (write(outcome_fd, &outcome, sizeof(outcome)) < 0)
		_exit(2);
	scripts_hand_on(outcome_fd);
	_exit(0);
}

static void on_violation(const char *text)
{
	outcome.violated = true;
	snprintf(outcome.text, sizeof(outcome.text), "%s", text);
	hand_back();
}

static uint64_t count_commands(void)
{
	uint64_t count = 0;

	for (size_t i = 0; i < plan.servers; i++)
		count += store_executed(nodes[i].store);
	return count;
}

static void run_calm(const struct stretch *calm)
{
	uint64_t before;

	world_run(calm->settled);
	before = count_commands();
	for (int64_t at = calm->settled; at < calm->ends; at += SECOND / 2) {
		world_run(at);
		judge_waiters();
	}
	figures.calm_commands += count_commands() - before;
}

/* Nobody begins any more: all come to an end, and nothing is left. */
static void run_out(void)
{
	int64_t longest = 0;

	clients_end();
	plan.stretch[plan.stretches - 1].ends =
		INT64_MAX; /* no storm any more */
	for (size_t i = 0; i < plan.keys; i++)
		if (plan_bound(i) > longest)
			longest = plan_bound(i);
	for (int64_t n = 0; clients_busy() >= 0; n++) {
		if (n > 2 * longest / SECOND + 120)
			world_violation("client %d does not come to an end",
					clients_busy());
		world_run(world_now + SECOND);
		judge_waiters();
	}
	world_run(world_now + 2 * SECOND);
	judge_leftovers(false);
	world_run(world_now + 70 * SECOND);
	judge_leftovers(true);
}

static void drop(const char *list)
{
	char *copy = strdup(list), *at = copy, *word;

	while ((word = strsep(&at, ", ")) != NULL) {
		size_t n = strtoul(*word != '\0' ? word + 1 : "", NULL, 10);

		if (*word == 'f' && n < plan.faults)
			plan.fault[n].dropped = true;
		else if (*word == 'c' && n < plan.clients)
			plan.client[n].dropped = true;
	}
	free(copy);
}

static void run(uint64_t seed, const struct options *options)
{
	world_on_violation = on_violation;
	world_tells = options->trace;
	plan_draw(seed, options->servers);
	drop(options->drop);
	if (options->trace)
		plan_print();
	if (options->record != NULL)
		network_record = fopen(options->record, "w");
	plan_begin();
	clients_begin();
	for (size_t i = 0; i < plan.stretches; i++)
		run_calm(&plan.stretch[i]);
	run_out();
	hand_back();
}

/* --- in processes of their own --------------------------------------------- */

struct job {
	pid_t pid;
	int fd;
	uint64_t seed;
};

static void start(struct job *job, uint64_t seed, const struct options *options)
{
	const struct rlimit limit = {RUNS_MOST, RUNS_MOST + 1};
	int fds[2];

	if (pipe(fds) < 0) {
		perror("simulate");
		exit(2);
	}
	fflush(stdout);
	job->seed = seed;
	job->pid = fork();
	if (job->pid == 0) {
		close(fds[0]);
		outcome_fd = fds[1];
		setrlimit(RLIMIT_CPU, &limit);
		run(seed, options);
	}
	close(fds[1]);
	job->fd = fds[0];
}

static void end(struct job *job, struct outcome *result)
{
	int status = 0;
	ssize_t got = read(job->fd, result, sizeof(*result));

	scripts_inherit(job->fd);
	close(job->fd);
	waitpid(job->pid, &status, 0);
	if (got == (ssize_t)sizeof(*result))
		return;
	*result = (struct outcome){.violated = true};
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
		snprintf(result->text, sizeof(result->text),
			 "it takes longer than %d s", RUNS_MOST);
	else
		snprintf(result->text, sizeof(result->text),
			 "the program ends with status %x", status);
}

static struct outcome run_once(uint64_t seed, const struct options *options)
{
	struct job job;
	struct outcome result;

	start(&job, seed, options);
	end(&job, &result);
	return result;
}

/* --- many runs ------------------------------------------------------------- */

struct total {
	uint64_t seeds, violations;
	struct figures figures;
	size_t faults[FAULT_KINDS];
	int64_t lasted;
	uint64_t hash;
};

static void add(struct total *total, uint64_t seed,
		const struct outcome *result)
{
	const struct figures *figures_of = &result->figures;

	total->seeds++;
	total->hash += result->hash * (seed + 1);
	total->lasted += result->lasted;
	total->figures.grants += figures_of->grants;
	total->figures.commands += figures_of->commands;
	total->figures.refused += figures_of->refused;
	total->figures.calm_grants += figures_of->calm_grants;
	total->figures.calm_commands += figures_of->calm_commands;
	if (figures_of->longest > total->figures.longest)
		total->figures.longest = figures_of->longest;
	if (figures_of->needless > total->figures.needless)
		total->figures.needless = figures_of->needless;
	for (size_t i = 0; i < FAULT_KINDS; i++)
		total->faults[i] += result->faults[i];
	if (!result->violated)
		return;
	total->violations++;
	printf("seed %" PRIu64 ": %s\n", seed, result->text);
}

static void print_total(const struct total *total, double seconds)
{
	size_t faults = 0;

	for (size_t i = 0; i < FAULT_KINDS; i++)
		faults += total->faults[i];
	printf("%" PRIu64 " seeds, %" PRIu64 " violations, %" PRIu64
	       " hand-overs, %" PRIu64 " commands, %zu faults, %.1f h "
	       "simulated in %.1f s, hash %016" PRIx64 "\n",
	       total->seeds, total->violations, total->figures.grants,
	       total->figures.commands, faults, (double)total->lasted / 3600e6,
	       seconds, total->hash);
	for (size_t i = 0; i < FAULT_KINDS; i++)
		printf("  %-40s %zu\n", fault_names[i], total->faults[i]);
	printf("  %-40s %" PRIu64 "\n", "COMMAND has succeeded lately",
	       total->figures.refused);
	if (total->figures.calm_grants > 0)
		printf("while it is calm: %.1f commands for a hand-over, the "
		       "longest wait %.1f s\n",
		       (double)total->figures.calm_commands /
			       (double)total->figures.calm_grants,
		       (double)total->figures.longest / 1e6);
	printf("the longest wait that nothing explains %.1f s\n",
	       (double)total->figures.needless / 1e6);
}

static double seconds_now(void)
{
	struct timespec now;

	timespec_get(&now, TIME_UTC);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint64_t run_all(uint64_t first, uint64_t last,
			const struct options *options)
{
	struct job jobs[JOBS_MOST];
	struct pollfd polled[JOBS_MOST];
	struct total total = {0};
	struct outcome result;
	double began = seconds_now();
	size_t count = 0;

	for (uint64_t seed = first; seed <= last || count > 0;) {
		while (seed <= last && count < options->jobs)
			start(&jobs[count++], seed++, options);
		for (size_t i = 0; i < count; i++)
			polled[i] = (struct pollfd){jobs[i].fd, POLLIN, 0};
		if (poll(polled, count, -1) < 0 && errno != EINTR)
			exit(2);
		for (size_t i = count; i-- > 0;) {
			if (polled[i].revents == 0)
				continue;
			end(&jobs[i], &result);
			add(&total, jobs[i].seed, &result);
			jobs[i] = jobs[--count];
		}
	}
	print_total(&total, seconds_now() - began);
	return total.violations;
}

/* --- fewer faults ---------------------------------------------------------- */

static bool fails_without(uint64_t seed, struct options *options,
			  const char *more)
{
	size_t length = strlen(options->drop);

	snprintf(options->drop + length, sizeof(options->drop) - length, "%s",
		 more);
	if (run_once(seed, options).violated)
		return true;
	options->drop[length] = '\0';
	return false;
}

/* Of one kind (f or c) first half of them, then a quarter, and at last one by
 * one. */
static void shrink_kind(uint64_t seed, struct options *options, char kind,
			size_t count)
{
	for (size_t part = count / 2; part > 0; part /= 2)
		for (size_t i = 0; i < count; i += part) {
			struct buffer more = {0};

			for (size_t k = i; k < i + part && k < count; k++)
				buffer_print(&more, "%c%zu,", kind, k);
			if (strstr(options->drop, more.data) == NULL)
				fails_without(seed, options, more.data);
			buffer_release(&more);
		}
}

static int shrink(uint64_t seed, struct options *options)
{
	struct outcome result = run_once(seed, options);

	if (!result.violated) {
		printf("seed %" PRIu64 " keeps all promises\n", seed);
		return 0;
	}
	plan_draw(seed, options->servers);
	for (int i = 0; i < 2; i++) {
		shrink_kind(seed, options, 'f', plan.faults);
		shrink_kind(seed, options, 'c', plan.clients);
	}
	result = run_once(seed, options);
	printf("seed %" PRIu64 ": %s\n--trace --drop %s %" PRIu64 "\n", seed,
	       result.text, options->drop, seed);
	return 1;
}

/* --- the command line ------------------------------------------------------ */

static void fail_usage(void)
{
	fprintf(stderr, "usage: simulate [--servers N] [--permits] [--several] "
			"[--crowds] [--peace] [--jobs N] FIRST [LAST]\n"
			"       simulate --trace [--drop LIST] SEED\n"
			"       simulate --shrink SEED\n"
			"       simulate --record FILE SEED\n");
	exit(64);
}

static void read_options(int argc, char **argv, struct options *options)
{
	static const struct option names[] = {
		{"servers", required_argument, NULL, 's'},
		{"permits", no_argument, NULL, 'p'},
		{"several", no_argument, NULL, 'm'},
		{"crowds", no_argument, NULL, 'c'},
		{"peace", no_argument, NULL, 'q'},
		{"jobs", required_argument, NULL, 'j'},
		{"drop", required_argument, NULL, 'd'},
		{"trace", no_argument, NULL, 't'},
		{"record", required_argument, NULL, 'r'},
		{"shrink", no_argument, NULL, 'k'},
		{NULL, 0, NULL, 0},
	};
	int option;

	*options = (struct options){.jobs = 1};
	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (option == 's')
			options->servers = strtoul(optarg, NULL, 10);
		else if (option == 'p')
			plan_permits = true;
		else if (option == 'm')
			plan_several = true;
		else if (option == 'c')
			plan_crowds = true;
		else if (option == 'q')
			plan_peace = true;
		else if (option == 'j')
			options->jobs = strtoul(optarg, NULL, 10);
		else if (option == 'd')
			snprintf(options->drop, sizeof(options->drop), "%s",
				 optarg);
		else if (option == 't')
			options->trace = true;
		else if (option == 'r')
			options->record = optarg;
		else if (option == 'k')
			options->shrink = true;
		else
			fail_usage();
	}
	if (options->servers > NODES_MOST || options->jobs < 1 ||
	    options->jobs > JOBS_MOST || optind == argc || argc - optind > 2)
		fail_usage();
}

int main(int argc, char **argv)
{
	struct options options;
	struct outcome result;
	uint64_t first, last;

	read_options(argc, argv, &options);
	first = strtoull(argv[optind], NULL, 10);
	last = argc - optind == 2 ? strtoull(argv[optind + 1], NULL, 10)
				  : first;
	if (options.shrink)
		return shrink(first, &options);
	if (!options.trace)
		return run_all(first, last, &options) > 0;
	result = run_once(first, &options);
	printf("hash %016" PRIx64 ": %s\n", result.hash,
	       result.violated ? result.text : "all promises are kept");
	return result.violated;
}
