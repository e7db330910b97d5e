#include "lock/record.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/output.h"
#include "base/deadline.h"
#include "base/duration.h"
#include "base/lease.h"
#include "base/number.h"

/* The beginning of value, made visible: at most that many bytes, and neither a
 * character nor its escape in part. */
static void append(struct buffer *text, const char *value, size_t most)
{
	size_t begin = text->length, before = begin;

	while (*value != '\0' && text->length - begin <= most) {
		size_t size = 1;

		while (size < 4 && ((unsigned char)value[size] & 0xc0) == 0x80)
			size++;
		before = text->length;
		output_visible(text, value, size, 1);
		value += size;
	}
	if (text->length - begin > most)
		text->length = before;
}

static void describe(struct buffer *text, const char *name, const char *value,
		     size_t most)
{
	buffer_print(text, "%s=", name);
	append(text, value, most);
	buffer_append(text, "\n", 1);
}

/* From the environment: asking the name service costs every start. */
static const char *user_name(void)
{
	const char *user = getenv("LOGNAME");

	if (user == NULL || *user == '\0')
		user = getenv("USER");
	return user != NULL && *user != '\0' ? user : NULL;
}

static const char *const break_names[] = {
	[BREAK_STOPS] = "stops",
	[BREAK_WARNS] = "warns",
	[BREAK_SIGNALS] = "signals",
	[BREAK_EXTENDED] = "extended",
};

void record_describe(struct buffer *text, pid_t pid, const char *label,
		     int64_t ttl, bool renews, enum on_break on_break)
{
	const char *user = user_name();
	char host[HOST_LONGEST + 1] = "";

	gethostname(host, sizeof(host) - 1);
	describe(text, "host", host, HOST_LONGEST);
	buffer_print(text, "pid=%ld\n", (long)pid);
	if (user != NULL)
		describe(text, "user", user, USER_LONGEST);
	else
		buffer_print(text, "user=uid %ld\n", (long)getuid());
	buffer_print(text, "ttl=%" PRId64 "\n%sv=%d\n", ttl,
		     renews ? "renews=yes\n" : "", PROTOCOL);
	if (on_break != BREAK_UNKNOWN)
		buffer_print(text, "break=%s\n", break_names[on_break]);
	describe(text, "command", label, LABEL_LONGEST);
}

static void copy(char *to, size_t size, const char *value, size_t length)
{
	if (length > size - 1)
		length = size - 1;
	memcpy(to, value, length);
	to[length] = '\0';
}

static int64_t read_number(const char *value, size_t length)
{
	char number[21];
	int64_t read = 0;

	copy(number, sizeof(number), value, length);
	return number_parse(number, 0, INT64_MAX, &read) < 0 ? 0 : read;
}

static enum on_break read_on_break(const char *value, size_t length)
{
	size_t n = sizeof(break_names) / sizeof(break_names[0]);

	while (--n > BREAK_UNKNOWN)
		if (strlen(break_names[n]) == length &&
		    memcmp(break_names[n], value, length) == 0)
			break;
	return (enum on_break)n;
}

static void parse_breaker(struct breaker *breaker, const char *line,
			  size_t name, const char *value, size_t length)
{
	if (name == 2 && memcmp(line, "by", name) == 0)
		copy(breaker->name, sizeof(breaker->name), value, length);
	else if (name == 6 && memcmp(line, "reason", name) == 0)
		copy(breaker->reason, sizeof(breaker->reason), value, length);
	else if (name == 5 && memcmp(line, "asked", name) == 0)
		breaker->asked = read_number(value, length);
}

/* "1700000000000. hold": the dot is put in when a run is noted (lua/runs.lua). */
static bool read_over(const char *value, size_t length)
{
	const char *end = memchr(value, ' ', length);

	return end != NULL && end > value && end[-1] == '.';
}

static void parse_line(struct holder *holder, const char *line, size_t length)
{
	const char *equals = memchr(line, '=', length);
	const char *value;
	size_t name, rest;

	if (equals == NULL)
		return;
	value = equals + 1;
	name = (size_t)(equals - line);
	rest = length - name - 1;
	if (name == 4 && memcmp(line, "host", name) == 0)
		copy(holder->host, sizeof(holder->host), value, rest);
	else if (name == 4 && memcmp(line, "user", name) == 0)
		copy(holder->user, sizeof(holder->user), value, rest);
	else if (name == 7 && memcmp(line, "command", name) == 0)
		copy(holder->command, sizeof(holder->command), value, rest);
	else if (name == 6 && memcmp(line, "renews", name) == 0)
		holder->renews = rest == 3 && memcmp(value, "yes", 3) == 0;
	else if (name == 3 && memcmp(line, "pid", name) == 0)
		holder->pid = read_number(value, rest);
	else if (name == 6 && memcmp(line, "keeper", name) == 0)
		holder->keeper = read_number(value, rest);
	else if (name == 3 && memcmp(line, "ttl", name) == 0)
		holder->ttl = read_number(value, rest);
	else if (name == 1 && line[0] == 'v')
		holder->protocol = read_number(value, rest);
	else if (name == 5 && memcmp(line, "since", name) == 0)
		holder->over = read_over(value, rest);
	else if (name == 5 && memcmp(line, "break", name) == 0)
		holder->on_break = read_on_break(value, rest);
	else
		parse_breaker(&holder->breaker, line, name, value, rest);
}

