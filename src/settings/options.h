/*
 * The options of all commands: one table. The command line (arguments.h), the
 * environment and the configuration files (sources.h) are read by it, and the
 * help texts (help.h) are made from it.
 */
#ifndef SETTINGS_OPTIONS_H
#define SETTINGS_OPTIONS_H

#include "settings/command.h"
#include "settings/settings.h"
#include "base/buffer.h"

/*
 * Puts value into the field of settings that the table names. Returns NULL, or
 * what the value should have been, or "" if settings->error says what is wrong.
 */
typedef const char *option_setter(struct settings *settings, void *field,
				  char *value);

/* Short texts are arrays, as each pointer would be relocated at each start. */
struct option {
	char letter; /* 0: none */
	char name[23];
	enum { TAKES_NOTHING, TAKES_VALUE, MAY_TAKE_VALUE } takes;
	char value[28]; /* its name in help */
	unsigned
		commands; /* which take it: enum command_id; 0: none, it is only
			      for files and the environment */
	option_setter *set;
	size_t field; /* in struct settings */
	const char *help;
	bool repeats;
	bool for_pid; /* refused on a command line of acquire without --pid */
	bool for_tls; /* refused on a command line without a rediss:// server */
	bool command_only; /* refused in a file, and has no variable: it says
			      what a command does, or chooses the file */
	bool in_full;      /* it has no abbreviation and no variable */
	unsigned unlisted; /* the commands that do not take it, but use what a
			      file or the environment says */
	char other[8];     /* a second name on the command line; "": none */
	char other_letter; /* and a second letter; 0: none */
	char excludes[25]; /* names of options that cannot be used with it,
			      and need not name it in turn */
	unsigned special;  /* the commands that have this help */
	const char *special_help;
};

extern const struct option options[];
extern const size_t option_count;

/* The row with this name, or second name, that one of these commands takes; else
 * one that another command takes; else NULL. */
const struct option *options_find(const char *name, size_t length,
				  unsigned commands);

/* What it says in the help of a command. */
const char *options_help(const struct option *option, unsigned command);

/* Whose password this option sets, or names the file of; SECRETS: nobody's. */
enum secret_kind options_secret(const struct option *option);

/* The row with this name that no command takes, or NULL. */
const struct option *options_find_setting(const char *name);

#define VARIABLE_NAME 32 /* bytes, with the NUL */

/* The variable of the environment that sets the option, such as REDLOCK_TTL, or
 * "". */
const char *options_variable(const struct option *option,
			     char name[VARIABLE_NAME]);

/* The option of this variable, or NULL. */
const struct option *options_find_variable(const char *name);

/* The bit of this option in settings->given. */
uint64_t options_bit(const struct option *option);

/* The first of those given that cannot be used with this option, or NULL. */
const struct option *options_find_opposite(const struct option *option,
					   uint64_t given);

/* Whether the option is one of the names, which stand between blanks. */
bool options_is_among(const struct option *option, const char *names);

/* Notes that the option is given, and that it is from settings->here. If it is
 * given again, the first origin stays. */
void options_note(struct settings *settings, const struct option *option);

/* Sets the option and notes it. The result is that of option_setter. */
const char *options_set(struct settings *settings, const struct option *option,
			char *value);

/* Where a given option is from. */
struct origin options_origin(const struct settings *settings,
			     const struct option *option);

/* Whether the command line has it. */
bool options_is_typed(const struct settings *settings,
		      const struct option *option);

/* Whether the option is given and may be from a file or a variable, so that
 * people need to be told. */
bool options_has_origin(const struct settings *settings,
			const struct option *option);

/* Appends the origin of a given option: "the command line", "REDLOCK_TTL",
 * "FILE:LINE". */
void options_tell_origin(struct buffer *text, const struct settings *settings,
			 const struct option *option);

/* The same for all of them: "ttl from REDLOCK_TTL, wait from the command line". */
void options_tell_origins(struct buffer *text, const struct settings *settings);

#endif
