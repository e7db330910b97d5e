/*
 * How a command line that is being typed may go on: for the completion files of the
 * shells (scripts/), which all ask `redlock help --complete WORD ...`. It follows from the
 * tables of commands (command.h) and options (options.h) alone, so a new option is
 * completed without a change anywhere else.
 *
 * Mistakes in the line are ignored: redlock reports them when the line is run.
 */
#ifndef SETTINGS_COMPLETION_H
#define SETTINGS_COMPLETION_H

#include "settings/options.h"

enum expected {
	EXPECT_NOTHING,
	EXPECT_SUBCOMMAND,
	EXPECT_TOPIC, /* of `help` */
	EXPECT_OPTION,
	EXPECT_VALUE, /* of `option` */
	EXPECT_FILE,
	EXPECT_KEY, /* of a lock that is held */
	EXPECT_COMMAND,
};

struct completion {
	enum expected expected;
	const struct command *commands; /* the table */
	const struct command *command;
	const struct option *option;
	size_t prefix;  /* bytes of the last word before the value: "--ttl=" */
	size_t at;      /* the word that COMMAND is, from 0 */
	bool literal;   /* "--" comes before the last word: it is no option */
	uint64_t given; /* options_bit */
	char **common; /* owned: the words that say which servers, NULL at the end */
	size_t common_count;
};

/* words: those after "redlock". The last one is being typed, and may be empty. Keeps
 * pointers into words. */
void completion_find(struct completion *completion, const struct command *table,
		     char **words, size_t count);
void completion_release(struct completion *completion);

/*
 * Appends the possible words, for EXPECT_SUBCOMMAND to EXPECT_VALUE, a line each: the word,
 * and perhaps a tab and its description. prefix stands before each value. Nothing for a
 * file, a process, or something else.
 */
void completion_list(const struct completion *completion, const char *prefix,
		     struct buffer *text);

/* What help calls the value of the option that the line ends with; "" if there is none. */
const char *completion_value(const struct completion *completion);

#endif
