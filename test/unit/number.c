/* Numbers are digits, and within their bounds. */
#include "base/number.h"

#include <limits.h>
#include <stdlib.h>

#include "check.h"

static void test_good(void)
{
	static const struct {
		const char *text;
		int64_t least, most, number;
	} good[] = {
		{"0", 0, 0, 0},
		{"00", 0, 9, 0},
		{"007", 0, 7, 7},
		{"65535", 1, 65535, 65535},
		{"9223372036854775807", 0, INT64_MAX, INT64_MAX},
		{"00000000000000000000000001", 0, 1, 1},
		{"-1", -1, 0, -1},
		{"-0", -1, 0, 0},
		{"-9223372036854775808", INT64_MIN, 0, INT64_MIN},
	};

	for (size_t i = 0; i < COUNT(good); i++) {
		int64_t number = 77;

		CHECK(number_parse(good[i].text, good[i].least, good[i].most,
				   &number) == 0,
		      "'%s'", good[i].text);
		CHECK(number == good[i].number, "'%s' is %lld", good[i].text,
		      (long long)number);
	}
}

static void test_bad(void)
{
	static const struct {
		const char *text;
		int64_t least, most;
	} bad[] = {
		{"", 0, 9},
		{" 1", 0, 9},
		{"1 ", 0, 9},
		{"+1", -9, 9},
		{"-1", 0, 9},
		{"-", -9, 9},
		{"--1", -9, 9},
		{"0x1", 0, 9},
		{"1.0", 0, 9},
		{"1e1", 0, 99},
		{"/", 0, 9},
		{":", 0, 9},
		{"10", 0, 9},
		{"0", 1, 9},
		{"-2", -1, 9},
		{"9223372036854775808", 0, INT64_MAX},
		{"-9223372036854775809", INT64_MIN, 0},
		{"18446744073709551616", 0, INT64_MAX},
		{"18446744073709551617", 0, INT64_MAX},
		{"99999999999999999999999999", 0, INT64_MAX},
	};

	for (size_t i = 0; i < COUNT(bad); i++) {
		int64_t number = 77;

		CHECK(number_parse(bad[i].text, bad[i].least, bad[i].most,
				   &number) < 0,
		      "'%s'", bad[i].text);
		CHECK(number == 77, "'%s' was stored as %lld", bad[i].text,
		      (long long)number);
	}
}

/* What is not read stays where it is. */
static void test_read(void)
{
	const char *text = "12 -3x";
	int64_t number = 77;

	CHECK(number_read(&text, 0, 99, &number) == 0 && number == 12, "%s",
	      text);
	CHECK(same(text, " -3x"), "%s", text);
	CHECK(number_read(&text, -9, 9, &number) < 0 && number == 12, "%s",
	      text);
	CHECK(same(text, " -3x"), "%s", text);
	text++;
	CHECK(number_read(&text, -2, 9, &number) < 0 && number == 12, "%s",
	      text);
	CHECK(number_read(&text, -3, 9, &number) == 0 && number == -3, "%s",
	      text);
	CHECK(same(text, "x"), "%s", text);
}

int main(void)
{
	test_good();
	test_bad();
	test_read();
	return check_result();
}
