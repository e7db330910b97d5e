/* Patterns: what matches, what does not, and that none takes long. */
#include "../../src/base/glob.h"

#include <fnmatch.h>
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
	{"[c-a]x", {NULL}, {"ax", "bx", "cx", "-x"}},
	{"[a-]", {"a", "-"}, {"c", "]", "d"}},
	{"[]", {"[]"}, {"", "a", "[", "]"}},
	{"[^]", {"[^]"}, {"", "a", "^", "]"}},
	{"[a\\]b]", {"a", "]", "b"}, {"\\", "c"}},
	{"[a", {"[a"}, {"a", "b", ""}},
	{"[!a]*", {"b", "!", "]"}, {"a", "ab", ""}},
	{"[!a-c]", {"d", "!"}, {"a", "b", "c"}},
	{"[a!]", {"a", "!"}, {"b", ""}},
	{"[]a]", {"]", "a"}, {"[", "b"}},
	{"[!]a]", {"[", "b"}, {"]", "a"}},
	{"[]-a]", {"]", "^", "a"}, {"-", "b"}},
	{"[-a]", {"-", "a"}, {"b"}},
	{"[a-c-e]", {"b", "-", "e"}, {"d"}},
	{"[[]", {"["}, {"]", "[["}},
	{"[[:digit:]x]", {"0", "9", "x"}, {":", "d", "["}},
	{"[![:alpha:]]", {"0", "-"}, {"a", "Z"}},
	{"[[:digit]", {"[", ":", "d"}, {"0", "]"}},
	{"[[.-.]0]", {"-", "0"}, {".", "["}},
	{"[[=a=]]", {"a"}, {"=", "["}},
	{"[[.a.]-c]", {"a", "b", "c"}, {"d", "-"}},
	{"[\\!a]", {"!", "a"}, {"b", "\\"}},
	{"a\\*b", {"a*b"}, {"axb", "a\\*b"}},
	{"a\\\\b", {"a\\b"}, {"ab", "a\\\\b"}},
	{"a\\", {"a\\"}, {"a", "ab"}},
	{"*\\", {"a\\", "\\"}, {"a", ""}},
	{"*[0-9]*", {"x1", "1x", "1"}, {"x", ""}},
};

/* The same as fnmatch(3), for what both know. */
static void test_same(void)
{
	static const char *const pieces[] = {
		"a", "b",     "c",  "-",  "!",          "^",   "*",   "?",  "[",
		"]", "[a-c]", "[!", "[^", "[[:alpha:]", "\\a", "\\]", "[]", "0",
	};
	static const char bytes[] = "abc-!^[]0:";
	unsigned seed = 1;

	for (int n = 0; n < 300000; n++) {
		char pattern[128] = "", text[5] = "";
		size_t count = 1 + (size_t)rand_r(&seed) % 5;
		size_t length = (size_t)rand_r(&seed) % 4;
		int want;

		while (count-- > 0)
			strcat(pattern,
			       pieces[(size_t)rand_r(&seed) % COUNT(pieces)]);
		for (size_t i = 0; i < length; i++)
			text[i] = bytes[(size_t)rand_r(&seed) %
					(sizeof(bytes) - 1)];
		want = fnmatch(pattern, text, 0);
		CHECK(glob_matches(pattern, text, length) == (want == 0),
		      "'%s' and '%s': %d", pattern, text, want);
		if (check_failures > 20)
			return;
	}
}

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
	test_same();
	test_long();
	return check_result();
}
