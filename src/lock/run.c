#include "lock/run.h"

#include <inttypes.h>
#include <string.h>

#include "base/bounds.h"
#include "base/duration.h"
#include "base/number.h"

#define TIME_LARGEST (INT64_C(1) << 53) /* ms: what a server counts exactly */

static const char *const names[] = {
	[RUN_UNKNOWN] = "unknown",   [RUN_EXIT] = "exit",
	[RUN_SIGNAL] = "signal",     [RUN_LOST] = "lost",
	[RUN_OVERDUE] = "overdue",   [RUN_BROKEN] = "broken",
	[RUN_RELEASED] = "released", [RUN_NOT_STARTED] = "not started",
	[RUN_OTHER] = "other",
};

const char *run_end_name(enum run_end end)
{
	return names[end];
}

/* --- reading ---------------------------------------------------------------- */

static int read_number(const char **at, int64_t *number)
{
	return number_read(at, 0, TIME_LARGEST, number) < 0 || *(*at)++ != ' '
		       ? -1
		       : 0;
}

static int read_token(struct past_run *run, const char **at)
{
	size_t length = strcspn(*at, " ");

	if (length == 0 || length >= sizeof(run->token) || (*at)[length] != ' ')
		return -1;
	memcpy(run->token, *at, length);
	*at += length + 1;
	return 0;
}

static int read_waited(struct past_run *run, const char **at)
{
	if (strncmp(*at, "- ", 2) != 0)
		return read_number(at, &run->waited);
	run->waited = -1;
	*at += 2;
	return 0;
}

/* "exit 0", "signal 9" */
static bool read_numbered(struct past_run *run, const char *text,
			  enum run_end end, int64_t least, int64_t most)
{
	size_t length = strlen(names[end]);
	int64_t number;

	if (strncmp(text, names[end], length) != 0 || text[length] != ' ' ||
	    number_parse(text + length + 1, least, most, &number) < 0)
		return false;
	run->end = end;
	run->number = (int)number;
	return true;
}

static void read_end(struct past_run *run, const char *text)
{
	static const char broken[] = "broken by ";

	run->end = RUN_OTHER;
	for (enum run_end end = 0; end < RUN_OTHER; end++)
		if (strcmp(text, names[end]) == 0)
			run->end = end;
	if (run->end == RUN_EXIT || run->end == RUN_SIGNAL)
		run->end = RUN_OTHER;
	if (run->end != RUN_OTHER ||
	    read_numbered(run, text, RUN_EXIT, 0, 255) ||
	    read_numbered(run, text, RUN_SIGNAL, 1, 64))
		return;
	if (strncmp(text, broken, sizeof(broken) - 1) == 0) {
		run->end = RUN_BROKEN;
		text += sizeof(broken) - 1;
	}
	strlcpy(run->by, text, sizeof(run->by));
}

/* The first line of a description is "since=TIME ...". */
static int read_since(struct past_run *run, const char *text)
{
	static const char since[] = "since=";

	if (strncmp(text, since, sizeof(since) - 1) != 0)
		return -1;
	text += sizeof(since) - 1;
	return number_read(&text, 0, TIME_LARGEST, &run->began);
}

int run_read(struct past_run *run, const char *text, size_t length, int64_t now)
{
	char line[RUN_BY + 128];
	const char *end = memchr(text, '\n', length), *at = line;

	*run = (struct past_run){0};
	if (now < 0 || now > TIME_LARGEST || end == NULL ||
	    (size_t)(end - text) >= sizeof(line))
		return -1;
	memcpy(line, text, (size_t)(end - text));
	line[end - text] = '\0';
	length -= (size_t)(++end - text);
	if (read_token(run, &at) < 0 || read_number(&at, &run->held) < 0 ||
	    number_read(&at, 0, FENCE_LARGEST, &run->fence) < 0 ||
	    *at++ != ' ' || read_waited(run, &at) < 0 || *at == '\0' ||
	    read_since(run, end) < 0)
		return -1;
	read_end(run, at);
	run->age = now - run->began;
	record_parse(&run->who, end, length);
	return 0;
}

/* --- telling ---------------------------------------------------------------- */

bool run_succeeded(const struct past_run *run)
{
	return run->end == RUN_EXIT && run->number == 0;
}

bool run_failed(const struct past_run *run)
{
	return !run_succeeded(run) && run->end != RUN_RELEASED;
}

void run_print_end(struct buffer *text, const struct past_run *run)
{
	if (run->end == RUN_OTHER) {
		buffer_print(text, "%s", run->by);
		return;
	}
	buffer_print(text, "%s", names[run->end]);
	if (run->end == RUN_EXIT || run->end == RUN_SIGNAL)
		buffer_print(text, " %d", run->number);
	if (run->end == RUN_BROKEN && run->by[0] != '\0')
		buffer_print(text, " by %s", run->by);
}

void run_print(struct buffer *text, const struct past_run *run)
{
	int64_t ended = run->age - run->held;
	char time[DURATION_TEXT];

	buffer_print(text, "%s", run->who.host[0] ? run->who.host : "somebody");
	if (ended >= 0)
		buffer_print(text, " %s ago", duration_format(time, ended));
	buffer_print(text, " for %s, ", duration_format(time, run->held));
	run_print_end(text, run);
}

void run_print_success(struct buffer *text, const struct past_run *run,
		       int64_t once_in)
{
	char time[DURATION_TEXT];

	buffer_print(text, "%s ran it ",
		     run->who.host[0] ? run->who.host : "somebody");
	buffer_print(text, "%s ago for ",
		     duration_format(time, run->age > 0 ? run->age : 0));
	buffer_print(text, "%s, ", duration_format(time, run->held));
	run_print_end(text, run);
	buffer_print(text, "; --once-in lets it run again in %s",
		     duration_format(time, run->age < once_in
						   ? once_in - run->age
						   : 0));
}
