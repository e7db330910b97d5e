/*
 * A command as it is sent to a server: RESP, an array of bulk strings.
 *
 * https://redis.io/docs/latest/develop/reference/protocol-spec/
 */
#ifndef RESP_H
#define RESP_H

#include <stddef.h>

#include "output.h"

#define ARGUMENTS_MAX 256 /* of a command */

struct argument {
	const char *data;
	size_t length;
};

/* Appends it. No copy of it, which may hold a password, is left elsewhere. */
void resp_format(struct buffer *to, const struct argument *arguments,
		 size_t count);

#endif
