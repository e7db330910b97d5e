#include "base/duration.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define BARE_MAX 3600000 /* ms: a larger number may be meant as milliseconds */

/* In the order in which they may follow each other. */
static const struct unit {
	char name[4];
	int64_t ms;
} units[] = {
	{"d", 86400000}, {"h", 3600000}, {"min", 60000}, {"m", 60000},
	{"sec", 1000},   {"s", 1000},    {"ms", 1},
};

static const struct unit bare = {"", 1000};

static const struct unit *unit_find(const char *name, size_t length)
{
	if (length == 0)
		return &bare;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strlen(units[i].name) == length &&
		    memcmp(units[i].name, name, length) == 0)
			return &units[i];
	return NULL;
}

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* One number and its unit, which is written last: what follows it, or NULL. What is more
 * than DURATION_MAX becomes just more. */
static const char *read_part(const char *text, const struct unit **unit,
			     int64_t *ms)
{
	const char *end = text + strspn(text, "0123456789.");
	size_t length = strcspn(end, "0123456789.");
	int64_t whole = 0, fraction = 0, scale;
	int digits = 0;

	*unit = unit_find(end, length);
	if (*unit == NULL)
		return NULL;
	for (; is_digit(*text); text++, digits++)
		if (whole <= DURATION_MAX)
			whole = whole * 10 + (*text - '0');
	scale = (*unit)->ms;
	if (*text == '.') {
		/* 1.5h30m: of what is it half? */
		if (end[length] != '\0')
			return NULL;
		for (text++; is_digit(*text); text++, digits++) {
			fraction += scale * (*text - '0') / 10;
			scale /= 10;
		}
	}
	if (digits == 0 || text != end)
		return NULL;
	*ms = whole > DURATION_MAX / (*unit)->ms
		      ? DURATION_MAX + 1
		      : whole * (*unit)->ms + fraction;
	return end + length;
}

enum duration duration_parse(const char *text, int64_t *ms)
{
	const struct unit *unit, *before = NULL;
	bool negative = *text == '-';
	int64_t sum = 0, part;

	if (negative)
		text++;
	do {
		text = read_part(text, &unit, &part);
		if (text == NULL)
			return DURATION_NONE;
		if (before != NULL && (unit == &bare || before->ms <= unit->ms))
			return DURATION_NONE;
		before = unit;
		sum += part;
	} while (*text != '\0');
	if (negative || sum > DURATION_MAX)
		return DURATION_BEYOND;
	if (unit == &bare && sum > BARE_MAX)
		return DURATION_UNCLEAR;
	*ms = sum;
	return DURATION_OK;
}

char *duration_format(char text[DURATION_TEXT], int64_t ms)
{
	int64_t s = ms / 1000;

	if (ms < 1000)
		snprintf(text, DURATION_TEXT, "%" PRId64 "ms", ms);
	else if (s < 10 && ms % 1000 >= 100)
		snprintf(text, DURATION_TEXT, "%" PRId64 ".%" PRId64 "s", s,
			 ms % 1000 / 100);
	else if (s < 60)
		snprintf(text, DURATION_TEXT, "%" PRId64 "s", s);
	else if (s < 3600)
		snprintf(text, DURATION_TEXT, "%" PRId64 "m%02" PRId64 "s",
			 s / 60, s % 60);
	else if (s < 86400)
		snprintf(text, DURATION_TEXT, "%" PRId64 "h%02" PRId64 "m",
			 s / 3600, s / 60 % 60);
	else
		snprintf(text, DURATION_TEXT, "%" PRId64 "d%" PRId64 "h",
			 s / 86400, s / 3600 % 24);
	return text;
}

char *clock_format(char text[CLOCK_TEXT], int64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm local;

	if (localtime_r(&seconds, &local) == NULL ||
	    strftime(text, CLOCK_TEXT, "%H:%M:%S", &local) == 0)
		text[0] = '\0';
	return text;
}
