/*
 * What the environment says of the settings: REDLOCK_SERVERS,
 * REDLOCK_PASSWORD, REDLOCK_PASSWORD_FILE, REDLOCK_CACERT, REDLOCK_CRL,
 * REDLOCK_CERT, REDLOCK_KEY_FILE, REDLOCK_SNI, REDLOCK_SERVER_TIMEOUT and
 * REDLOCK_MAX_TTL. logins.h says which servers are sent the password. What takes away protection
 * (--insecure) has no variable: it should be seen where it is done.
 */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include "config.h"

/* Each where nothing has said it yet. 0, or -1 with
 * *error (EXIT_CONFIG), which names the variable. */
int environment_read(struct settings *settings, struct error *error);

#endif
