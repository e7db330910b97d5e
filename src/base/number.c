#include "base/number.h"

#include <stdbool.h>

int number_read(const char **text, int64_t least, int64_t most, int64_t *number)
{
	const char *at = *text;
	bool minus = least < 0 && *at == '-';
	int64_t value = 0; /* below 0: there is one more of these */

	at += minus;
	if (*at < '0' || *at > '9')
		return -1;
	for (; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_sub_overflow(value, *at - '0', &value))
			return -1;
	if (!minus && __builtin_sub_overflow(INT64_C(0), value, &value))
		return -1;
	if (value < least || value > most)
		return -1;
	*number = value;
	*text = at;
	return 0;
}

int number_parse(const char *text, int64_t least, int64_t most, int64_t *number)
{
	int64_t value;

	if (number_read(&text, least, most, &value) < 0 || *text != '\0')
		return -1;
	*number = value;
	return 0;
}
