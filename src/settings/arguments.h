/*
 * The command line.
 *
 * Options come before KEY for `run`, whose next argument is COMMAND, and
 * anywhere for the others. -h is help only as the last word: other programs
 * take a host after it. An option that a command does not use, one that is
 * given twice, and a value that is not wholly understood are usage errors that
 * quote the argument.
 */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include "settings/command.h"
#include "settings/config.h"

/*
 * Reads argv (behind the command's name; NULL-terminated). 0 with key, token
 * and command filled as the command takes them, or -1 with *error. Of argv only
 * the end that is COMMAND is kept, as a vector; a URL's password is made
 * unreadable there.
 */
int arguments_parse(struct settings *settings, const struct command *command,
		    char **argv, struct error *error);

#endif
