/*
 * Where settings come from besides the command line. What was said first stays:
 *
 *	1. the command line (arguments.h)
 *	2. section [NAME] of --set NAME, of the user's file, then the system's
 *	3. the environment: REDLOCK_TTL is what ttl is in a file (environment.h)
 *	4. what stands before the sections in the user's file
 *	5. the same of the system's
 *
 * This order does not apply to passwords: each stays with the servers that are
 * named beside it (logins.h).
 *
 * The user's file is $XDG_CONFIG_HOME/redlock.conf, where that is not set
 * ~/.config/redlock.conf; a program that runs with more rights than its user
 * has none. The system's is /etc/redlock.conf. With --config FILE there is that
 * one only.
 *
 * A line of a file, and a variable, is read by the option's row of options.h,
 * like an option of the command line; so nothing is understood in two ways, and
 * settings->origins tells where each is from. Every line is read,
 * whether it counts or not: another command's option, another section, and what
 * was said before go to settings of their own, which nobody uses. So a file is
 * right or wrong as a whole, and every command says so. An option that excludes
 * what was said before is overruled like that one itself: with -n the `wait` of
 * a file is not used.
 */
#ifndef SOURCES_H
#define SOURCES_H

#include "settings/command.h"
#include "settings/config.h"

/* After the command line. 0, or -1 with *error: EXIT_CONFIG but for what is
 * wrong on the command line. */
int sources_read(struct settings *settings, const struct command *command,
		 struct error *error);

#endif
