/*
 * Tests whether servers would grant a lock now, and what about them should be
 * improved.
 *
 *	doctor_init(&doctor, &quorum, key, quarantine, ttl);
 *	doctor_examine(&doctor, &error);
 *	doctor_release(&doctor);
 *
 * All servers are asked the same question at once, and then the next question. Each
 * question takes the time of a round at most. A server that is silent or refuses
 * a lock is asked no more. The questions are: what the server says of itself, what our
 * user may do there, and then the life of a lock of doctor's own. That lock is
 * taken, renewed, looked at, found, waited for, given back, and handed over to the
 * waiter.
 *
 * The KEY of that lock is the given one, ":doctor:" and a random number. So whatever is
 * allowed for names that begin with KEY is allowed for it, and no lock is ever
 * disturbed. Nothing is left: the record ends with the lock (lock.h, afterlife), and
 * if doctor is killed the lock ends with its short lease. Places in a queue end after
 * a minute.
 *
 * Sentinels are asked last: how long they wait for a silent master.
 *
 * What servers say is shown, and decides what is advised. Votes are counted as those
 * of any lock (ballot.h). The quorum's servers must be asked for their identity.
 */
#ifndef SHOW_DOCTOR_H
#define SHOW_DOCTOR_H

#include "lock/lock.h"
#include "show/server_facts.h"

struct doctor {
	struct lock lock, waiter;  /* the waiter's names are the lock's */
	char *key;                 /* owned */
	const struct stage *stage; /* that all are at */
	int64_t ttl;               /* ms; of the locks to be taken later */
	int64_t asked;          /* on the wall clock: when this stage began */
	bool well;              /* a quorum would grant a lock */
	struct buffer warnings; /* about no single server */
	struct mailbox mailbox;
	struct listener listener; /* hears no message */
	struct buffer channel;    /* its name */
	struct server_facts at[SERVERS_MAX];
};

/* doctor is zeroed. */
void doctor_init(struct doctor *doctor, struct quorum *quorum, const char *key,
		 int64_t quarantine, int64_t ttl);
void doctor_release(struct doctor *doctor);

/* 0, or -1 with *error: no quorum would grant a lock. Its code is that of an attempt
 * to take one. */
int doctor_examine(struct doctor *doctor, struct error *error);

/* The number of servers that would grant one. */
size_t doctor_count(const struct doctor *doctor);

#endif
