/*
 * The directory for what a user's processes share on this machine: the server
 * of `local:` (local.h) and the last findings (hint.h).
 *
 * It must be the same for all of them, so it does not depend on being logged
 * in: a cron job has no XDG_RUNTIME_DIR, and the login's own (/run/user/UID)
 * goes away at logout. It is XDG_RUNTIME_DIR/redlock if that names another
 * directory of this user's, otherwise /run/redlock for root and
 * /tmp/redlock-UID for others. Nobody but root can create the one in /run.
 * Anybody can create the one in /tmp first, and so keep its user from
 * `local:`, but can do nothing else.
 *
 * The directory belongs to us alone: it is created with mode 0700. It is
 * refused if somebody else owns it, if others can enter it, or if it is a
 * symbolic link. Once it was found to be ours it stays so: nobody else can
 * remove or rename it, as a parent directory that everybody may write must be
 * sticky.
 */
#ifndef RUNTIME_H
#define RUNTIME_H

#include "base/error.h"
#include "net/url.h"

/* 0 with its path: there is room for a short name behind it where it is to be a
 * socket's. Or -1 with *error, which is about `local:`. */
int runtime_directory(char path[URL_PATH_SIZE], struct error *error);

#endif
