#include "base/bounds.h"

#include <string.h>

bool bounds_allow_token(const char *token)
{
	size_t length = strlen(token);

	for (const char *at = token; *at; at++)
		if (*at <= ' ' || *at >= 0x7f || *at == '%' || *at == '=')
			return false;
	return length >= 1 && length <= TOKEN_LONGEST;
}
