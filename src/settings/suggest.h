/*
 * "did you mean": the nearest of the words that would have been right.
 */
#ifndef SUGGEST_H
#define SUGGEST_H

#include <stddef.h>

/* NULL where none of the count names is near enough. */
const char *suggest_nearest(const char *text, const char *const *names,
			    size_t count);

#endif
