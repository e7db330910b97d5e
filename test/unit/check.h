/*
 * The few lines that a unit test needs: CHECK says what is wrong and where,
 * goes on, and check_result makes the exit status of it.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <string.h>

static int check_failures;

#define CHECK(condition, ...)                                            \
	do {                                                             \
		if (!(condition)) {                                      \
			fprintf(stderr, "%s:%d: not so: %s: ", __FILE__, \
				__LINE__, #condition);                   \
			fprintf(stderr, __VA_ARGS__);                    \
			fputc('\n', stderr);                             \
			check_failures++;                                \
		}                                                        \
	} while (0)

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static inline int same(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static inline const char *shown(const char *text)
{
	return text == NULL ? "(none)" : text;
}

static inline int check_result(void)
{
	return check_failures != 0;
}

#endif
