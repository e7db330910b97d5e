/*
 * What `status` and `history` tell people of a KEY: a line for it, and a table of its
 * holders, waiters and servers, or of its last runs, as wide as the terminal. json.h is
 * the same for programs.
 */
#ifndef CMD_TEXT_H
#define CMD_TEXT_H

#include "show/history.h"
#include "show/holders.h"

/* state: "held", "free" ... last: the last run, if it is to be told, or NULL. */
void text_holders(struct buffer *text, const struct holders *holders,
		  const char *state, const struct past_run *last);

void text_history(struct buffer *text, const struct history *history);

#endif
