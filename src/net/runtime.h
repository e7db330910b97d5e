/*
 * The directory for what a user's processes share on this machine: the server
 * of `local:` (local.h), the notes of keepers (keeper.h) and what the last process
 * found (last_place.h).
 *
 * It must be the same for all of them, so it does not depend on being logged
 * in: a cron job has no XDG_RUNTIME_DIR, and the login's own (/run/user/UID)
 * goes away at logout. It is XDG_RUNTIME_DIR/redlock if that names another
 * directory of this user's, otherwise /run/redlock for root and
 * /tmp/redlock-UID for others. Only root can create the one in /run. Any user
 * can create the one in /tmp first, and so keep its user from `local:`, but can
 * do nothing else.
 *
 * The directory belongs to us alone: it is created with mode 0700. It is
 * refused if another user owns it, if others can enter it, or if it is a
 * symbolic link. Once it was found to be ours it stays so: no other user can
 * remove or rename it, as a parent directory that is world-writable must be
 * sticky.
 */
#ifndef NET_RUNTIME_H
#define NET_RUNTIME_H

#include "base/error.h"
#include "net/url.h"

/* 0 with its path, which leaves room for the short name of a socket. Or -1 with
 * *error. */
int runtime_directory(char path[URL_PATH_SIZE], struct error *error);

#endif
