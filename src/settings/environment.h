/*
 * The environment. A variable may set whatever a configuration file may set: its
 * name is REDLOCK_ and the option's name in capitals, and sources.h reads it.
 * This module reads servers and passwords, which belong together, and finds
 * variables that have no meaning.
 *
 * An option that removes protection (--insecure) has no variable: it should be
 * visible where it is used. An empty variable counts as unset, except for
 * REDLOCK_SERVERS: a script that has lost its value would lock on a server that
 * nobody else uses.
 */
#ifndef SETTINGS_ENVIRONMENT_H
#define SETTINGS_ENVIRONMENT_H

#include "settings/settings.h"
#include "base/buffer.h"

/* Reads REDLOCK_SERVERS, if there are no servers yet. Returns 0, or -1 with
 * *error (EXIT_CONFIG), which names the variable. */
int environment_read_servers(struct settings *settings, struct error *error);

/* Reads REDLOCK_PASSWORD, else REDLOCK_PASSWORD_FILE, for the servers of -S and
 * REDLOCK_SERVERS, and REDLOCK_SENTINEL_PASSWORD or REDLOCK_SENTINEL_PASSWORD_FILE
 * for their Sentinels (logins.h). Must come after the servers of --set and before
 * those of a file. Returns as above. */
int environment_read_passwords(struct settings *settings, struct error *error);

/*
 * Finds the next unknown variable whose name begins with REDLOCK_, and appends a
 * warning about it to text. *at is 0 for the first call and is moved on. Returns
 * false if there is no other. The variables that redlock sets for COMMAND, and
 * those that Kubernetes sets for a service called redlock, are known.
 */
bool environment_next_unknown(size_t *at, struct buffer *text);

#endif
