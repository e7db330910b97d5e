/*
 * A run of KEY that is over, as a server reports it (lua/runs.lua): when it began,
 * how long it held KEY, and how it ended.
 *
 * A release notes it, in a list beside the record; or the next grant does, if the
 * holder never came back. An entry is what some client wrote there: every part of it
 * may be hostile when it is read.
 */
#ifndef LOCK_RUN_H
#define LOCK_RUN_H

#include "lock/record.h"
#include "lock/token.h"

#define RUN_BY (BREAKER_LONGEST + 1)
#define RUN_END_LONGEST (10 + BREAKER_LONGEST) /* "broken by ..." */

enum run_end {
	RUN_UNKNOWN,     /* its holder never came back */
	RUN_EXIT,        /* COMMAND exited: number is its status */
	RUN_SIGNAL,      /* it was killed: number is the signal */
	RUN_LOST,        /* the lock, while COMMAND ran */
	RUN_OVERDUE,     /* --max-hold was over */
	RUN_BROKEN,      /* by: by whom and why, or "" */
	RUN_RELEASED,    /* acquire and release */
	RUN_NOT_STARTED, /* COMMAND could not be */
	RUN_OTHER,       /* by: the word of a later version */
};

struct past_run {
	char token[TOKEN_PREFIX_SIZE]; /* its beginning */
	int64_t fence;                 /* 0 if unknown */
	int64_t began; /* ms since 1970, by the server's clock */
	int64_t age;  /* ms since then, by that clock; below 0 if it is ahead */
	int64_t held; /* ms */
	int64_t waited; /* ms, -1 if unknown */
	enum run_end end;
	int number;
	char by[RUN_BY];
	struct holder who;
};

/* Reads an entry of a server whose clock says now. -1: it makes no sense. */
int run_read(struct past_run *run, const char *text, size_t length,
	     int64_t now);

/* COMMAND exited with status 0. */
bool run_succeeded(const struct past_run *run);

/* It did not succeed. False for a release: nobody knows how that work went. */
bool run_failed(const struct past_run *run);

/* Appends "exit 0", "signal 9", "broken by ops@jump1: 'deploy is stuck'" ... */
void run_print_end(struct buffer *text, const struct past_run *run);

/* The same without number or by: "exit", "signal", "broken" ... */
const char *run_end_name(enum run_end end);

/* Appends "web3 3h ago for 12m, exit 0". */
void run_print(struct buffer *text, const struct past_run *run);

/* Appends "web3 ran it 3h ago for 12m, exit 0; --once-in lets it run again in 17h", of
 * a run that succeeded. */
void run_print_success(struct buffer *text, const struct past_run *run,
		       int64_t once_in);

#endif
