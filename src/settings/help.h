/*
 * The options of a command, for people, made of the table of options.h.
 *
 * If they all fit on a terminal of 80 x 24, with the usage above them, that is
 * the help. Otherwise it is a page with those that are needed most, and
 * --help=all has all of them in groups.
 */
#ifndef HELP_H
#define HELP_H

#include <stdbool.h>

#include "settings/command.h"
#include "base/output.h"

void help_print(struct buffer *text, const struct command *command, bool all);

#endif
