/*
 * Counting the votes of a round, and saying why they are not enough.
 */
#ifndef BALLOT_H
#define BALLOT_H

#include "lock/lock.h"

/* What a round learns beside the votes: the context of a struct judge. */
struct hearing {
	struct lock *lock;
	struct busy *busy;         /* acquire: who has KEY; else NULL */
	bool awaited[SERVERS_MAX]; /* taking back: whose answer counts */
	char mark[SERVERS_MAX][HOLDER_MARK]; /* acquire: the holder's */
};

/* The most servers that refuse in the name of one and the same holder; marks
 * are the servers', of those that have refused. */
size_t ballot_same_holder(const struct lock *lock,
			  const char (*marks)[HOLDER_MARK]);

/* A new round: no vote is in. */
void ballot_open(struct lock *lock);

size_t ballot_count(const struct lock *lock, enum vote vote);
bool ballot_has_quorum(const struct lock *lock);

/* Whether enough servers have said that there is no lock to be had (acquire) or
 * that it is not held (else). */
bool ballot_said_no(const struct hearing *hearing);

/* Whether some granted it, some did not, and nobody is seen on a quorum: others
 * try at the same time, and perhaps none of us will have it. */
bool ballot_is_split(const struct hearing *hearing);

/* Whether what is still out can change nothing; for a struct judge, of a struct
 * hearing. */
bool ballot_decided(void *hearing);

/* Whether nothing is out any more; for a struct judge, of a struct hearing. */
bool ballot_is_complete(void *hearing);

/* Whether the missing answers need not be heard before the votes count
 * (trust.h), or no quorum is possible; for a struct judge, with a struct
 * hearing. */
bool ballot_is_heard(void *hearing);

/*
 * The first number of a script's answer, from least to 1. False where there is
 * none: the server's vote is VOTE_FAILED then and its why is set; also where
 * it turns out to be one that has been heard already (lock->alias).
 */
bool ballot_read(struct lock *lock, size_t server, const struct reply *reply,
		 int64_t least, int64_t *answer);

/* The same for a lock that is held: two names of one server do not matter there
 * (alias.h). */
bool ballot_read_held(struct lock *lock, size_t server,
		      const struct reply *reply, int64_t least,
		      int64_t *answer);

/* An answer of the wrong shape, behind the number. */
void ballot_reject(struct lock *lock, size_t server);

/*
 * "no quorum: 2 of 3 servers gave no vote, 2 votes are needed: URL: why; ...".
 * The code is that of what a server refused for good where the servers that
 * are left could not make a quorum; else the error may pass.
 */
void ballot_explain_failure(const struct lock *lock, struct error *error);

/* Appends why one of them gave no vote, and what to do about it. */
void ballot_explain_server(const struct lock *lock, size_t server,
			   struct error *error);

/* So many servers are lost to us that no quorum is left, for good. */
bool ballot_is_hopeless(const struct lock *lock);

/* Where KEY has gone. */
void ballot_explain_loss(const struct lock *lock, struct error *error);

#endif
