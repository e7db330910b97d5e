/*
 * The options of all commands: one table, from which the command line
 * (arguments.h) and the configuration files (sources.h) are read and the usage
 * texts are made.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "settings/command.h"
#include "settings/config.h"
#include "base/output.h"

/*
 * Puts value into the field of settings that the table names. NULL, or what the
 * value should have been; "" where settings->error says it.
 */
typedef const char *option_setter(struct settings *settings, void *field,
				  char *value);

/* Short texts stand in the rows: a pointer is relocated at each start. */
struct option {
	char letter; /* 0: none */
	char name[19];
	enum { TAKES_NOTHING, TAKES_VALUE, MAY_TAKE_VALUE } takes;
	char value[17];    /* its name in help */
	unsigned commands; /* those that take it: enum command_id; 0: no command
			      line has it, only files */
	option_setter *set;
	size_t field; /* in struct settings */
	const char *help;
	bool repeats;
	bool for_tls; /* refused on a command line without a rediss:// server */
	bool command_only; /* refused in a file: it says what a command does
			      and answers, or chooses the file */
	bool in_full;      /* it has no abbreviation and no variable */
	char other[8];     /* a second name on the command line; "": none */
};

extern const struct option options[];
extern const size_t option_count;

/* The row of this name, or second name, that one of these commands takes, else
 * any other that a command takes; NULL if there is none. */
const struct option *options_find(const char *name, size_t length,
				  unsigned commands);

/* One that no command line takes, or NULL. */
const struct option *options_find_setting(const char *name);

#define VARIABLE_NAME 32

/* The variable of the environment that says what the option says, such as
 * REDLOCK_TTL; "" for an option that has none. */
const char *options_variable(const struct option *option,
			     char name[VARIABLE_NAME]);

/* The option of this variable, or NULL. */
const struct option *options_find_variable(const char *name);

/* The bit of this option in settings->given, and those of the options that
 * cannot go with it (none are command_only on both sides). */
uint64_t options_bit(const struct option *option);
uint64_t options_opposites(const struct option *option);

/* Notes that the option is given, by what settings->here says. If it is
 * given more than once, the first place counts. */
void options_note(struct settings *settings, const struct option *option);

/* Sets the option, and notes it; results as option_setter. */
const char *options_set(struct settings *settings, const struct option *option,
			char *value);

/* Where a given option is from. */
struct origin options_origin(const struct settings *settings,
			     const struct option *option);

/* Whether the command line has it. */
bool options_is_typed(const struct settings *settings,
		      const struct option *option);

/* Whether people may want to be told where it is from: a command's own options
 * are where they see them. */
bool options_has_origin(const struct settings *settings,
			const struct option *option);

/* Where it is from, for people: "the command line", "REDLOCK_TTL",
 * "FILE:LINE". */
void options_tell_origin(struct buffer *text, const struct settings *settings,
			 const struct option *option);

/* The same of all: "ttl from REDLOCK_TTL, wait from the command line". */
void options_tell_origins(struct buffer *text, const struct settings *settings);

#endif
