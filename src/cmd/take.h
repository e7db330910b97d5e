/*
 * Taking the lock, or several of them, as the settings say, and saying why there is none.
 */
#ifndef CMD_TAKE_H
#define CMD_TAKE_H

#include "cmd/session.h"

/* How taking a lock went. */
struct taken {
	bool held, interrupted;
	bool unlocked;       /* COMMAND is to run without it (--unreachable) */
	int status;          /* to exit with if it is not held */
	int signal;          /* that ended the waiting, to die of; else 0 */
	const char *outcome; /* "busy", "unreachable" ...; for programs */
	int64_t waited;      /* ms */
};

/* The outcome of what failed with this exit status. */
const char *cmd_outcome(int status);

/*
 * Waits for the lock as the settings say; signals must be heeded.
 * pid, label: shown to others while KEY is held. Prints why there is no lock.
 */
struct taken cmd_take(struct session *session, pid_t pid, const char *label);

#endif
