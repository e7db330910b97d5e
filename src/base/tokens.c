#include "base/tokens.h"

#include <string.h>

static bool are_equal(const char *const *tokens, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (strcmp(tokens[0], tokens[i]) != 0)
			return false;
	return true;
}

void tokens_join(struct buffer *text, const char *const *tokens, size_t count)
{
	size_t shown = are_equal(tokens, count) ? 1 : count;

	for (size_t i = 0; i < shown; i++)
		buffer_print(text, "%s%s", i > 0 ? "=" : "", tokens[i]);
}

size_t tokens_count(const char *text, size_t count)
{
	size_t found = 0, length, drawn = 0;

	do {
		length = strcspn(text, "=");
		drawn += length == TOKEN_DIGITS &&
			 strspn(text, "0123456789abcdef") == length;
		found++;
		text += length;
	} while (*text++ == '=');
	return count == 1 && drawn < found ? 1 : found;
}

bool tokens_pick(const char *text, size_t count, size_t i,
		 char token[TOKEN_LONGEST + 1])
{
	size_t found = tokens_count(text, count), length = strlen(text);

	if (found != 1 && found != count)
		return false;
	if (found > 1) {
		while (i-- > 0)
			text = strchr(text, '=') + 1;
		length = strcspn(text, "=");
	}
	if (length == 0 || length > TOKEN_LONGEST)
		return false;
	memcpy(token, text, length);
	token[length] = '\0';
	return true;
}
