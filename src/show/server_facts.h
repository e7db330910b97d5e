/*
 * What a server says of itself, as far as it matters to a lock, and what is to
 * be improved. All of it is what the server said: it is shown, and decides no
 * vote.
 */
#ifndef CHECKUP_H
#define CHECKUP_H

#include "base/error.h"
#include "base/output.h"
#include "server/reply.h"

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
	struct buffer warnings; /* for checkup_next; owned */
	struct error error;     /* why it would grant no lock; "" */
};

void checkup_init(struct checkup *at);
void checkup_release(struct checkup *at);

/* What a user may accept; an accepted one is not printed. */
enum warning {
	WARNING_RIGHTS,
	WARNING_SUBSCRIPTION,
	WARNING_EVICTION,
	WARNING_RESTART,
	WARNING_CLOCK,
	WARNING_SENTINEL,
	WARNING_EVEN,
	WARNING_PERMITS,
	WARNINGS,
};

/* Adds a warning. */
void checkup_warn(struct buffer *warnings, enum warning warning,
		  const char *text, const char *more, const char *remedy);

/* Its text from *at on, which is moved to the next one, without those accepted
 * (1 << warning); NULL: no more. *name: by which it is accepted. */
const char *checkup_next(const struct buffer *warnings, size_t *at,
			 uint32_t accepted, const char **name);

/* Reads names with commas. -1 if there is an unknown one. */
int checkup_read_names(const char *names, uint32_t *accepted);

/* All names, with commas. */
#define WARNING_NAMES \
	"rights, subscription, eviction, restart, clock, sentinel, even, permits"

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
