/*
 * Bytes that grow as more are appended, and a NUL after them. A zeroed buffer
 * is empty: its data is NULL until something is appended, and after a release.
 * If there is no memory left the process ends (alloc.h).
 */
#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include <stddef.h>

struct buffer {
	char *data; /* owned; ends with a NUL that length does not count */
	size_t length, size;
};

void buffer_release(struct buffer *buffer);

/* Makes room for that many bytes more. */
void buffer_reserve(struct buffer *buffer, size_t more);

void buffer_append(struct buffer *buffer, const void *data, size_t length);
void buffer_print(struct buffer *buffer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
