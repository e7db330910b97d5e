/*
 * Why the votes of a round are not enough, in words.
 */
#ifndef LOCK_EXPLAIN_H
#define LOCK_EXPLAIN_H

#include "lock/ballot.h"

/*
 * "no quorum: 2 of 3 servers gave no vote, 2 votes are needed: URL: why; ...".
 * If servers refused for good, and those that are left could not make a quorum,
 * the code is that of the first refusal. Otherwise the error is transient.
 */
void explain_failure(const struct ballot *ballot, struct error *error);

/* "1 of 3 servers did not answer: URL: why": a quorum has answered, and needs that one all
 * the same. */
void explain_silence(const struct ballot *ballot, struct error *error);

/* Appends why one server gave no vote, and what to do about it. */
void explain_server(const struct ballot *ballot, size_t server,
		    struct error *error);

/* Where KEY has gone. */
void explain_loss(const struct ballot *ballot, struct error *error);

/* The same of a lock that was broken: by whom. If servers have only lost it besides,
 * on how many. */
void explain_break(const struct ballot *ballot, const struct breaker *breaker,
		   struct error *error);

#endif
