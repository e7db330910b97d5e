/*
 * DURATION: a number with ms, s, m, h or d behind it, or a bare number of
 * seconds; fractions allowed, finer than a millisecond is cut. "500ms" "1.5".
 * And moments, for people.
 */
#ifndef DURATION_H
#define DURATION_H

#include <stddef.h>
#include <stdint.h>

#define DURATION_MAX (INT64_C(36500) * 86400000) /* a hundred years, in ms */
#define DURATION_TEXT 32

/* 0, or -1 where text is no DURATION of at most DURATION_MAX. */
int duration_parse(const char *text, int64_t *ms);

/* For people: "250ms", "21s", "4m10s", "3h02m", "5d4h". Returns text. */
char *duration_format(char text[DURATION_TEXT], int64_t ms);

#define CLOCK_TEXT 16

/* "03:17:20", local time, of ms since 1970. Returns text. */
char *clock_format(char text[CLOCK_TEXT], int64_t ms);

#endif
