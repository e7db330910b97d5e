#include "message.h"

#include <stdlib.h>
#include <string.h>

#include "lock.h"

static bool read_number(const char **text, int64_t *number)
{
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	*number = strtoll(*text, &end, 10);
	*text = end + 1;
	return *end == ' ' && *number <= FENCE_LARGEST;
}

bool message_parse(struct message *message, const char *text, size_t length)
{
	char copy[128];
	const char *at = copy;

	if (length >= sizeof(copy))
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	return read_number(&at, &message->request) &&
	       read_number(&at, &message->fence) &&
	       read_number(&at, &message->lease) &&
	       strlcpy(message->hold, at, sizeof(message->hold)) <
		       sizeof(message->hold);
}
