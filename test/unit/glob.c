/* Patterns: what matches, what does not, and that none takes long. */
#include "../../src/glob.h"

#include <stdlib.h>

#include "check.h"

static const struct {
	const char *pattern, *yes[4], *no[4];
} table[] = {
	{"", {""}, {"a", "*"}},
	{"abc", {"abc"}, {"", "ab", "abcd", "ABC"}},
	{"*", {"", "a", "a*b", "\n"}, {NULL}},
	{"?", {"a", "?", "\xff"}, {"", "ab"}},
	{"a*b*c", {"abc", "abbc", "aXbXbXc"}, {"ab", "acb", "abcd"}},
	{"**a", {"a", "ba"}, {"", "ab"}},
	{"a?c", {"abc", "a?c"}, {"ac", "abbc"}},
	{"[abc]", {"a", "b", "c"}, {"d", "", "ab", "["}},
	{"[^abc]", {"d", "^", "]"}, {"a", "", "dd"}},
	{"[a-c]x", {"ax", "bx", "cx"}, {"dx", "-x", "a"}},
	{"[c-a]x", {"ax", "bx", "cx"}, {"dx", "-x"}},
	{"[a-]", {"a", "]"}, {"c", "-", "d"}},
	{"[]", {NULL}, {"", "a", "[]"}},
	{"[^]", {"a", "]"}, {"", "aa"}},
	{"[a\\]b]", {"a", "]", "b"}, {"\\", "c"}},
	{"[a", {"a"}, {"[a", "b", ""}},
	{"a\\*b", {"a*b"}, {"axb", "a\\*b"}},
	{"a\\\\b", {"a\\b"}, {"ab", "a\\\\b"}},
	{"a\\", {"a\\"}, {"a", "ab"}},
	{"*\\", {"a\\", "\\"}, {"a", ""}},
	{"*[0-9]*", {"x1", "1x", "1"}, {"x", ""}},
};

static void test_long(void)
{
	static char text[100000], pattern[2001];

	memset(text, 'a', sizeof(text));
	for (size_t i = 0; i + 2 < sizeof(pattern); i += 2)
		memcpy(pattern + i, "*a", 2);
	CHECK(glob_matches(pattern, text, sizeof(text)), "all a");
	pattern[sizeof(pattern) - 2] = 'b';
	CHECK(!glob_matches(pattern, text, sizeof(text)), "no b");
}

int main(void)
{
	for (size_t i = 0; i < COUNT(table); i++) {
		for (size_t k = 0; k < 4; k++) {
			const char *yes = table[i].yes[k];
			const char *no = table[i].no[k];

			CHECK(yes == NULL || glob_matches(table[i].pattern, yes,
							  strlen(yes)),
			      "%s: %s", table[i].pattern, yes);
			CHECK(no == NULL || !glob_matches(table[i].pattern, no,
							  strlen(no)),
			      "%s: %s", table[i].pattern, no);
		}
	}
	CHECK(glob_matches("a?b", "a\0b", 3), "a NUL is a byte");
	test_long();
	return check_result();
}
