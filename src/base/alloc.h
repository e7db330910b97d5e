/*
 * Memory that is there: where the system has none left, the process ends with
 * EXIT_SYSTEM and a line that says so. COMMAND is then stopped by its guard,
 * and the lease ends by itself; going on would need memory everywhere.
 *
 * All of it is released by free(3).
 */
#ifndef HEAP_H
#define HEAP_H

#include <stddef.h>

/* Zeroed. */
void *heap_get(size_t count, size_t size);

/* Instead of old, which may be NULL. */
void *heap_grow(void *old, size_t size);

/* For memory that others allocate. */
_Noreturn void heap_exhausted(void);

/* NULL of NULL. */
char *heap_copy(const char *text);

#endif
