/*
 * The commands: one table drives dispatch, usage and help.
 */
#ifndef SETTINGS_COMMAND_H
#define SETTINGS_COMMAND_H

struct settings;
struct error;

enum command_id {
	COMMAND_RUN = 1 << 0,
	COMMAND_ACQUIRE = 1 << 1,
	COMMAND_RELEASE = 1 << 2,
	COMMAND_EXTEND = 1 << 3,
	COMMAND_WAIT = 1 << 4,
	COMMAND_STATUS = 1 << 5,
	COMMAND_LIST = 1 << 6,
	COMMAND_BREAK = 1 << 7,
	COMMAND_DOCTOR = 1 << 8,
	COMMAND_FENCE = 1 << 9, /* asks no server, and reads no settings */
	COMMAND_HISTORY = 1 << 10,
	COMMAND_CHECK = 1 << 11,
};

struct command {
	enum command_id id;
	const char *name;
	const char *usage; /* what follows "redlock " */
	const char *summary;
	/* Returns the exit status. Prints its own results and errors. */
	int (*main)(struct settings *settings);
};

/* In the order of the help text; the last one has no name (NULL). */
extern const struct command commands[];

int cmd_run(struct settings *settings);
int cmd_acquire(struct settings *settings);
int cmd_release(struct settings *settings);
int cmd_extend(struct settings *settings);
int cmd_wait(struct settings *settings);
int cmd_status(struct settings *settings);
int cmd_list(struct settings *settings);
int cmd_history(struct settings *settings);
int cmd_check(struct settings *settings);
int cmd_break(struct settings *settings);
int cmd_doctor(struct settings *settings);
int cmd_fence(struct settings *settings);

#endif
