/*
 * `run --status-fd`: one line of JSON that says how the run went, whatever ended it.
 */
#ifndef CMD_RUN_H
#define CMD_RUN_H

#include "base/buffer.h"
#include "settings/settings.h"

/* Of a run that has asked no server. Some settings may be unknown. */
void run_print_unasked(struct buffer *line, const struct settings *settings,
		       const char *outcome);

/* Writes the same, if it is wanted, for this exit status. From then on signals are blocked. */
void run_tell_failure(const struct settings *settings, int status);

#endif
