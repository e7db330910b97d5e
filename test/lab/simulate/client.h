/*
 * The clients: each starts one redlock after the other, which takes its keys, has COMMAND
 * run for a while, and gives the keys back, as cmd/run.c does.
 */
#ifndef CLIENT_H
#define CLIENT_H

#include "plan.h"

void clients_begin(void);

/* No redlock is started any more. */
void clients_end(void);

/* Which client is at something, or -1. */
int clients_busy(void);

/* While it is calm nobody holds KEY longer than its plan says. */
struct process *client_process(size_t client);

/* The token with which its redlock has this key, or tries to get it; NULL: there is none. */
const char *client_token(size_t client, size_t key);

/* Whether its redlock asks that server no more for a key: it has given a vote back, and that may still
 * arrive (lock.h). */
bool client_is_barred(size_t client, size_t key, size_t server);

/* The host of a client loses redlock: killed, but for COMMAND, which its guard ends. */
void client_kill(size_t client);

#endif
