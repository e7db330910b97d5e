/*
 * What a script reads from us, `acquire --format shell` or `run --status-fd`, if a signal ends
 * us before cmd_heed_signals. Until then a password may be read from a pipe, or a `local:`
 * server start, for 10 s each, or a mistake be reported to a pipe that nobody reads.
 */
#ifndef CMD_LAST_WORDS_H
#define CMD_LAST_WORDS_H

#include "settings/settings.h"

/* Once the options are known, or one of them is wrong. Does nothing if no script reads. */
void last_words_prepare(const struct settings *settings);

#endif
