#include "base/glob.h"

#include <ctype.h>
#include <string.h>

#define NAME_LONGEST 6 /* "xdigit" */

struct pattern {
	const char *at;
	const char *last; /* ']'; NULL: none */
};

/* --- [...] ---------------------------------------------------------------- */

/* The ":]" of a "[:name:]", or NULL; also for '=' and '.'. */
static const char *end_of_name(const char *at)
{
	char sign;

	if (at[0] != '[' || at[1] == '\0' || strchr(":=.", at[1]) == NULL)
		return NULL;
	sign = at[1];
	at += 2;
	for (size_t n = 0; n <= NAME_LONGEST && at[n] != '\0'; n++)
		if (at[n] == sign && at[n + 1] == ']')
			return at + n;
	return NULL;
}

static bool is_negated(const char *at)
{
	return *at == '!' || *at == '^';
}

/* at is behind a '['. Its ']', or NULL. */
static const char *end_of_class(const char *at)
{
	at += is_negated(at);
	at += *at == ']';
	for (; *at != '\0' && *at != ']'; at++) {
		const char *name = end_of_name(at);

		if (*at == '\\' && at[1] != '\0')
			at++;
		else if (name != NULL)
			at = name + 1;
	}
	return *at == ']' ? at : NULL;
}

/* As in the C locale. */
static bool is_of(const char *name, size_t length, unsigned char byte)
{
	static const struct {
		char name[NAME_LONGEST + 1];
		int (*is)(int byte);
	} classes[] = {
		{"alnum", isalnum}, {"alpha", isalpha}, {"blank", isblank},
		{"cntrl", iscntrl}, {"digit", isdigit}, {"graph", isgraph},
		{"lower", islower}, {"print", isprint}, {"punct", ispunct},
		{"space", isspace}, {"upper", isupper}, {"xdigit", isxdigit},
	};

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (strlen(classes[i].name) == length &&
		    memcmp(classes[i].name, name, length) == 0)
			return byte < 0x80 && classes[i].is(byte) != 0;
	return false;
}

/* One byte: x, \x, [.x.] or [=x=]. */
static unsigned char read_byte(const char **at)
{
	const char *name = end_of_name(*at);
	char byte = **at;

	if (name == *at + 3 && (*at)[1] != ':') {
		byte = (*at)[2];
		*at = name + 2;
		return (unsigned char)byte;
	}
	if (byte == '\\')
		byte = *++*at;
	++*at;
	return (unsigned char)byte;
}

/* Between at and end, the ']'. */
static bool is_in_class(const char *at, const char *end, unsigned char byte)
{
	bool negated = is_negated(at), found = false;

	for (at += negated; at < end;) {
		const char *name = end_of_name(at);
		unsigned char from, to;

		if (name != NULL && at[1] == ':') {
			found |= is_of(at + 2, (size_t)(name - at - 2), byte);
			at = name + 2;
			continue;
		}
		from = to = read_byte(&at);
		if (at[0] == '-' && at + 1 < end) {
			at++;
			to = read_byte(&at);
		}
		found |= byte >= from && byte <= to;
	}
	return found != negated;
}

/* --- the rest --------------------------------------------------------------- */

/* What stands there is no star and is passed over. */
static bool match_byte(struct pattern *pattern, char byte)
{
	char wanted = *pattern->at++;
	const char *end, *at = pattern->at;

	if (wanted == '?')
		return true;
	end = wanted == '[' && pattern->last != NULL && at <= pattern->last
		      ? end_of_class(at)
		      : NULL;
	if (end != NULL) {
		pattern->at = end + 1;
		return is_in_class(at, end, (unsigned char)byte);
	}
	if (wanted == '\\' && *at != '\0')
		wanted = *pattern->at++;
	return wanted == byte;
}

bool glob_matches(const char *glob, const char *text, size_t length)
{
	struct pattern pattern = {glob, strrchr(glob, ']')};
	const char *end = text + length, *star = NULL, *from = NULL;

	for (;;) {
		if (*pattern.at == '*') {
			/* what is in front of it need not be tried again */
			star = ++pattern.at;
			from = text;
			continue;
		}
		if (text == end && *pattern.at == '\0')
			return true;
		if (text < end && *pattern.at != '\0' &&
		    match_byte(&pattern, *text)) {
			text++;
			continue;
		}
		if (star == NULL || from == end)
			return false;
		pattern.at = star;
		text = ++from;
	}
}
