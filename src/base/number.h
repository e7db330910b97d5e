/*
 * Whole decimal numbers: digits and nothing else, but for one '-' before them if least
 * is below 0. Other notations (DURATION, a fraction, hex) have readers of their own.
 * strtonum(3bsd) would also take blanks and a '+' before the digits, and reads no number
 * in the middle of a text.
 */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdint.h>

/* Reads the number at *text, and moves *text past it. -1, with both unchanged, if
 * there is none, or it is not from least to most. */
int number_read(const char **text, int64_t least, int64_t most,
		int64_t *number);

/* The same of the whole text. */
int number_parse(const char *text, int64_t least, int64_t most,
		 int64_t *number);

#endif
