/* Hostile bytes on their way to a terminal, a JSON text and a shell. */
#include "base/output.h"

#include <stdlib.h>

#include "check.h"

#define BYTES(text) (text), sizeof(text) - 1

static void check_visible(int utf8, const char *text, size_t length,
			  const char *wanted)
{
	struct buffer buffer = {0};

	output_visible(&buffer, text, length, utf8);
	CHECK(same(buffer.data, wanted), "became '%s', not '%s'",
	      shown(buffer.data), wanted);
	CHECK(buffer.length == strlen(wanted), "length %zu", buffer.length);
	buffer_release(&buffer);
}

static void test_visible(void)
{
	check_visible(0, BYTES(""), "");
	check_visible(0, BYTES("plain 'text' ~"), "plain 'text' ~");
	check_visible(0, BYTES("a\nb\tc\rd\033[31m"), "a\\nb\\tc\\rd\\e[31m");
	check_visible(0, BYTES("\x01\x7f"), "\\x01\\x7f");
	check_visible(1, BYTES("nul\0nul"), "nul\\x00nul");
	check_visible(0, BYTES("gr\xc3\xbc\xc3\x9f"), "gr\\xc3\\xbc\\xc3\\x9f");
	check_visible(1,
		      BYTES("gr\xc3\xbc\xc3\x9f \xe2\x82\xac "
			    "\xf0\x9f\x94\x92"),
		      "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\x92");
	/* C1 controls (CSI), right-to-left override, zero width, line
	 * separator, byte order mark, tags: they hide or turn text around */
	check_visible(1,
		      BYTES("\xc2\x9b"
			    "31m"),
		      "\\xc2\\x9b31m");
	check_visible(1, BYTES("\xe2\x80\xae"), "\\xe2\\x80\\xae");
	check_visible(1, BYTES("\xe2\x80\x8b"), "\\xe2\\x80\\x8b");
	check_visible(1, BYTES("\xe2\x80\xa8"), "\\xe2\\x80\\xa8");
	check_visible(1, BYTES("\xe2\x81\xa6"), "\\xe2\\x81\\xa6");
	check_visible(1, BYTES("\xef\xbb\xbf"), "\\xef\\xbb\\xbf");
	check_visible(1, BYTES("\xf3\xa0\x80\x81"), "\\xf3\\xa0\\x80\\x81");
	/* not UTF-8: lone, overlong, surrogate, too large, cut short */
	check_visible(1, BYTES("\xff\xfe"), "\\xff\\xfe");
	check_visible(1, BYTES("\x80"), "\\x80");
	check_visible(1, BYTES("\xc0\x9b"), "\\xc0\\x9b");
	check_visible(1, BYTES("\xe0\x80\x9b"), "\\xe0\\x80\\x9b");
	check_visible(1, BYTES("\xed\xa0\x80"), "\\xed\\xa0\\x80");
	check_visible(1, BYTES("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
	check_visible(1, BYTES("\xe2\x82"), "\\xe2\\x82");
	check_visible(1, BYTES("\xe2\n"), "\\xe2\\n");
}

static void check_label(const char *text, size_t length, const char *wanted)
{
	struct buffer buffer = {0};

	output_label(&buffer, text, length);
	CHECK(same(buffer.data, wanted), "became '%s', not '%s'",
	      shown(buffer.data), wanted);
	CHECK(buffer.length == strlen(wanted), "length %zu", buffer.length);
	buffer_release(&buffer);
}

/* Two texts that differ are two labels. */
static void test_label(void)
{
	check_label(BYTES(""), "\"\"");
	check_label(BYTES("plain 'text' {a=b}"), "\"plain 'text' {a=b}\"");
	check_label(BYTES("gr\xc3\xbc\xc3\x9f"), "\"gr\xc3\xbc\xc3\x9f\"");
	check_label(BYTES("a\"b"), "\"a\\\"b\"");
	check_label(BYTES("a\nb"), "\"a\\\\nb\"");
	check_label(BYTES("a\\nb"), "\"a\\\\\\\\nb\"");
	check_label(BYTES("\xff"), "\"\\\\xff\"");
	check_label(BYTES("\\xff"), "\"\\\\\\\\xff\"");
	check_label(BYTES("\\"), "\"\\\\\\\\\"");
	check_label(BYTES("\\\\"), "\"\\\\\\\\\\\\\\\\\"");
	check_label(BYTES("a\0b"), "\"a\\\\x00b\"");
	check_label(BYTES("\xe2\\"), "\"\\\\xe2\\\\\\\\\"");
}

static void test_utf8(void)
{
	static const struct {
		const char *all, *ctype, *lang;
		int utf8;
	} list[] = {
		{"", "", "", 0},
		{"C", "", "en_US.UTF-8", 0},
		{"", "C", "en_US.UTF-8", 0},
		{"", "", "en_US.UTF-8", 1},
		{"C.UTF-8", "C", "C", 1},
		{"", "de_DE.utf8", "C", 1},
		{"", "", "POSIX", 0},
		{"", "", "de_DE.ISO-8859-1", 0},
	};

	for (size_t i = 0; i < COUNT(list); i++) {
		setenv("LC_ALL", list[i].all, 1);
		setenv("LC_CTYPE", list[i].ctype, 1);
		setenv("LANG", list[i].lang, 1);
		CHECK(output_utf8() == list[i].utf8, "row %zu", i);
	}
}

static void check_json(const char *text, size_t length, const char *wanted)
{
	struct buffer buffer = {0};

	output_json(&buffer, text, length);
	CHECK(same(buffer.data, wanted), "became %s, not %s",
	      shown(buffer.data), wanted);
	buffer_release(&buffer);
}

static void test_json(void)
{
	check_json(BYTES(""), "\"\"");
	check_json(BYTES("a b"), "\"a b\"");
	check_json(BYTES("\"\\/"), "\"\\\"\\\\/\"");
	check_json(BYTES("a\nb\0c\033"), "\"a\\u000ab\\u0000c\\u001b\"");
	check_json(BYTES("\xc3\xbc\xf0\x9f\x94\x92"),
		   "\"\xc3\xbc\xf0\x9f\x94\x92\"");
	/* DEL, CSI, soft hyphen, overrides, isolates, marks, separators, a tag */
	check_json(BYTES("\x7f\xc2\x9b\xc2\xad"), "\"\\u007f\\u009b\\u00ad\"");
	check_json(BYTES("\xe2\x80\xaa\xe2\x80\xae"), "\"\\u202a\\u202e\"");
	check_json(BYTES("\xe2\x81\xa6\xe2\x81\xa9"), "\"\\u2066\\u2069\"");
	check_json(BYTES("\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c"),
		   "\"\\u200e\\u200f\\u061c\"");
	check_json(BYTES("\xe2\x80\xa8\xe2\x80\xa9"), "\"\\u2028\\u2029\"");
	check_json(BYTES("\xef\xbb\xbf\xf3\xa0\x80\x81"),
		   "\"\\ufeff\\udb40\\udc01\"");
	check_json(BYTES("\xff"
			 "a\xc3"),
		   "\"\\ufffda\\ufffd\"");
	check_json(BYTES("\xed\xa0\x80"), "\"\\ufffd\\ufffd\\ufffd\"");
}

/* Whatever people would see escaped, programs do, too, and nothing else. */
static void test_points(void)
{
	struct buffer visible = {0}, json = {0};

	for (unsigned point = 0x80; point < 0x110000; point++) {
		char text[5] = {0};
		size_t size = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;

		if (point == 0xd800)
			point = 0xe000;
		for (size_t i = size; i-- > 1;)
			text[i] = (char)(0x80 |
					 (point >> 6 * (size - 1 - i) & 0x3f));
		text[0] = (char)((0xf00 >> size & 0xff) |
				 point >> 6 * (size - 1));
		visible.length = json.length = 0;
		output_visible(&visible, text, size, 1);
		output_json(&json, text, size);
		CHECK((visible.data[0] == '\\') == (json.data[1] == '\\'),
		      "U+%04X: %s, %s", point, visible.data, json.data);
	}
	buffer_release(&visible);
	buffer_release(&json);
}

static void check_shell(const char *text, const char *wanted)
{
	struct buffer buffer = {0};

	output_shell(&buffer, text);
	CHECK(same(buffer.data, wanted), "became %s, not %s",
	      shown(buffer.data), wanted);
	buffer_release(&buffer);
}

static void test_shell(void)
{
	check_shell("", "''");
	check_shell("a b", "'a b'");
	check_shell("$(x) `y` \\ \" ! \n*", "'$(x) `y` \\ \" ! \n*'");
	check_shell("a'b", "'a'\\''b'");
	check_shell("''", "''\\'''\\'''");
	check_shell("\xff", "'\xff'");
}

/* Growing past each size keeps what is there and the NUL behind it. */
static void test_buffer(void)
{
	struct buffer buffer = {0};

	for (int i = 0; i < 5000; i++)
		buffer_print(&buffer, "%c", 'a' + i % 26);
	buffer_append(&buffer, "\0x", 2);
	buffer_append(&buffer, NULL, 0);
	buffer_print(&buffer, "%s", "");
	CHECK(buffer.length == 5002 && buffer.data[5002] == '\0', "%zu",
	      buffer.length);
	CHECK(buffer.data[4999] == 'a' + 4999 % 26 &&
		      memcmp(buffer.data + 5000, "\0x", 3) == 0,
	      "contents");
	buffer_release(&buffer);
	CHECK(buffer.data == NULL && buffer.length == 0, "released");
}

static void test_wrap(void)
{
	static const struct {
		const char *before, *text;
		size_t columns;
		const char *wanted;
	} table[] = {
		{"", "one two three", 0, "one two three"},
		{"", "one two three", 13, "one two three"},
		{"", "one two three", 12, "one two\n  three"},
		{"", "one two three", 7, "one two\n  three"},
		{"", "one two three", 6, "one\n  two\n  three"},
		{"", "one two three", 1, "one\n  two\n  three"},
		{"x\nab ", "one two", 8, "x\nab one\n  two"},
		{"", "  one  two", 7, "  one\n  two"},
		{"", "\xc3\xbc\xc3\xbc \xc3\xbc", 4,
		 "\xc3\xbc\xc3\xbc \xc3\xbc"},
		{"", "", 4, ""},
	};

	for (size_t i = 0; i < COUNT(table); i++) {
		struct buffer text = {0};

		buffer_print(&text, "%s", table[i].before);
		buffer_append(&text, "", 0);
		output_wrap(&text, table[i].text, strlen(table[i].text),
			    table[i].columns, 2);
		CHECK(same(text.data, table[i].wanted), "%zu: '%s'", i,
		      shown(text.data));
		buffer_release(&text);
	}
}

/* Characters of two columns end with the third plane. */
static void test_width(void)
{
	struct buffer text = {0};

	buffer_append(&text, "", 0);
	output_wrap(&text, "a \xf0\xbf\xbf\xbd", 6, 3, 0);
	CHECK(same(text.data, "a\n\xf0\xbf\xbf\xbd"), "'%s'", shown(text.data));
	buffer_release(&text);
	buffer_append(&text, "", 0);
	output_wrap(&text, "a \xf1\x80\x80\x80", 6, 3, 0);
	CHECK(same(text.data, "a \xf1\x80\x80\x80"), "'%s'", shown(text.data));
	buffer_release(&text);
}

/* Before the third plane, too, and between those that take one column. */
static void test_widths(void)
{
	static const struct {
		const char *text;
		size_t columns;
	} table[] = {
		{"a", 1},
		{"\u00e9", 1},
		{"\u1100", 2},
		{"\u2319\u231a\u231b\u231c", 6},
		{"\u23e9\u23ec\u23ed", 5},
		{"\u2614\u2648\u2653\u2654", 7},
		{"\u26a0\u26a1\u26a2", 4},
		{"\u2704\u2705\u2706", 4},
		{"\u2b4f\u2b50\u2b51\u2b55", 6},
		{"\u2e7f\u2e80\u6f22\uac00\ufe10\uff21", 11},
		{"\U0001b000\U0001f600", 4},
	};

	for (size_t i = 0; i < COUNT(table); i++) {
		size_t columns =
			output_width(table[i].text, strlen(table[i].text));

		CHECK(columns == table[i].columns, "'%s': %zu", table[i].text,
		      columns);
	}
}

int main(void)
{
	test_width();
	test_widths();
	test_visible();
	test_label();
	test_utf8();
	test_json();
	test_points();
	test_shell();
	test_buffer();
	test_wrap();
	return check_result();
}
