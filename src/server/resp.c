#include "server/resp.h"

#include <stdbool.h>

#define LINE 24 /* bytes of a length, and of the ends of lines around it */

static void add_line(struct buffer *to, char kind, size_t number)
{
	char line[LINE], *at = line + sizeof(line);
	size_t size;

	*--at = '\n';
	*--at = '\r';
	do
		*--at = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	*--at = kind;
	size = (size_t)(line + sizeof(line) - at);
	buffer_append(to, at, size);
}

/* How many of the array belong to the argument at its beginning. */
static size_t span(const struct argument *argument)
{
	return argument->data == NULL ? 1 + argument->length : 1;
}

static void add(struct buffer *to, const struct argument *argument)
{
	const struct argument *end = argument + span(argument);
	size_t length = 0;

	if (argument->data == NULL)
		argument++;
	for (const struct argument *part = argument; part < end; part++)
		length += part->length;
	add_line(to, '$', length);
	for (; argument < end; argument++)
		buffer_append(to, argument->data, argument->length);
	buffer_append(to, "\r\n", 2);
}

void resp_format(struct buffer *to, const struct argument *arguments,
		 size_t count)
{
	size_t words = 0, length = (count + 1) * 2 * LINE;

	for (size_t i = 0; i < count; i += span(&arguments[i]))
		words++;
	for (size_t i = 0; i < count; i++)
		if (arguments[i].data != NULL)
			length += arguments[i].length;
	buffer_reserve(to, length);
	add_line(to, '*', words);
	for (size_t i = 0; i < count; i += span(&arguments[i]))
		add(to, &arguments[i]);
}