void record_parse(struct holder *holder, const char *text, size_t length)
{
	*holder = (struct holder){.breaker.asked = -1};
	while (length > 0) {
		const char *end = memchr(text, '\n', length);
		size_t line = end != NULL ? (size_t)(end - text) : length;

		parse_line(holder, text, line);
		line += end != NULL;
		text += line;
		length -= line;
	}
}

void record_describe_breaker(struct buffer *text, const char *reason)
{
	const char *user = user_name();
	char host[HOST_LONGEST + 1] = "";

	gethostname(host, sizeof(host) - 1);
	buffer_print(text, "by=");
	if (user != NULL)
		append(text, user, USER_LONGEST);
	else
		buffer_print(text, "uid%ld", (long)getuid());
	buffer_append(text, "@", 1);
	append(text, host, HOST_LONGEST);
	buffer_append(text, "\n", 1);
	if (reason != NULL)
		describe(text, "reason", reason, REASON_LONGEST);
}

void record_read_breaker(struct breaker *breaker, const char *text,
			 size_t length)
{
	struct holder read;

	record_parse(&read, text, length);
	*breaker = read.breaker;
}

void record_print_breaker(struct buffer *text, const char *what,
			  const struct breaker *breaker)
{
	buffer_print(text, "%s%sby %s", what, *what != '\0' ? " " : "",
		     breaker->name[0] != '\0' ? breaker->name : "somebody");
	if (breaker->reason[0] != '\0')
		buffer_print(text, ": '%s'", breaker->reason);
}

void record_print_holder(struct buffer *text, const struct holder *holder)
{
	buffer_print(text, "%s", holder->host[0] ? holder->host : "somebody");
	if (holder->pid > 0)
		buffer_print(text, " pid %" PRId64, holder->pid);
	if (holder->command[0] != '\0')
		buffer_print(text, " '%s'", holder->command);
}

static void print_count(struct buffer *text, const struct busy *busy)
{
	if (busy->permits > 0)
		buffer_print(text, "%" PRId64 " of %" PRId64 ", ",
			     busy->holders, busy->permits);
	else if (busy->holders > 1)
		buffer_print(text, "%" PRId64 ", ", busy->holders);
	if (busy->holders > 1)
		buffer_print(text, busy->some ? "among them " : "longest ");
}

void record_print_who(struct buffer *text, const struct busy *busy)
{
	if (busy->left == -2) {
		buffer_print(text,
			     busy->split && !busy->has_reply
				     ? "others try to get it, too, and nobody "
				       "has enough votes"
				     : "others wait for it and come first");
		return;
	}
	buffer_print(text, "held by ");
	print_count(text, busy);
	if (busy->has_description)
		record_print_holder(text, &busy->holder);
	else
		buffer_print(text, "another program");
}

bool record_tells_left(const struct busy *busy)
{
	const struct holder *holder = &busy->holder;
	int64_t first = lease_first(holder->ttl);

	if (busy->holders >
	    1) /* the first lease to end may be another holder's */
		return false;
	if (!busy->has_description || !holder->renews || holder->ttl <= 0)
		return true;
	if (holder->over && !busy->is_hash) /* --min-hold keeps KEY */
		return true;
	return busy->left > holder->ttl ||
	       (busy->left < lease_late(holder->ttl) && busy->held >= first);
}

void record_print_times(struct buffer *text, const struct busy *busy)
{
	char time[DURATION_TEXT];
	int64_t since = busy->at > 0 ? clock_ms() - busy->at : 0;

	if (busy->left == -2)
		return;
	if (busy->held >= 0)
		buffer_print(text, " for %s",
			     duration_format(time, busy->held + since));
	if (busy->held >= 0 && busy->usual > 0)
		buffer_print(text, " (usually %s)",
			     duration_format(time, busy->usual));
	if (busy->has_reply && busy->left >= since && record_tells_left(busy))
		buffer_print(text, ", %s left",
			     duration_format(time, busy->left - since));
	else if (busy->has_reply && busy->left < 0)
		buffer_print(text, ", with no expiry");
}

void record_print_misfit(struct buffer *text, const struct busy *busy)
{
	if (busy->misfit == MISFIT_OURS)
		buffer_print(text, ": use -P %" PRId64 ", as they do",
			     busy->permits);
	else if (busy->misfit == MISFIT_THEIRS)
		buffer_print(text, ": that one was taken without -P: use it "
				   "everywhere or nowhere");
}

void record_print_busy(struct buffer *text, const struct busy *busy)
{
	if (busy->outage != NULL) {
		buffer_print(text, "when last heard: ");
		record_print_who(text, busy);
		buffer_print(text, "; now: %s", busy->outage);
		return;
	}
	record_print_who(text, busy);
	record_print_times(text, busy);
	record_print_misfit(text, busy);
}
