/*
 * Warnings about servers, or about settings. A user may accept each kind by its name
 * (--accept NAME): the settings read the names, doctor collects the warnings, and only
 * those that were not accepted are printed. A list of warnings is a buffer, empty at
 * first, and is released as one.
 */
#ifndef BASE_WARNING_H
#define BASE_WARNING_H

#include <stdint.h>

#include "base/buffer.h"

enum warning {
	WARNING_RIGHTS,
	WARNING_SUBSCRIPTION,
	WARNING_EVICTION,
	WARNING_RESTART,
	WARNING_DEFAULT,
	WARNING_CLOCK,
	WARNING_SENTINEL,
	WARNING_TTL,
	WARNING_EVEN,
	WARNING_PERMITS, /* an earlier version's; --accept still knows its name */
	WARNINGS,
};

/* The names of all warnings that this version gives, with commas. */
#define WARNING_NAMES                                                         \
	"rights, subscription, eviction, restart, default, clock, sentinel, " \
	"ttl, even"

/* Reads names with commas: a bit (1 << warning) for each. -1 if one of them is
 * unknown. */
int warning_read_names(const char *names, uint32_t *accepted);

/* Adds a warning to a list: text, more and remedy, one after the other. */
void warning_add(struct buffer *warnings, enum warning warning,
		 const char *text, const char *more, const char *remedy);

/* The text of the next warning that is not accepted, or NULL. *at is 0 for the
 * first one, and is moved on. *name is what accepts it. */
const char *warning_next(const struct buffer *warnings, size_t *at,
			 uint32_t accepted, const char **name);

#endif
