/*
 * Who listens on a Unix socket that cannot be connected to any more: its path was
 * removed, or is in another mount namespace (as with the PrivateTmp of systemd). The
 * kernel still has it in /proc/net/unix, by the path at which it was bound (proc(5)).
 *
 * Only processes of ours count, in our pid namespace: anybody may have bound that path
 * in a namespace of his own, and a container that shares our network has servers of its
 * own.
 */
#ifndef NET_LISTENER_H
#define NET_LISTENER_H

#include <sys/types.h>

/* 0: nobody, or /proc does not show it. */
pid_t listener_of(const char *path);

#endif
