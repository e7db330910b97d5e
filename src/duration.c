#include "duration.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const struct unit {
	const char *name;
	int64_t ms;
} units[] = {
	{"", 1000},   {"ms", 1},      {"s", 1000},
	{"m", 60000}, {"h", 3600000}, {"d", 86400000},
};

static const struct unit *unit_find(const char *name)
{
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(units[i].name, name) == 0)
			return &units[i];
	return NULL;
}

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

int duration_parse(const char *text, int64_t *ms)
{
	const char *end = text + strspn(text, "0123456789.");
	const struct unit *unit = unit_find(end);
	int64_t whole = 0, scale, fraction = 0;
	int digits = 0;

	if (unit == NULL)
		return -1;
	for (; is_digit(*text); text++, digits++) {
		whole = whole * 10 + (*text - '0');
		if (whole > DURATION_MAX)
			return -1;
	}
	if (*text == '.') {
		scale = unit->ms;
		for (text++; is_digit(*text); text++, digits++) {
			fraction += scale * (*text - '0') / 10;
			scale /= 10;
		}
	}
	if (digits == 0 || text != end || whole > DURATION_MAX / unit->ms)
		return -1;
	whole = whole * unit->ms + fraction;
	if (whole > DURATION_MAX)
		return -1;
	*ms = whole;
	return 0;
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
