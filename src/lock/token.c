#include "lock/token.h"

#include <stddef.h>
#include <stdlib.h>

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
