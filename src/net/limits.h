/*
 * The limits (setrlimit(2)) and the priority of who starts the server of `local:`. It lives
 * on for weeks and serves others as well, so it takes on as few of them as it can.
 *
 * What a soft limit, a scheduling policy or a nice value does is undone, as far as the user
 * may. A hard limit stays. One that could end the server while others hold locks there, and
 * would so let two of them hold one lock, is a reason not to start it. One on the size of
 * files costs it its log only (signals.h).
 */
#ifndef NET_LIMITS_H
#define NET_LIMITS_H

#include "base/error.h"

/* 0, or -1 with *error (EXIT_UNREACHED): a hard limit could end the server. */
int limits_allow_server(struct error *error);

/* In the server's process. Async-signal-safe. */
void limits_leave(void);

/* The server runs. If it can serve only few clients, *error says so, although that is no
 * failure (EXIT_DONE); or else *error is left as it is. */
void limits_warn(struct error *error);

#endif
