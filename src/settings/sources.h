/*
 * Reads the settings that are not on the command line. The first place that says
 * something wins:
 *
 *	1. the command line (arguments.h)
 *	2. section [NAME] of --set NAME, of the user's file, then the system's
 *	3. the environment: REDLOCK_TTL is what ttl is in a file (environment.h)
 *	4. the lines before the first section of the user's file
 *	5. the same lines of the system's file
 *
 * This order does not apply to passwords: each belongs to the servers that are
 * named beside it (logins.h).
 *
 * The user's file is $XDG_CONFIG_HOME/redlock.conf, or ~/.config/redlock.conf if
 * that variable is not set. A set-user-ID program has no user's file. The
 * system's file is /etc/redlock.conf. With --config FILE no other file is read.
 *
 * A line of a file, and a variable, is read by the option's row of options.h,
 * like an option of the command line. So nothing is understood in two ways, and
 * settings->origins knows where each option is from. Every line is read, even if
 * it has no effect: an option of another command, a line of another section, and
 * an option that was set before go to settings of their own, which are thrown
 * away. So a file is right or wrong as a whole, for every command. An option that
 * excludes one that was set before has no effect either: with -n the `wait` of a
 * file is not used.
 */
#ifndef SETTINGS_SOURCES_H
#define SETTINGS_SOURCES_H

#include "settings/command.h"
#include "settings/settings.h"
#include "base/buffer.h"

/* To be called after arguments_parse. Returns 0, or -1 with *error. */
int sources_read(struct settings *settings, const struct command *command,
		 struct error *error);

/* Appends the names of all sections, a line each, of the files that there are, or of
 * settings->config. Reading ends at the first mistake, which is not reported. */
void sources_list_sets(struct settings *settings, struct buffer *names);

#endif
