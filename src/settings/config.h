/*
 * The last step of reading: fills in defaults, and checks whether the settings go
 * together.
 */
#ifndef SETTINGS_CONFIG_H
#define SETTINGS_CONFIG_H

#include "settings/settings.h"

/* Also gives each server its password (logins.h). Returns 0, or -1 with *error. */
int config_finish(struct settings *settings, struct error *error);

/* For `run`, and a keeper: whether the ttl is long enough to renew it and to stop COMMAND. */
int config_check_ttl(const struct settings *settings, struct error *error);

/* For `run`: the validity that a grant must have left, to renew it and to stop
 * COMMAND. */
int64_t config_validity_needed(const struct settings *settings);

#endif
