/*
 * The options of all commands: one table, from which the command line
 * (arguments.h) and the configuration files (sources.h) are read and the usage
 * texts are made.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "command.h"
#include "config.h"
#include "output.h"

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
	char other[8];     /* a second name on the command line; "": none */
};

extern const struct option options[];
extern const size_t option_count;

/* The row of this name, or second name, that one of these commands takes, else
 * any other that a command takes; NULL where there is none. */
const struct option *options_find(const char *name, size_t length,
				  unsigned commands);

/* One that no command line takes, or NULL. */
const struct option *options_find_setting(const char *name);

/* The bit of this option in settings->given, and those of the options that
 * cannot go with it (none are command_only on both sides). */
uint64_t options_bit(const struct option *option);
uint64_t options_opposites(const struct option *option);

/* Sets the option, and notes that it is given; results as option_setter. */
const char *options_set(struct settings *settings, const struct option *option,
			char *value);

#endif
