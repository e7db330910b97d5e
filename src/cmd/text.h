/*
 * What `status` tells people of a KEY: a line for the lock, and a table of its
 * holders, waiters and servers, as wide as the terminal. json.h is the same for
 * programs.
 */
#ifndef CMD_TEXT_H
#define CMD_TEXT_H

#include "show/holders.h"

/* state: "held", "free" ... */
void text_holders(struct buffer *text, const struct holders *holders,
		  const char *state);

#endif
