#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/deadline.h"
#include "base/output.h"
#include "base/signals.h"

#define LINE_LONGEST 8192 /* bytes before they are made visible */
#define COLUMNS 80        /* if the terminal does not say */
#define WHO_LEAST 12      /* columns of it that are worth showing */
#define ERASE "\r\033[K"
#define LOOK_AGAIN 100 /* ms, whether a signal has come */

static enum log_level log_level = LOG_NORMAL;
static int64_t log_start;
static bool log_in_utf8;
static bool log_dumb;         /* the terminal: it takes no ERASE */
static atomic_bool log_drawn; /* a live line is there */
static atomic_int log_hurries;
static atomic_bool log_given_up; /* nobody reads */
static atomic_uint log_dropped;  /* lines, not yet told */

/* What is still to be written when there is room: the rest of a line, and what must
 * not be dropped. */
static struct buffer log_kept;
static pthread_mutex_t log_kept_mutex = PTHREAD_MUTEX_INITIALIZER;

void log_init(enum log_level level)
{
	const char *terminal = getenv("TERM");

	log_level = level;
	log_start = clock_ms();
	log_in_utf8 = output_utf8();
	log_dumb = terminal != NULL && strcmp(terminal, "dumb") == 0;
}

bool log_utf8(void)
{
	return log_in_utf8;
}

bool log_is_quiet(void)
{
	return log_level == LOG_QUIET;
}

bool log_is_verbose(void)
{
	return log_level == LOG_VERBOSE;
}

bool log_is_live(void)
{
	/* -1 if it is no terminal, or not ours */
	return log_level == LOG_NORMAL && !log_dumb &&
	       tcgetpgrp(STDERR_FILENO) == getpgrp();
}

/* --- writing ------------------------------------------------------------- */

/* How much of it there is room for, without a reader; or all of it, if that can be
 * written to nobody. SIGTTOU, which is blocked, would stop the whole job. */
static size_t write_at_once(const char *text, size_t length)
{
	struct signals_mask before;
	ssize_t written;
	int failure;

	signals_block_all(&before);
	written = output_write_at_once(STDERR_FILENO, text, length);
	failure = errno;
	signals_unblock(&before);
	if (written < 0)
		return failure == EAGAIN ? 0 : length;
	return (size_t)written;
}

/* False: we are told to end, though nobody reads. From then on nothing is waited for. */
static bool await_room(void)
{
	struct pollfd polled = {.fd = STDERR_FILENO, .events = POLLOUT};

	if (!log_given_up)
		poll(&polled, 1, LOOK_AGAIN);
	if (signals_tell_to_end())
		log_given_up = true;
	return !log_given_up;
}

static void write_patiently(const char *text, size_t length)
{
	while (length > 0) {
		size_t written = write_at_once(text, length);

		if (written == 0 && !await_room())
			return;
		text += written;
		length -= written;
	}
}

/* Writes as much of what was kept as there is room for; false if some is left. */
static bool write_kept(void)
{
	size_t written;

	if (log_kept.length == 0)
		return true;
	written = write_at_once(log_kept.data, log_kept.length);
	memmove(log_kept.data, log_kept.data + written,
		log_kept.length - written);
	log_kept.length -= written;
	return log_kept.length == 0;
}

/* Keeps what there is no room for. False: there is none for any of it, and it was
 * dropped. */
static bool write_in_hurry(const struct buffer *text, bool may_drop)
{
	size_t written = 0;

	pthread_mutex_lock(&log_kept_mutex);
	if (write_kept())
		written = write_at_once(text->data, text->length);
	if (written > 0 || !may_drop)
		buffer_append(&log_kept, text->data + written,
			      text->length - written);
	pthread_mutex_unlock(&log_kept_mutex);
	return written > 0 || !may_drop;
}

/* A log that cannot be written must not stop the work that it is about. False: it would
 * have to wait, and was dropped. */
static bool write_text(const struct buffer *text, bool may_drop)
{
	struct buffer kept;

	if (log_hurries > 0)
		return write_in_hurry(text, may_drop);
	pthread_mutex_lock(&log_kept_mutex);
	kept = log_kept;
	log_kept = (struct buffer){0};
	pthread_mutex_unlock(&log_kept_mutex);
	write_patiently(kept.data, kept.length);
	buffer_release(&kept);
	write_patiently(text->data, text->length);
	return true;
}

bool log_catch_up(void)
{
	bool done;

	pthread_mutex_lock(&log_kept_mutex);
	done = write_kept();
	pthread_mutex_unlock(&log_kept_mutex);
	return done;
}

/* What was dropped up to here. */
static unsigned add_dropped(struct buffer *line)
{
	unsigned dropped = atomic_exchange(&log_dropped, 0);

	if (dropped == 0)
		return 0;
	buffer_print(line, "redlock: ");
	buffer_print(line,
		     "lines dropped here, as standard error was full: %u\n",
		     dropped);
	return dropped;
}

void log_hurry(bool hurry)
{
	struct buffer line = {0};

	if (hurry) {
		log_hurries++;
		return;
	}
	if (--log_hurries > 0)
		return;
	add_dropped(&line);
	write_text(&line, false);
	buffer_release(&line);
}

