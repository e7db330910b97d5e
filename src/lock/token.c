#include "lock/token.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* https://datatracker.ietf.org/doc/html/draft-eastlake-fnv */
static uint32_t fnv1a(const char *text)
{
	uint32_t hash = 2166136261;

	for (; *text != '\0'; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619;
	return hash;
}

void token_make_near(char token[TOKEN_SIZE])
{
	char host[256] = "", place[sizeof(host) + 24], near[TOKEN_NEAR + 1];

	gethostname(host, sizeof(host) - 1);
	snprintf(place, sizeof(place), "%ld %s", (long)getppid(), host);
	snprintf(near, sizeof(near), "%08" PRIx32, fnv1a(place));
	token_make(token);
	memcpy(token, near, TOKEN_NEAR);
}
