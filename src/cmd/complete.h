/*
 * `redlock help --complete WORD ...`: what may stand in place of the last word, for the
 * completion files of bash, zsh and fish. It is between these and us, in no manual, and
 * may change with each version. The first line says what follows:
 *
 *	words		words, a line each, perhaps with a tab and a description
 *	stems		the same, but more follows: no blank comes after them
 *	files PREFIX	nothing: the shell knows files; PREFIX stands before the name
 *	pids PREFIX	nothing: the shell knows processes
 *	command N	nothing: COMMAND begins at the Nth word, from 0
 *
 * Words are not chosen by how the last one begins, except for keys. Keys of locks that
 * are held are asked for on the servers of the line, for 200 ms at most. Nothing is ever
 * said on the standard error, and the status is 0.
 */
#ifndef CMD_COMPLETE_H
#define CMD_COMPLETE_H

#include "settings/command.h"

int cmd_complete(const struct command *table, char **words);

#endif
