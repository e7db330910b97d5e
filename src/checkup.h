/*
 * What a server says of itself, as far as it matters to a lock, and what is to
 * be improved. All of it is what the server said: it is shown, and decides no
 * vote.
 */
#ifndef CHECKUP_H
#define CHECKUP_H

#include "error.h"
#include "output.h"
#include "reply.h"

#define FACT_SIZE 24

/* Numbers are -1 and texts empty where they are not known. */
struct checkup {
	char version[FACT_SIZE];
	char policy
		[FACT_SIZE]; /* maxmemory-policy; "noeviction" without a limit */
	char fsync[FACT_SIZE]; /* appendfsync */
	int64_t appends;       /* whether it has an append-only file */
	int64_t saves;         /* whether it takes snapshots */
	int64_t uptime;        /* ms */
	int64_t trip;  /* ms, to the server and back, the best of a few */
	int64_t ahead; /* ms of its clock before ours, where trip is known */
	struct buffer warnings; /* texts, each with a NUL behind; owned */
	struct error error;     /* why it would grant no lock; "" */
};

void checkup_init(struct checkup *at);
void checkup_release(struct checkup *at);

/* Adds a warning. */
void checkup_warn(struct buffer *warnings, const char *text, const char *more,
		  const char *remedy);

/* What answers INFO. clustered: by a cluster's URL. NULL, or why it is no
 * server for locks. */
const char *checkup_read_info(struct checkup *at, const char *info,
			      bool clustered);

/* What answers CONFIG GET. */
void checkup_read_config(struct checkup *at, const struct reply *reply);

/* What answers TIME, asked trip ms ago, at this time of the wall clock. */
void checkup_read_time(struct checkup *at, const struct reply *reply,
		       int64_t asked, int64_t trip);

/* Warns of what all this means. quarantine (ms): 0 for none. */
void checkup_advise(struct checkup *at, int64_t quarantine);

#endif
