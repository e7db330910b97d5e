/*
 * `local:`, this user's own redis-server on a Unix socket, for locks among one
 * machine's processes; or valkey-server, if there is no redis-server in PATH.
 *
 * It must be the same server for all of a user's processes, or two of them
 * hold one lock: the socket is in the one directory that all of them share
 * (runtime.h).
 *
 * Starting: a process that finds no server listening takes an exclusive lock on
 * a file beside the socket (flopen(3)), looks again, and only then starts the
 * server; of any number of racing processes exactly one does. If the socket of a
 * server that runs was removed, or is in another mount namespace, no second one is
 * started: whoever holds a lock at the first would share it unknowingly (listener.h).
 * Only if two mount namespaces begin to use it at the same moment does each get a server.
 *
 * A server that has ended is started again in the same way by those who still wait, or hold
 * a lock: whoever finds that nobody listens has it started aside, and connects later.
 *
 * The server keeps nothing on disk, listens on no port, and is in a session of its own.
 * It has as little as can be of the limits and the priority of who starts it (limits.h).
 * Its log, which has the names of its clients, is for its user only, whatever the umask.
 */
#ifndef NET_LOCAL_H
#define NET_LOCAL_H

#include "base/error.h"
#include "net/url.h"

/* Gives a URL_LOCAL the path of the running server, started if need be. 0, and *error is a
 * warning, if its text is not empty; or -1 with *error. If the server does not start, the
 * error has EXIT_UNREACHED, and the URL is that of a server that is away. */
int local_resolve(struct url *url, struct error *error)
	__attribute__((noinline)); /* other runs need no stack for it */

/* Nobody listens at that path. Does not wait for the server; if it does not start, that
 * shows when it is connected to. */
void local_start_again(void);

#endif
