#include "resp.h"

#include <string.h>

#include <hiredis.h>

#include "heap.h"

void resp_format(struct buffer *to, const struct argument *arguments,
		 size_t count)
{
	const char *data[ARGUMENTS_MAX];
	size_t length[ARGUMENTS_MAX];
	char *command;
	int size;

	for (size_t i = 0; i < count; i++) {
		data[i] = arguments[i].data;
		length[i] = arguments[i].length;
	}
	size = (int)redisFormatCommandArgv(&command, (int)count, data, length);
	if (size < 0)
		heap_exhausted();
	buffer_append(to, command, (size_t)size);
	explicit_bzero(command, (size_t)size);
	redisFreeCommand(command);
}
