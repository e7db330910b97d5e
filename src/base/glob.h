/*
 * Patterns as the shell has them (fnmatch(3) in the C locale, byte by byte): *
 * any bytes, ? any one byte, [a-z] one of these, [!a-z] or [^a-z] one of all
 * others, \x the byte x. Within brackets a ']' that comes first stands for
 * itself, as does a '-' at either end; [:digit:] and its like are classes, and
 * [.x.] and [=x=] are the byte x. A range that runs backwards has no byte in it.
 * A '[' that is not closed stands for itself, and so does a backslash at the end.
 *
 * Servers know other patterns (SCAN): there ! negates nothing, and there are no
 * classes. They are asked for what begins with no bracket (lock_list.c), and
 * what they find is matched here.
 *
 * Matched in time that is no more than the product of both lengths, if brackets
 * are closed.
 */
#ifndef GLOB_H
#define GLOB_H

#include <stdbool.h>
#include <stddef.h>

bool glob_matches(const char *pattern, const char *text, size_t length);

#endif
