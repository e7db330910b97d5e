#include "wait/message.h"

#include <stdlib.h>
#include <string.h>

#include "lock/lock.h"

static bool read_number(const char **text, int64_t *number)
{
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	*number = strtoll(*text, &end, 10);
	*text = *end == ' ' ? end + 1 : end;
	return (*end == ' ' || *end == '\0') && *number <= FENCE_LARGEST;
}

bool message_parse(struct message *message, const char *text, size_t length)
{
	char copy[128], *hold;
	const char *at = copy;

	if (length >= sizeof(copy))
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	message->age = 0;
	if (!read_number(&at, &message->request) ||
	    !read_number(&at, &message->fence) ||
	    !read_number(&at, &message->lease))
		return false;
	hold = copy + (at - copy);
	at = hold + strcspn(hold, " ");
	if (*at == ' ') {
		hold[at++ - hold] = '\0';
		if (!read_number(&at, &message->age) || *at != '\0')
			return false;
	}
	return strlcpy(message->hold, hold, sizeof(message->hold)) <
	       sizeof(message->hold);
}
