/*
 * The command line: one table of options, which also makes the usage texts.
 *
 * Options come before KEY for `run`, and anywhere for the others. An option
 * that a command does not use, one that is given twice, and a value that is
 * not wholly understood are usage errors that quote the argument.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "command.h"
#include "config.h"
#include "output.h"

/*
 * Reads argv (behind the command's name). 0 with key, token and command
 * filled as the command takes them, or -1 with *error (EXIT_USAGE).
 */
int options_parse(struct settings *settings, const struct command *command,
		  char **argv, struct error *error);

/* Appends a command's options, a line or two each. */
void options_help(struct buffer *text, const struct command *command);

#endif
