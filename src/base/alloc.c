#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

/* log.c would need memory. */
void memory_exhausted(void)
{
	static const char line[] = "redlock: out of memory\n";

	(void)!write(STDERR_FILENO, line, sizeof(line) - 1);
	_exit(EXIT_SYSTEM);
}

static void *check(void *memory)
{
	if (memory == NULL)
		memory_exhausted();
	return memory;
}

void *xcalloc(size_t count, size_t size)
{
	return check(calloc(count, size));
}

void *xrealloc(void *old, size_t size)
{
	return check(realloc(old, size));
}

char *xstrdup(const char *text)
{
	return text != NULL ? check(strdup(text)) : NULL;
}
