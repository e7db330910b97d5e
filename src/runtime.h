/*
 * The directory for what a user's processes share on this machine: the server of
 * `local:` (local.h), the places that were found last (hint.h).
 *
 * It must be the same for all of them. So it does not depend on being logged in:
 * a cron job has no XDG_RUNTIME_DIR, and the login's own (/run/user/UID) goes
 * away at logout. It is XDG_RUNTIME_DIR/redlock where that names another directory
 * of this user's, else /run/redlock for root and /tmp/redlock-UID for others.
 * In /run nobody but root can make it first. In /tmp anybody can, and so keep its
 * user from `local:`, but no more than that:
 *
 * It is ours alone: made with mode 0700. One that somebody else owns, that others
 * can enter, or that is a symbolic link is refused, not used. What was found to be
 * ours stays so, as others can neither remove nor rename it: where the directory
 * above may be written by all, it must be sticky.
 */
#ifndef RUNTIME_H
#define RUNTIME_H

#include "error.h"
#include "url.h"

/* 0 with its path: there is room for a short name behind it where it is to be a
 * socket's. Or -1 with *error, which is about `local:`. */
int runtime_directory(char path[URL_PATH_SIZE], struct error *error);

#endif
