/*
 * `redlock help --complete WORD ...`: lists what the last word may become, for the
 * completion files of bash, zsh and fish. Only these use it: it is in no manual, and may
 * change with each version. The first line says what follows:
 *
 *	words		words, a line each, perhaps with a tab and a description
 *	stems		the same, but more follows: no blank comes after them
 *	files PREFIX	nothing: the shell knows files; PREFIX stands before the name
 *	pids PREFIX	nothing: the shell knows processes
 *	command N	nothing: COMMAND begins at the Nth word, from 0
 *
 * All words are listed, however the last word begins; of keys, only those that begin like
 * it. They are the keys of locks that are held on the servers that the line names, which
 * have 200 ms to answer. Nothing is printed on standard error, and the status is 0.
 */
#ifndef CMD_COMPLETE_H
#define CMD_COMPLETE_H

#include "settings/command.h"

int cmd_complete(const struct command *table, char **words);

#endif
