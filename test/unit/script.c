/* No two KEYs share a record, and none is what is beside another. */
#include "../../src/lock/script.h"

#include <stdlib.h>

#include "check.h"

#define LONGEST 6
#define LETTERS "a{}:"
#define MANY 5460 /* 4 + 16 + ... + 4096 */

static char *names[MANY];
static size_t count;

static int compare(const void *one, const void *other)
{
	return strcmp(*(char *const *)one, *(char *const *)other);
}

static void check_key(const char *key)
{
	struct argument record =
		script_record_name((struct argument){key, strlen(key)});
	struct argument queue = script_name(record, ":queue");

	CHECK(script_is_reserved(record), "%s", record.data);
	CHECK(script_is_reserved(queue), "%s", queue.data);
	CHECK(!script_is_reserved((struct argument){key, strlen(key)}), "%s",
	      key);
	free((char *)queue.data);
	names[count++] = (char *)record.data;
}

static void check_all(char *key, size_t length)
{
	for (const char *letter = LETTERS; *letter && length < LONGEST;
	     letter++) {
		key[length] = *letter;
		key[length + 1] = '\0';
		check_key(key);
		check_all(key, length + 1);
	}
}

static bool reserved(const char *key)
{
	return script_is_reserved((struct argument){key, strlen(key)});
}

int main(void)
{
	static const char *const taken[] = {
		"{x}:redlock",
		"{x}:redlock:queue",
		"{x}:redlock:wishes",
		"{x}:redlock:00112233445566778899aabbccddeeff",
		"{x}redlock",
		"{x}redlock:queue",
		"{a}b}redlock",
		"{a}b}:redlock",
		"a{b}c:redlock",
		"a{b}:redlock:queue",
		"{}x}:redlock",
		"x}:redlock",
		"{}:redlock",
		"redlock:{x}:redlock",
		"{x}:redlock:redlock",
	};
	static const char *const ours[] = {
		"redlock",
		":redlock",
		"redlock:x",
		"x:redlock",
		"x:redlock:y",
		"{x}:redlocks",
		"{x}redlocked",
		"x{y}redlock",
		"{x}:my-redlock",
		"redlock{x}",
		"",
	};
	char key[LONGEST + 1];

	check_all(key, 0);
	CHECK(count == MANY, "%zu", count);
	qsort(names, count, sizeof(names[0]), compare);
	for (size_t i = 1; i < count; i++)
		CHECK(strcmp(names[i - 1], names[i]) != 0, "%s", names[i]);
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		CHECK(reserved(taken[i]), "%s", taken[i]);
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		CHECK(!reserved(ours[i]), "%s", ours[i]);
	return check_result();
}
