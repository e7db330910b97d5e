/*
 * acquire --pid: what `acquire` does in the background, after it has printed the token.
 */
#ifndef CMD_KEEP_H
#define CMD_KEEP_H

#include "cmd/session.h"
#include "run/keeper.h"

/* Call it before the lock is asked for: from now on the end of PID ends the wait. 0, or
 * an exit status after an error that was printed. */
int keep_prepare(struct keeper *keeper, struct session *session);

/* 0, or an exit status after an error that was printed: PID has ended. */
int keep_check(const struct keeper *keeper, const struct session *session);

/*
 * With the lock held: makes the keeper. 0 in the caller, which then only prints the token
 * and exits: *child is the keeper's process. In the keeper it does not return before all
 * is over, and *child is 0. An exit status after an error that was printed: there is no
 * keeper, as PID has ended or none can be made, and the lock is still held.
 */
int keep_start(struct keeper *keeper, struct session *session, pid_t *child);

#endif
