/*
 * DURATION: a number and ms, s (or sec), m (or min), h or d; or several of these, the
 * larger unit first; or a bare number of seconds up to 3600. The last number may
 * have a fraction, which is cut to milliseconds. "500ms" "1.5" "1h30m". And moments,
 * for people.
 */
#ifndef BASE_DURATION_H
#define BASE_DURATION_H

#include <stdint.h>

#define DURATION_MAX (INT64_C(36500) * 86400000) /* a hundred years, in ms */
#define DURATION_TEXT 32

enum duration {
	DURATION_OK,
	DURATION_NONE,   /* not a duration */
	DURATION_BEYOND, /* more than DURATION_MAX, or one with a '-' before it */
	DURATION_UNCLEAR, /* a bare number beyond 3600: seconds, or ms? */
};

/* Sets *ms only if it is OK. */
enum duration duration_parse(const char *text, int64_t *ms);

/* For people: "250ms", "21s", "4m10s", "3h02m", "5d4h". Returns text. */
char *duration_format(char text[DURATION_TEXT], int64_t ms);

#define CLOCK_TEXT 16

/* "03:17:20", local time, of ms since 1970. Returns text. */
char *clock_format(char text[CLOCK_TEXT], int64_t ms);

#endif
