/*
 * The options of a command, for people, made from the table of options.h.
 *
 * If usage and options fit on a terminal of 80 x 24, the help lists them all.
 * Otherwise it lists those that are needed most, and --help=all lists all of
 * them, in groups.
 */
#ifndef SETTINGS_HELP_H
#define SETTINGS_HELP_H

#include <stdbool.h>

#include "settings/command.h"
#include "base/buffer.h"

void help_print(struct buffer *text, const struct command *command, bool all);

#endif
