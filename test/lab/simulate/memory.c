/*
 * In place of malloc(3): a simulated world allocates much, in one thread, and ends soon.
 * Blocks of one size class are used again; nothing is given back to the system. It makes
 * a run half as long.
 */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CHUNK ((size_t)4 << 20)
#define SMALLEST 4 /* 2^4 bytes, with the header */
#define CLASSES 60

struct block {
	size_t class; /* in front of what is handed out */
	struct block *next;
};

static struct block *unused[CLASSES];
static char *chunk;
static size_t left;

/* Two classes for each power of two: 2^n and 3 * 2^(n-1). */
static size_t class_of(size_t size)
{
	size_t n = (size_t)(63 - __builtin_clzll(size - 1));

	return 2 * n + (size > ((size_t)3 << (n - 1)));
}

static size_t size_of(size_t class)
{
	return class % 2 == 0 ? (size_t)3 << (class / 2 - 1)
			      : (size_t)2 << (class / 2);
}

static char *from_system(size_t size)
{
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static struct block *carve(size_t size)
{
	char *at = chunk;

	if (size > CHUNK / 4)
		return (struct block *)from_system(size);
	if (left < size) {
		at = chunk = from_system(CHUNK);
		left = chunk != NULL ? CHUNK : 0;
		if (chunk == NULL)
			return NULL;
	}
	chunk += size;
	left -= size;
	return (struct block *)at;
}

void *malloc(size_t size)
{
	size_t class = class_of(size + 16 < 32 ? 32 : size + 16);
	struct block *block;

	if (size > SIZE_MAX / 4 || class >= 2 * CLASSES)
		return NULL;
	class -= 2 * SMALLEST;
	block = class < CLASSES ? unused[class] : NULL;
	if (block != NULL) {
		unused[class] = block->next;
		return (char *)block + 16;
	}
	block = carve((size_of(class + 2 * SMALLEST) + 15) & ~(size_t)15);
	if (block == NULL) {
		errno = ENOMEM;
		return NULL;
	}
	block->class = class;
	return (char *)block + 16;
}

void free(void *memory)
{
	struct block *block;

	if (memory == NULL)
		return;
	block = (struct block *)((char *)memory - 16);
	block->next = unused[block->class];
	unused[block->class] = block;
}

size_t malloc_usable_size(void *memory)
{
	const struct block *block = (struct block *)((char *)memory - 16);

	return memory == NULL ? 0 : size_of(block->class + 2 * SMALLEST) - 16;
}

void *calloc(size_t count, size_t size)
{
	size_t all;
	void *memory;

	if (__builtin_mul_overflow(count, size, &all))
		return NULL;
	memory = malloc(all);
	if (memory != NULL)
		memset(memory, 0, all);
	return memory;
}

void *realloc(void *memory, size_t size)
{
	size_t has = malloc_usable_size(memory);
	void *other;

	if (memory != NULL && size <= has)
		return memory;
	other = malloc(size);
	if (other == NULL)
		return NULL;
	memcpy(other, memory != NULL ? memory : other, has);
	free(memory);
	return other;
}
