/*
 * Finds the process that listens on a Unix socket to which nobody can connect any more:
 * its path was removed, or is in another mount namespace (as with the PrivateTmp of
 * systemd). The kernel still lists the socket in /proc/net/unix, by the path at which it
 * was bound (proc(5)).
 *
 * Only this user's processes in our pid namespace count: anybody may have bound that path
 * in a mount namespace of his own, and a container that shares our network has servers of
 * its own.
 */
#ifndef NET_LISTENER_H
#define NET_LISTENER_H

#include <sys/types.h>

/* 0: nobody, or /proc does not show it. */
pid_t listener_of(const char *path);

#endif
