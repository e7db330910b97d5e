#include "wait/progress.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/duration.h"
#include "base/log.h"
#include "base/title.h"

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)

void progress_init(struct progress *progress, const struct lock *lock,
		   int64_t began)
{
	*progress = (struct progress){
		.lock = lock,
		.began = began,
		.due = log_is_verbose() ? 0 : progress_after(0),
	};
}

int64_t progress_after(int64_t waited)
{
	static const int64_t first[] = {10 * SECOND, MINUTE, 5 * MINUTE,
					15 * MINUTE};

	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++)
		if (waited < first[i])
			return first[i];
	return (waited / (30 * MINUTE) + 1) * 30 * MINUTE;
}

static const char *ordinal(char text[24], int64_t number)
{
	int64_t last = number % 10;
	const char *end = number / 10 % 10 == 1 || last < 1 || last > 3 ? "th"
			  : last == 1                                   ? "st"
			  : last == 2                                   ? "nd"
									: "rd";

	snprintf(text, 24, "%" PRId64 "%s", number, end);
	return text;
}

static void set_title(struct progress *progress, int64_t place)
{
	const struct argument *key = &progress->lock->names.key;
	char number[24];

	if (place == progress->place && title_is_set())
		return;
	if (place > 0)
		title_set("%.*s: waiting, %s in line", (int)key->length,
			  key->data, ordinal(number, place));
	else
		title_set("%.*s: waiting", (int)key->length, key->data);
	progress->place = place;
}

/* "3rd in line, waiting for 10s" */
static void print_wait(struct buffer *text, int64_t place, int64_t waited)
{
	char number[24], time[DURATION_TEXT];

	if (place > 0)
		buffer_print(text, "%s in line, ", ordinal(number, place));
	buffer_print(text, "waiting for %s", duration_format(time, waited));
}

static void draw(const struct progress *progress, const struct busy *busy,
		 int64_t place, int64_t waited)
{
	struct buffer who = {0}, times = {0}, wait = {0};

	record_print_who(&who, busy);
	record_print_times(&times, busy);
	print_wait(&wait, place, waited);
	log_live(progress->lock->names.key.data, who.data,
		 times.data != NULL ? times.data : "", wait.data);
	buffer_release(&who);
	buffer_release(&times);
	buffer_release(&wait);
}

static void tell(const struct progress *progress, const struct busy *busy,
		 int64_t place, int64_t waited, const char *outage)
{
	const struct argument *key = &progress->lock->names.key;
	struct buffer who = {0}, wait = {0};

	print_wait(&wait, place, waited);
	if (outage == NULL) {
		record_print_who(&who, busy);
		record_print_times(&who, busy);
		record_print_misfit(&wait, busy);
	}
	if (outage != NULL)
		log_notice("%.*s: %s: %s", (int)key->length, key->data,
			   wait.data, outage);
	else
		log_notice("%.*s: %s, %s", (int)key->length, key->data,
			   who.data, wait.data);
	buffer_release(&who);
	buffer_release(&wait);
}

bool progress_is_due(const struct progress *progress, int64_t place)
{
	int64_t waited = clock_ms() - progress->began;

	return !log_is_live() && !log_is_quiet() &&
	       (place >= 0 || waited >= SECOND) && waited >= progress->due;
}

/* Draws the live line, or tells what is due. */
static struct deadline show(struct progress *progress, const struct busy *busy,
			    int64_t place, const char *outage)
{
	int64_t waited = clock_ms() - progress->began;
	bool live = log_is_live(), unknown = place < 0 && waited < SECOND;
	bool warns = !progress->warned && busy->misfit != MISFIT_NONE;

	if (live)
		draw(progress, busy, place, waited);
	if (unknown)
		return deadline_at(progress->began + SECOND);
	if (warns || (!live && waited >= progress->due))
		tell(progress, busy, place, waited, outage);
	progress->warned |= warns;
	if (waited >= progress->due)
		progress->due = progress_after(waited);
	return live ? deadline_in(SECOND)
		    : deadline_at(progress->began + progress->due);
}

struct deadline progress_show(struct progress *progress,
			      const struct busy *busy, int64_t place,
			      const char *outage)
{
	set_title(progress, place);
	return show(progress, busy, place, outage);
}

void progress_end(void)
{
	log_live_end();
}
