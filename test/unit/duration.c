/* What is a DURATION and what is none; how one is shown. */
#include "../../src/duration.h"

#include "check.h"

static void test_good(void)
{
	static const struct {
		const char *text;
		long long ms;
	} good[] = {
		{"0", 0},
		{"1", 1000},
		{"500ms", 500},
		{"1.5", 1500},
		{".5", 500},
		{"2m", 120000},
		{"1h", 3600000},
		{"1d", 86400000},
		{"1.5ms", 1},
		{"0.001", 1},
		{"0.0009", 0},
		{"0.25h", 900000},
		{".5d", 43200000},
		{"007", 7000},
		{"0.0s", 0},
		{"90s", 90000},
		{"1.25s", 1250},
		{"36500d", DURATION_MAX},
		{"3153600000", DURATION_MAX},
		{"3153600000000ms", DURATION_MAX},
	};

	for (size_t i = 0; i < COUNT(good); i++) {
		int64_t ms = -7;

		CHECK(duration_parse(good[i].text, &ms) == 0, "'%s'",
		      good[i].text);
		CHECK(ms == good[i].ms, "'%s' is %lld ms, not %lld",
		      good[i].text, (long long)ms, good[i].ms);
	}
}

static void test_bad(void)
{
	static const char *const bad[] = {
		"",
		" ",
		".",
		"s",
		"ms",
		".s",
		"-1",
		"+1",
		"-0",
		" 1",
		"1 ",
		"1 s",
		"1\n",
		"1e3",
		"1E3",
		"0x10",
		"nan",
		"NaN",
		"inf",
		"infinity",
		"10m5",
		"1m30s",
		"1..5",
		"1.2.3",
		"5.5.s",
		"1,5",
		"1sec",
		"1S",
		"1M",
		"1min",
		"1w",
		"1y",
		"1us",
		"1mss",
		"ms1",
		"36501d",
		"999999999d",
		"3153600001",
		"3153600000001ms",
		"9223372036854775807",
		"9223372036854775808",
		"18446744073709551616",
		"18446744073709551617ms",
		"99999999999999999999999999999999999999999",
		"36500.9d",
		"3153600000.5",
	};

	for (size_t i = 0; i < COUNT(bad); i++) {
		int64_t ms = -7;

		CHECK(duration_parse(bad[i], &ms) == -1, "'%s' became %lld ms",
		      bad[i], (long long)ms);
		CHECK(ms == -7, "'%s' is no DURATION, yet was stored as %lld",
		      bad[i], (long long)ms);
	}
}

static void test_format(void)
{
	static const struct {
		long long ms;
		const char *text;
	} shown_as[] = {
		{0, "0ms"},          {250, "250ms"},
		{999, "999ms"},      {1000, "1s"},
		{1500, "1.5s"},      {21000, "21s"},
		{59999, "59s"},      {60000, "1m00s"},
		{250000, "4m10s"},   {3599999, "59m59s"},
		{3600000, "1h00m"},  {10920000, "3h02m"},
		{446400000, "5d4h"}, {DURATION_MAX, "36500d0h"},
	};
	char text[DURATION_TEXT];

	for (size_t i = 0; i < COUNT(shown_as); i++)
		CHECK(same(duration_format(text, shown_as[i].ms),
			   shown_as[i].text),
		      "%lld ms is shown as '%s'", shown_as[i].ms, text);
	CHECK(strlen(duration_format(text, INT64_MAX)) < DURATION_TEXT, "%s",
	      text);
}

int main(void)
{
	test_good();
	test_bad();
	test_format();
	return check_result();
}
