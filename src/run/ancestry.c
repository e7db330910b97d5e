#include "run/ancestry.h"

#include <string.h>

static void encode(struct buffer *held, const char *text)
{
	for (; *text; text++)
		if (strchr(" %=", *text) != NULL ||
		    (unsigned char)*text < 0x20 || *text == 0x7f)
			buffer_print(held, "%%%02X", (unsigned char)*text);
		else
			buffer_append(held, text, 1);
}

void held_append(struct buffer *held, const char *key, const char *token)
{
	if (held->length > 0)
		buffer_append(held, " ", 1);
	encode(held, key);
	buffer_append(held, "=", 1);
	buffer_append(held, token, strlen(token));
}

void held_mark(char mark[HELD_MARK], const char *key, const char *token)
{
	struct buffer entry = {0};

	held_append(&entry, key, token);
	strlcpy(mark,
		entry.length < HELD_MARK
			? entry.data
			: entry.data + entry.length - HELD_MARK + 1,
		HELD_MARK);
	buffer_release(&entry);
}

bool held_find(const char *held, const char *key, char *token, size_t size)
{
	struct buffer wanted = {0};
	bool found = false;

	encode(&wanted, key);
	buffer_append(&wanted, "=", 1);
	while (held != NULL && *held != '\0') {
		size_t length = strcspn(held, " ");
		const char *value = held + wanted.length;

		if (length > wanted.length && length - wanted.length < size &&
		    memcmp(held, wanted.data, wanted.length) == 0) {
			memcpy(token, value, length - wanted.length);
			token[length - wanted.length] = '\0';
			found = true;
		}
		held += length + strspn(held + length, " ");
	}
	buffer_release(&wanted);
	return found;
}
