/*
 * What a server publishes to a waiter (settle.lua): "request fence lease hold
 * age", the late answer to the waiter's request of that number; age (0 if it
 * is missing) is that of KEY's record. Request 0 says that KEY ends in lease
 * ms, sooner than was told.
 *
 * Anybody who may publish can write one: what it says is no more than its form
 * here, and is believed or not by requests.c.
 */
#ifndef MESSAGE_H
#define MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "token.h"

struct message {
	int64_t request, fence; /* 0 to FENCE_LARGEST */
	int64_t lease, age;     /* ms, as large */
	char hold[TOKEN_SIZE + 1];
};

/* False where text is not of this form; *message is then undefined. */
bool message_parse(struct message *message, const char *text, size_t length);

#endif
