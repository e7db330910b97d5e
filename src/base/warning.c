#include "base/warning.h"

#include <string.h>

static const char warning_names[WARNINGS][13] = {
	[WARNING_RIGHTS] = "rights",
	[WARNING_SUBSCRIPTION] = "subscription",
	[WARNING_EVICTION] = "eviction",
	[WARNING_RESTART] = "restart",
	[WARNING_DEFAULT] = "default",
	[WARNING_CLOCK] = "clock",
	[WARNING_SENTINEL] = "sentinel",
	[WARNING_TTL] = "ttl",
	[WARNING_EVEN] = "even",
	[WARNING_PERMITS] = "permits",
};

/* Each text comes after its number, counted from 1, and ends with a NUL. */
void warning_add(struct buffer *warnings, enum warning warning,
		 const char *text, const char *more, const char *remedy)
{
	buffer_print(warnings, "%c%s%s%s", (int)warning + 1, text, more,
		     remedy);
	buffer_append(warnings, "", 1);
}

const char *warning_next(const struct buffer *warnings, size_t *at,
			 uint32_t accepted, const char **name)
{
	while (*at < warnings->length) {
		const char *text = warnings->data + *at;
		unsigned warning = (unsigned)text[0] - 1;

		*at += strlen(text) + 1;
		*name = warning_names[warning];
		if (!(accepted >> warning & 1))
			return text + 1;
	}
	return NULL;
}

int warning_read_names(const char *names, uint32_t *accepted)
{
	*accepted = 0;
	for (;;) {
		size_t length = strcspn(names, ","), n = 0;

		while (n < WARNINGS &&
		       (strlen(warning_names[n]) != length ||
			memcmp(warning_names[n], names, length) != 0))
			n++;
		if (n == WARNINGS)
			return -1;
		*accepted |= UINT32_C(1) << n;
		names += length;
		if (*names++ == '\0')
			return 0;
		names += strspn(names, " ");
	}
}
