/*
 * What the environment says of the settings. What a configuration file may say,
 * a variable may say, too: REDLOCK_ and the name in capitals (sources.h reads
 * them). Here are those that are more than one option's value, and those that
 * mean nothing.
 *
 * What takes away protection (--insecure) has no variable: it should be seen
 * where it is done. An empty variable counts as one that is not set, except for
 * REDLOCK_SERVERS: a script that has lost its value would lock on another
 * server than everybody else.
 */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include "settings/config.h"
#include "base/output.h"

/* REDLOCK_SERVERS, if there are no servers yet. 0, or -1 with *error
 * (EXIT_CONFIG), which names the variable; so for the password. */
int environment_read_servers(struct settings *settings, struct error *error);

/* REDLOCK_PASSWORD, else REDLOCK_PASSWORD_FILE, for the servers of -S and
 * REDLOCK_SERVERS (logins.h); those of --set are there before, those of a file
 * later. */
int environment_read_password(struct settings *settings, struct error *error);

/*
 * Finds the next variable, from *at on (0 at first), whose name begins with
 * REDLOCK_ and is not known, and appends a warning about it to text. Returns
 * false if there is none. Known are also the variables that redlock sets for
 * COMMAND, and those that Kubernetes sets for a service called redlock.
 */
bool environment_next_unknown(size_t *at, struct buffer *text);

#endif
