/*
 * A command as it is sent to a server: RESP, an array of bulk strings.
 *
 * https://redis.io/docs/latest/develop/reference/protocol-spec/
 */
#ifndef RESP_H
#define RESP_H

#include <stddef.h>

#include "base/output.h"

#define ARGUMENTS_MAX 256 /* of a command */

struct argument {
	const char *data;
	size_t length;
};

/* Appends it, straight to where it is sent from: each further copy of a script
 * would be pages that a short run has to touch. An argument without data is
 * made of as many of those behind it as its length says, put together. */
void resp_format(struct buffer *to, const struct argument *arguments,
		 size_t count);

#endif
