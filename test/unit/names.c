/* No two KEYs share a record, and none is what is beside another. */
#include "lock/names.h"

#include <stdlib.h>

#include "check.h"

#define LONGEST 6
#define LETTERS "a{}:"
#define MANY 5460 /* 4 + 16 + ... + 4096 */

static char *records[MANY];
static size_t count;

static int compare(const void *one, const void *other)
{
	return strcmp(*(char *const *)one, *(char *const *)other);
}

static void check_key(const char *key)
{
	struct names names;

	names_init(&names, key);
	CHECK(names_are_reserved(names.record), "%s", names.record.data);
	CHECK(names_are_reserved(names.queue), "%s", names.queue.data);
	CHECK(!names_are_reserved((struct argument){key, strlen(key)}), "%s",
	      key);
	records[count++] = strdup(names.record.data);
	names_release(&names);
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
	return names_are_reserved((struct argument){key, strlen(key)});
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
	qsort(records, count, sizeof(records[0]), compare);
	for (size_t i = 1; i < count; i++)
		CHECK(strcmp(records[i - 1], records[i]) != 0, "%s",
		      records[i]);
	for (size_t i = 0; i < count; i++)
		free(records[i]);
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		CHECK(reserved(taken[i]), "%s", taken[i]);
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		CHECK(!reserved(ours[i]), "%s", ours[i]);
	return check_result();
}
