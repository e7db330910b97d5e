/* What is a DURATION and what is none; how one is shown. */
#include "base/duration.h"

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
		{"3600", 3600000},
		{"3600s", 3600000},
		{"3601s", 3601000},
		{"30000ms", 30000},
		{"3153600000s", DURATION_MAX},
		{"1h30m", 5400000},
		{"4m30s", 270000},
		{"10min", 600000},
		{"30sec", 30000},
		{"1min30sec", 90000},
		{"1d2h3m4s5ms", 93784005},
		{"1m1.5s", 61500},
		{"0h0m", 0},
		{"90m90s", 5490000},
		{"3153600000000ms", DURATION_MAX},
	};

	for (size_t i = 0; i < COUNT(good); i++) {
		int64_t ms = -7;

		CHECK(duration_parse(good[i].text, &ms) == DURATION_OK, "'%s'",
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
		"+1",
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
		"1m5",
		"30s1m",
		"1s1s",
		"1min1m",
		"1.5h30m",
		"1h 30m",
		"1h-30m",
		"1h30",
		"h30m",
		"1h.m",
		"1hm",
		"1mins",
		"30secs",
		"1..5",
		"1.2.3",
		"5.5.s",
		"1,5",
		"1S",
		"1M",
		"1w",
		"1y",
		"1us",
		"1mss",
		"ms1",
		"-",
		"--1",
		"-x",
		"99999999999999999999x",
		"36501d36501d",
	};

	for (size_t i = 0; i < COUNT(bad); i++) {
		int64_t ms = -7;

		CHECK(duration_parse(bad[i], &ms) == DURATION_NONE,
		      "'%s' became %lld ms", bad[i], (long long)ms);
		CHECK(ms == -7, "'%s' is no DURATION, yet was stored as %lld",
		      bad[i], (long long)ms);
	}
}

/* Too much, or less than nothing. */
static void test_beyond(void)
{
	static const char *const beyond[] = {
		"-1",
		"-0",
		"36500d1ms",
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
		"-1h30m",
		"36499d24h1ms",
		"99999999999999999999d99999999999999999999h9999999999999999s",
	};

	for (size_t i = 0; i < COUNT(beyond); i++) {
		int64_t ms = -7;

		CHECK(duration_parse(beyond[i], &ms) == DURATION_BEYOND,
		      "'%s' is not said to be beyond", beyond[i]);
		CHECK(ms == -7, "'%s' was stored as %lld", beyond[i],
		      (long long)ms);
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

/* More seconds than a bare number may mean. */
static void test_unclear(void)
{
	static const char *const unclear[] = {
		"3601",  "3600.001",   "30000",     "86401",
		"99999", "3153600000", "0000009000"};

	for (size_t i = 0; i < COUNT(unclear); i++) {
		int64_t ms = -7;

		CHECK(duration_parse(unclear[i], &ms) == DURATION_UNCLEAR,
		      "'%s' is taken for clear", unclear[i]);
		CHECK(ms == -7, "'%s' was stored as %lld", unclear[i],
		      (long long)ms);
	}
}

int main(void)
{
	test_good();
	test_bad();
	test_beyond();
	test_unclear();
	test_format();
	return check_result();
}
