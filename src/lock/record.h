/*
 * Who holds a lock, for people to read: the description that stands in the
 * record beside the lock, one "name=value" a line (redlock-protocol(7)).
 *
 * A description is what some holder wrote: nothing in it is relied on for
 * safety, and every field may be missing, wrong or hostile when it is read.
 *
 * Its line v= says which protocol the holder knows, so that people can see which
 * hosts still run an older redlock. It decides nothing either: versions that
 * cannot share KEY are kept apart by the fence (PROTOCOL below).
 *
 * If a holder renews its lease, the time that is left says nothing: the lease is
 * not about to end. It is shown only if
 *  - nobody renews the lease, as after `redlock acquire`; or
 *  - the renewal is late: less than half of the ttl was left. A holder renews
 *    after a third of the ttl; so by then a renewal has failed, or the holder is
 *    gone, stopped or cut off. The time left is the server's at its answer, not
 *    ours at the time of printing. The first lease of a waiter is only 3 s
 *    (queue.h), so the first 3 s of a hold are left out; or
 *  - the lease is longer than the ttl: somebody has extended it by hand; or
 *  - the run has ended, and --min-hold keeps the lock.
 *
 * Its line break= says that the holder understands that it is asked to stop, and what
 * it does then. A holder without that line is an earlier redlock, or another program
 * (ask.lua).
 */
#ifndef LOCK_RECORD_H
#define LOCK_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"

/*
 * The protocol's number: what is stored and said, and what it means (redlock-protocol(7),
 * Versions). It rises with the first change that could let a program that does
 * not know of it take KEY beside one that does. Then v and the number stand in
 * front of the fence in KEY's record, and no earlier version finds a fence there:
 * not one of them takes KEY, or grants it to anybody (data.lua, settle.lua), 0.1
 * included. So no version has to know what a later one changes.
 */
#define PROTOCOL 1

/* What a holder does if it is asked to stop (`redlock break`). */
enum on_break {
	BREAK_UNKNOWN,  /* it does not understand that */
	BREAK_STOPS,    /* it stops what runs under the lock */
	BREAK_WARNS,    /* --on-lost warn: that runs on without the lock */
	BREAK_SIGNALS,  /* --on-lost SIGNAL: that is sent the signal */
	BREAK_EXTENDED, /* nobody renews the lock: an extend is told */
};

/* Bytes that are kept of what a holder says, with its escapes. */
#define HOST_LONGEST 64
#define USER_LONGEST 32
#define LABEL_LONGEST 160
#define REASON_LONGEST 200
#define BREAKER_LONGEST /* USER@HOST: 'REASON' */ \
	(USER_LONGEST + 1 + HOST_LONGEST + 3 + REASON_LONGEST + 1)

/* Who has broken a lock, or asks its holder to stop, and why. */
struct breaker {
	char name[USER_LONGEST + HOST_LONGEST + 2]; /* USER@HOST; "": nobody */
	char reason[REASON_LONGEST + 1];            /* "": none was given */
	int64_t asked;                              /* ms ago, -1 if unknown */
};

struct holder {
	char host[HOST_LONGEST + 1];
	char user[USER_LONGEST + 1];
	char command[LABEL_LONGEST + 1];
	int64_t pid;      /* 0 if unknown */
	int64_t ttl;      /* ms, 0 if unknown */
	int64_t protocol; /* 0 if unknown, as of 0.1 */
	int64_t keeper;   /* the pid that renews it, on this host; 0: none */
	bool renews;      /* it renews its lease until it gives the lock back */
	bool over;        /* its run has ended: --min-hold keeps KEY, or a hold
			   * inside it does */
	enum on_break on_break;
	struct breaker breaker; /* who asks it to stop */
};

/* Appends a description: pid holds the lock, for what label says, and renews it
 * or does not. The server puts the line since= (its own clock, ms) in front. */
void record_describe(struct buffer *text, pid_t pid, const char *label,
		     int64_t ttl, bool renews, enum on_break on_break);

/* Appends who we are and the reason (NULL: none), for the record: "by=USER@HOST" and
 * "reason=TEXT", a line each. record_read_breaker reads that, with the server's line
 * at= or without; what it does not find is empty. */
void record_describe_breaker(struct buffer *text, const char *reason);
void record_read_breaker(struct breaker *breaker, const char *text,
			 size_t length);

/* Appends "broken by ops@jump1: 'deploy is stuck'", or with other words, or with none. */
void record_print_breaker(struct buffer *text, const char *what,
			  const struct breaker *breaker);

/* Reads a description; unknown lines are passed over, long values cut. */
void record_parse(struct holder *holder, const char *text, size_t length);

/* Whether we or the holders of KEY seem to have forgotten -P. */
enum misfit {
	MISFIT_NONE,
	MISFIT_OURS,   /* they have -P, and we have not */
	MISFIT_THEIRS, /* we have -P, and they have not */
};

/* What a refusal said about the holder: of several holders, about the one that
 * has held KEY longest, as far as they were looked at. */
struct busy {
	bool has_reply;       /* the rest is filled */
	bool has_description; /* holder is filled; else a foreign program */
	struct holder holder;
	int64_t held; /* ms, -1 if unknown */
	int64_t usual; /* ms that KEY is held usually, if that is to be told; 0 */
	int64_t left;  /* ms of its lease, -1 for no expiry, -2 for no holder */
	int64_t at;    /* clock_ms() when this was so */
	int64_t place; /* ours in the queue, from 0; -1 for none */
	int64_t holders; /* 0 if unknown */
	bool some;       /* more than were looked at */
	int64_t permits; /* of KEY; 0 for none */
	enum misfit misfit;
	bool nested;  /* the holder is above us */
	bool has_run; /* a run has succeeded lately (--once-in): lock.success */
	bool is_hash; /* it is a reentrant lock, ours or Redisson's */
	bool is_sorted; /* it is shared, or has permits */
	bool split;     /* several try, and none may have it */
	/* a quorum granted it, and had one vote too few when the fence was raised */
	bool unraised;
	/* why the servers do not answer now: all above is from when they last did;
	 * NULL: they answer */
	const char *outage;
};

/* Appends "web3 pid 812 'backup.sh'". */
void record_print_holder(struct buffer *text, const struct holder *holder);

/* Appends "held by web3 pid 812 'backup.sh'"; of several holders "held by 3 of
 * 3, longest web3 pid 812 'encode.sh'", or "among them" if not all were looked at. */
void record_print_who(struct buffer *text, const struct busy *busy);

/* Whether the time that is left is worth showing (above). */
bool record_tells_left(const struct busy *busy);

/* Appends " for 4m10s", and ", 21s left" if that is worth showing. */
void record_print_times(struct buffer *text, const struct busy *busy);

/* Appends ": use -P 3, as they do" if one of the two has forgotten -P. */
void record_print_misfit(struct buffer *text, const struct busy *busy);

/* All three: "held by web3 pid 812 'backup.sh' for 4m10s". In an outage: "when last heard:
 * held by web3 pid 812 'backup.sh'; now: " and why. */
void record_print_busy(struct buffer *text, const struct busy *busy);

#endif
