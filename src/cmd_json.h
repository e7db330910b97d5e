/*
 * What `status` and `list` tell programs: one JSON object a line. Texts that
 * others wrote are made valid; what is not known is null.
 */
#ifndef CMD_JSON_H
#define CMD_JSON_H

#include "lock_look.h"

/* state: what the view comes to. */
void json_view(struct buffer *text, const struct view *view, const char *state);

void json_listed(struct buffer *text, const struct listed *listed);

#endif
