#include "net/limits.h"

#include <sched.h>
#include <stddef.h>
#include <sys/resource.h>

#define FEW_FILES 1024
#define MIB ((rlim_t)1 << 20)

/* That could end the server. */
static const struct fatal_limit {
	int resource;
	rlim_t least; /* what it is sure to get along with */
	const char *on, *option;
} fatal_limits[] = {
	{RLIMIT_CPU, RLIM_INFINITY, "processor time", "-t"},
	{RLIMIT_AS, 256 * MIB, "memory below 256 MiB", "-v"},
	{RLIMIT_DATA, 256 * MIB, "memory below 256 MiB", "-d"},
	{RLIMIT_STACK, MIB, "the stack below 1 MiB", "-s"},
};

/* RLIM_INFINITY, the largest number, without one. */
static rlim_t hard_limit(int resource)
{
	struct rlimit limit;

	return getrlimit(resource, &limit) < 0 ? RLIM_INFINITY : limit.rlim_max;
}

int limits_allow_server(struct error *error)
{
	for (size_t i = 0; i < sizeof(fatal_limits) / sizeof(*fatal_limits);
	     i++) {
		const struct fatal_limit *fatal = &fatal_limits[i];

		if (hard_limit(fatal->resource) >= fatal->least)
			continue;
		error_set(error, EXIT_UNREACHED,
			  "local:: a limit on %s (ulimit %s) could end its "
			  "server while locks are held there: start it without "
			  "that limit, as by redlock status -S local: KEY",
			  fatal->on, fatal->option);
		return -1;
	}
	return 0;
}

void limits_leave(void)
{
	const struct sched_param usual = {0};
	struct rlimit limit;

	for (int resource = 0; resource < RLIM_NLIMITS; resource++) {
		/* nobody has asked for cores of this server */
		if (resource == RLIMIT_CORE || getrlimit(resource, &limit) < 0)
			continue;
		limit.rlim_cur = limit.rlim_max;
		setrlimit(resource, &limit);
	}
	sched_setscheduler(0, SCHED_OTHER, &usual);
	setpriority(PRIO_PROCESS, 0, 0);
}

void limits_warn(struct error *error)
{
	rlim_t files = hard_limit(RLIMIT_NOFILE);

	if (files < FEW_FILES)
		error_set(error, EXIT_DONE,
			  "local:: a limit on open files (ulimit -n) lets its "
			  "server serve fewer than %llu clients at once, as "
			  "long as it runs",
			  (unsigned long long)files);
}
