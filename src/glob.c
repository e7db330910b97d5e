#include "glob.h"

static bool in_range(unsigned char byte, unsigned char from, unsigned char to)
{
	return from <= to ? byte >= from && byte <= to
			  : byte >= to && byte <= from;
}

/* *pattern is behind a '['; it is moved behind the ']', which may be missing. */
static bool match_class(const char **pattern, char byte)
{
	const char *at = *pattern;
	bool negated = *at == '^', found = false;

	for (at += negated; *at != '\0' && *at != ']'; at++) {
		if (at[0] == '\\' && at[1] != '\0') {
			at++;
			found |= *at == byte;
		} else if (at[1] == '-' && at[2] != '\0') {
			found |= in_range((unsigned char)byte,
					  (unsigned char)at[0],
					  (unsigned char)at[2]);
			at += 2;
		} else {
			found |= *at == byte;
		}
	}
	*pattern = at + (*at == ']');
	return found != negated;
}

/* What stands at *pattern is no star and is passed over. */
static bool match_byte(const char **pattern, char byte)
{
	char wanted = *(*pattern)++;

	if (wanted == '?')
		return true;
	if (wanted == '[')
		return match_class(pattern, byte);
	if (wanted == '\\' && **pattern != '\0')
		wanted = *(*pattern)++;
	return wanted == byte;
}

bool glob_matches(const char *pattern, const char *text, size_t length)
{
	const char *end = text + length, *star = NULL, *from = NULL;

	for (;;) {
		if (*pattern == '*') {
			/* what is in front of it need not be tried again */
			star = ++pattern;
			from = text;
			continue;
		}
		if (text == end && *pattern == '\0')
			return true;
		if (text < end && *pattern != '\0' &&
		    match_byte(&pattern, *text)) {
			text++;
			continue;
		}
		if (star == NULL || from == end)
			return false;
		pattern = star;
		text = ++from;
	}
}
