/*
 * What a server publishes to a waiter (settle.lua): "request fence lease hold
 * age". It is the late answer to the waiter's request of that number. age is
 * that of KEY's record, 0 if it is missing. Request 0 says that KEY ends in
 * lease ms, sooner than the waiter was told before.
 *
 * Anybody who may publish can write a message: only its form is checked here,
 * and requests.c decides whether to believe it.
 */
#ifndef MESSAGE_H
#define MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lock/token.h"

struct message {
	int64_t request, fence; /* 0 to FENCE_LARGEST */
	int64_t lease, age;     /* ms, as large */
	char hold[TOKEN_SIZE + 1];
};

/* False where text is not of this form; *message is then undefined. */
bool message_parse(struct message *message, const char *text, size_t length);

#endif
