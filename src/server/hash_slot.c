#include "server/hash_slot.h"

#include <string.h>

#define SLOTS 16384

static unsigned crc16(const char *data, size_t length)
{
	unsigned crc = 0;

	for (size_t i = 0; i < length; i++) {
		crc ^= (unsigned)(unsigned char)data[i] << 8;
		for (int bit = 0; bit < 8; bit++)
			crc = (crc & 0x8000) != 0 ? crc << 1 ^ 0x1021
						  : crc << 1;
	}
	return crc & 0xffff;
}

unsigned hash_slot(const char *key, size_t length)
{
	const char *end = key + length, *open = memchr(key, '{', length);
	const char *shut =
		open == NULL ? NULL : memchr(open, '}', (size_t)(end - open));

	if (shut != NULL && shut > open + 1) {
		key = open + 1;
		length = (size_t)(shut - key);
	}
	return crc16(key, length) % SLOTS;
}
