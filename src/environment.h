/*
 * What the environment says of the settings: REDLOCK_SERVERS,
 * REDLOCK_PASSWORD and REDLOCK_PASSWORD_FILE.
 */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include "config.h"

/* Servers and password, each where nothing has said it yet. 0, or -1 with
 * *error (EXIT_CONFIG), which names the variable. */
int environment_read(struct settings *settings, struct error *error);

#endif
