/*
 * malloc(3) and its like, which always return memory. If the system has none left, the
 * process ends with EXIT_SYSTEM and a line that says so. The guard then stops
 * COMMAND, and the lease ends by itself. Going on would need memory everywhere.
 *
 * All of it is released by free(3).
 */
#ifndef BASE_ALLOC_H
#define BASE_ALLOC_H

#include <stddef.h>

/* Zeroed. */
void *xcalloc(size_t count, size_t size);

/* old may be NULL. */
void *xrealloc(void *old, size_t size);

/* If a library could not allocate. */
_Noreturn void memory_exhausted(void);

/* NULL of NULL. */
char *xstrdup(const char *text);

#endif
