/*
 * Who holds a lock, for people to read: the description that stands in the
 * record beside the lock, one "name=value" a line (redlock-protocol(7)).
 *
 * A description is what some holder wrote: nothing in it is relied on for
 * safety, and every field may be missing, wrong or hostile when it is read.
 */
#ifndef RECORD_H
#define RECORD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "output.h"

struct holder {
	char host[65];
	char user[33];
	char command[161];
	int64_t pid;           /* 0 where unknown */
};

/* Appends a description: pid holds the lock, for what label says.
 * The server puts the line since= (its own clock, ms) in front. */
void record_describe(struct buffer *text, pid_t pid, const char *label,
		     int64_t ttl);

/* Reads a description; unknown lines are passed over, long values cut. */
void record_parse(struct holder *holder, const char *text, size_t length);

/* Appends "held by web3 pid 812 'backup.sh'". */
void record_print(struct buffer *text, const struct holder *holder);

#endif
