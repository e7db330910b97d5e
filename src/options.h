/*
 * The options of all commands: one table, from which the command line is read
 * (arguments.h) and the usage texts are made.
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

struct option {
	char letter; /* 0: none */
	const char *name;
	enum { TAKES_NOTHING, TAKES_VALUE, MAY_TAKE_VALUE } takes;
	const char *value; /* its name in help */
	unsigned commands; /* those that take it: enum command_id */
	option_setter *set;
	size_t field; /* in struct settings */
	const char *help;
	bool repeats;
};

extern const struct option options[];
extern const size_t option_count;

/* Appends a command's options, a line each. */
void options_help(struct buffer *text, const struct command *command);

#endif
