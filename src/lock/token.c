#include "lock/token.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void token_make(char token[TOKEN_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char bits[(TOKEN_SIZE - 1) / 2];

	arc4random_buf(bits, sizeof(bits));
	for (size_t i = 0; i < sizeof(bits); i++) {
		token[2 * i] = digits[bits[i] >> 4];
		token[2 * i + 1] = digits[bits[i] & 15];
	}
	token[TOKEN_SIZE - 1] = '\0';
}

bool token_is_plain(const char *token)
{
	size_t length = strlen(token);

	for (const char *at = token; *at; at++)
		if (*at <= ' ' || *at >= 0x7f || *at == '%' || *at == '=')
			return false;
	return length >= 1 && length <= TOKEN_LONGEST;
}

int64_t token_jitter(int64_t limit)
{
	if (limit <= 0)
		return 0;
	return arc4random_uniform(
		(uint32_t)(limit < UINT32_MAX - 1 ? limit + 1 : UINT32_MAX));
}
