/*
 * The command line.
 *
 * `run` takes options before KEY only, as COMMAND comes after it; the other
 * commands take them anywhere. -h is help only as the last word: other programs
 * take a host after it. Usage errors, which quote the argument: an option that
 * the command does not take, an option that is given twice, options that exclude
 * each other, and a value that is not understood as a whole.
 */
#ifndef SETTINGS_ARGUMENTS_H
#define SETTINGS_ARGUMENTS_H

#include "settings/command.h"
#include "settings/settings.h"

/*
 * Reads argv, which begins after the command's name and ends with NULL. Returns 0
 * with key, token and command filled as the command takes them, or -1 with
 * *error. The settings keep a pointer into argv for COMMAND, and for the KEYs of
 * `status`; all else is copied. Passwords in URLs are made unreadable in argv.
 */
int arguments_parse(struct settings *settings, const struct command *command,
		    char **argv, struct error *error);

#endif
