/*
 * Patterns as the servers have them (KEYS, SCAN): * any bytes, ? any one byte,
 * [a-z] one of these, [^a-z] one of all others, \x the byte x.
 *
 * Matched in time that is no more than the product of both lengths, whatever
 * the pattern is.
 */
#ifndef GLOB_H
#define GLOB_H

#include <stdbool.h>
#include <stddef.h>

bool glob_matches(const char *pattern, const char *text, size_t length);

#endif
