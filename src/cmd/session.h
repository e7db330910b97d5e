/*
 * What the commands share: from settings to a lock, and the lines that say why
 * there is none.
 */
#ifndef CMD_H
#define CMD_H

#include "settings/config.h"
#include "lock/lock.h"

struct session {
	struct settings *settings;
	struct quorum quorum;
	struct lock lock;
	char ancestor[TOKEN_LONGEST + 1]; /* who is above us on KEY, or "" */
};

/* How taking a lock went. */
struct taken {
	bool held;
	int status;          /* to exit with, where it is not held */
	int signal;          /* that ended the waiting, to die of; else 0 */
	const char *outcome; /* "busy", "unreachable" ...; for programs */
	int64_t waited;      /* ms */
};

/* Each: 0, or an exit status; the error is printed. */
int cmd_open_quorum(struct quorum *quorum, struct settings *settings);
int cmd_open(struct session *session, struct settings *settings);
void cmd_close(struct session *session);

/* Appends a line for people that will be written to fd. Its bytes are made visible.
 * If fd is a terminal, the line is broken at blanks to the terminal's width. Text
 * that the buffer holds already is kept as it is. */
void cmd_add_line(struct buffer *text, const struct buffer *line, int fd);

/* To the standard output. */
int cmd_print(const char *text, size_t length);

/* As that, if nothing was changed: SIGPIPE ends us at once when nobody reads. */
int cmd_show(const char *text, size_t length);

/* From now on what the session waits for ends with a signal. */
int cmd_heed_signals(struct session *session);

/* Makes the logins of URLs in a label, and the passwords of this session, the
 * environment's among them, unreadable: others see it. */
void cmd_hide_logins(const struct session *session, char *label);

/*
 * Waits for the lock as the settings say; signals must be heeded.
 * pid, label: for those who find KEY held. Prints why there is no lock.
 */
struct taken cmd_take(struct session *session, pid_t pid, const char *label);

/* How a release or an extension went: prints what went wrong; the exit
 * status. */
int cmd_report(const struct session *session, enum lock_result result,
	       const struct error *error);

/* Prints "KEY: text" of the error. */
void cmd_complain(const struct session *session, const struct error *error);

/* After a failure of what prints text for eval: text that makes eval fail, too.
 * With status 0 (-E 0) it ends the shell, as a script is not to go on without
 * the lock. */
void cmd_print_failure(const struct settings *settings, int status);

#endif
