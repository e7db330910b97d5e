/*
 * `run --status-fd`: one line of JSON that says how the run went, whatever ended it.
 */
#ifndef CMD_RUN_H
#define CMD_RUN_H

#include "settings/settings.h"

/* Of a run that has asked no server, with this exit status. Some settings may be unknown. */
void run_tell_failure(struct settings *settings, int status);

#endif