void log_end(void)
{
	log_hurries = 1;
	log_hurry(false);
}

/* Not from the background: what is there now is another program's. */
static void erase(struct buffer *line)
{
	if (log_drawn && atomic_exchange(&log_drawn, false) && log_is_live())
		buffer_print(line, ERASE);
}

/* --- the live line -------------------------------------------------------- */

/* What it is made of, made visible. */
struct parts {
	struct buffer name, who, times, rest;
};

static void add_part(struct buffer *part, const char *text)
{
	output_visible(part, text, strlen(text), log_in_utf8);
}

static size_t width_of(const struct buffer *part)
{
	return output_width(part->data, part->length);
}

/* As much of it as there is room for, which an ellipsis says. */
static void add_cut(struct buffer *line, const struct buffer *part, size_t room)
{
	size_t dots = room < 3 ? room : 3;

	if (width_of(part) <= room) {
		buffer_append(line, part->data, part->length);
		return;
	}
	buffer_append(line, part->data,
		      output_fit(part->data, part->length, room - dots));
	buffer_append(line, "...", dots);
}

/* With the holder, cut if need be; false if there is no room for that. */
static bool fit_all(struct buffer *line, const struct parts *parts, size_t room,
		    const char *prefix)
{
	size_t taken = strlen(prefix) + width_of(&parts->name) +
		       width_of(&parts->times) + width_of(&parts->rest) +
		       strlen(": , ");
	size_t least = width_of(&parts->who);

	if (least > WHO_LEAST)
		least = WHO_LEAST;
	if (least == 0 || taken + least > room)
		return false;
	buffer_print(line, "%s%s: ", prefix, parts->name.data);
	add_cut(line, &parts->who, room - taken);
	buffer_print(line, "%s, %s", parts->times.data, parts->rest.data);
	return true;
}

/* KEY, and what is told last. */
static void fit_some(struct buffer *line, const struct parts *parts,
		     size_t room)
{
	static const char prefix[] = "redlock: ";
	size_t rest = width_of(&parts->rest);
	size_t name = width_of(&parts->name) + strlen(": ");

	if (strlen(prefix) + name + rest <= room)
		buffer_print(line, "%s", prefix);
	if (rest + strlen("k...: ") <= room) {
		add_cut(line, &parts->name, room - rest - strlen(": "));
		buffer_print(line, ": ");
	}
	buffer_append(line, parts->rest.data,
		      output_fit(parts->rest.data, parts->rest.length, room));
}

void log_live(const char *name, const char *who, const char *times,
	      const char *rest)
{
	struct parts parts = {0};
	struct buffer drawn = {0};
	/* the last column stays free: some terminals wrap at it */
	size_t room = output_columns(STDERR_FILENO, COLUMNS) - 1;

	if (!log_is_live())
		return;
	add_part(&parts.name, name);
	add_part(&parts.who, who);
	add_part(&parts.times, times);
	add_part(&parts.rest, rest);
	buffer_print(&drawn, "\r");
	if (!fit_all(&drawn, &parts, room, "redlock: ") &&
	    !fit_all(&drawn, &parts, room, ""))
		fit_some(&drawn, &parts, room);
	buffer_print(&drawn, "\033[K");
	buffer_release(&parts.name);
	buffer_release(&parts.who);
	buffer_release(&parts.times);
	buffer_release(&parts.rest);
	if (write_text(&drawn, true))
		log_drawn = true;
	buffer_release(&drawn);
}

void log_live_end(void)
{
	struct buffer line = {0};

	erase(&line);
	if (line.length > 0 && !write_text(&line, true))
		log_drawn = true;
	buffer_release(&line);
}

static void print_line(const char *prefix, bool may_drop, const char *format,
		       va_list arguments)
{
	char text[LINE_LONGEST];
	struct buffer line = {0};
	unsigned dropped;
	bool drawn = log_drawn;

	vsnprintf(text, sizeof(text), format, arguments);
	erase(&line);
	dropped = add_dropped(&line);
	buffer_print(&line, "redlock: %s", prefix);
	output_visible(&line, text, strlen(text), log_in_utf8);
	buffer_append(&line, "\n", 1);
	if (!write_text(&line, may_drop)) {
		log_dropped += dropped + 1;
		log_drawn = drawn;
	}
	buffer_release(&line);
}

void log_error(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_line("", false, format, arguments);
	va_end(arguments);
}

void log_notice(const char *format, ...)
{
	va_list arguments;

	if (log_level < LOG_NORMAL)
		return;
	va_start(arguments, format);
	print_line("", false, format, arguments);
	va_end(arguments);
}

void log_step(const char *format, ...)
{
	int64_t since;
	char prefix[32];
	va_list arguments;

	if (log_level < LOG_VERBOSE)
		return;
	since = clock_ms() - log_start;
	snprintf(prefix, sizeof(prefix),
		 "%" PRId64 ".%03" PRId64 "s: ", since / 1000, since % 1000);
	va_start(arguments, format);
	print_line(prefix, true, format, arguments);
	va_end(arguments);
}
