/*
 * The directory for what a user's processes share on this machine: the server of
 * `local:` (local.h), the places that were found last (hint.h).
 *
 * It must be the same for all of them. So it does not depend on being logged in:
 * a cron job has no XDG_RUNTIME_DIR, and the login's own (/run/user/UID) goes
 * away at logout. It is XDG_RUNTIME_DIR/redlock where that names another directory
 * of this user's, else /tmp/redlock-UID. It is ours alone: made with mode 0700,
 * and one that somebody else owns, that others can enter, or that is a symbolic
 * link is refused, not used.
 */
#ifndef RUNTIME_H
#define RUNTIME_H

#include "error.h"
#include "url.h"

/* 0 with its path: there is room for a short name behind it where it is to be a
 * socket's. Or -1 with *error, which is about `local:`. */
int runtime_directory(char path[URL_PATH_SIZE], struct error *error);

#endif
