#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

void buffer_reserve(struct buffer *buffer, size_t more)
{
	size_t need = buffer->length + more + 1;

	if (need <= buffer->size)
		return;
	if (need < 2 * buffer->size)
		need = 2 * buffer->size;
	if (need < 256)
		need = 256;
	buffer->data = xrealloc(buffer->data, need);
	buffer->size = need;
}

void buffer_release(struct buffer *buffer)
{
	free(buffer->data);
	*buffer = (struct buffer){0};
}

void buffer_append(struct buffer *buffer, const void *data, size_t length)
{
	buffer_reserve(buffer, length);
	if (length > 0)
		memcpy(buffer->data + buffer->length, data, length);
	buffer->length += length;
	buffer->data[buffer->length] = '\0';
}

void buffer_print(struct buffer *buffer, const char *format, ...)
{
	va_list arguments, again;
	size_t left = buffer->size - buffer->length;
	int length;

	va_start(arguments, format);
	va_copy(again, arguments);
	length = vsnprintf(left > 0 ? buffer->data + buffer->length : NULL,
			   left, format, arguments);
	if (length > 0 && (size_t)length >= left) {
		buffer_reserve(buffer, (size_t)length);
		vsnprintf(buffer->data + buffer->length, (size_t)length + 1,
			  format, again);
	}
	if (length > 0)
		buffer->length += (size_t)length;
	va_end(again);
	va_end(arguments);
}
