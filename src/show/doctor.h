/*
 * Whether servers would grant a lock now, tried as a lock would be, and what is
 * not as it should be.
 *
 *	doctor_init(&doctor, &quorum, key, quarantine, ttl);
 *	doctor_examine(&doctor, &error);
 *	doctor_release(&doctor);
 *
 * All servers are asked at once, one question after the other, each for the
 * time of a round at most; one that is silent or refuses a lock is asked no
 * more. First what it says of itself, then what its user may do, then the life
 * of a lock of its own: taken, renewed, looked at, found, waited for by
 * another, given back, and handed over to that other.
 *
 * That lock's KEY is the given one with ":doctor:" and a random number behind
 * it, so whatever is allowed for names that begin with KEY is allowed for it,
 * and no lock is ever disturbed. Nothing is left: its record ends with it
 * (lock.h, afterlife), and it with its short lease where the doctor was
 * killed; places in a queue end after a minute.
 *
 * Sentinels are asked last: how long they wait for a silent master.
 *
 * What servers say is shown, and decides what is advised; votes are counted as
 * those of any lock (ballot.h). The quorum's servers must be asked for their
 * identity.
 */
#ifndef DOCTOR_H
#define DOCTOR_H

#include "lock/ballot.h"
#include "show/server_facts.h"

struct doctor {
	struct lock lock, waiter; /* the waiter's names are the lock's */
	struct hearing hearing;
	struct busy busy;
	char *key;              /* owned */
	int stage;              /* that all are at */
	int64_t ttl;            /* ms; of the locks that there will be */
	int64_t asked;          /* on the wall clock: when this stage began */
	bool well;              /* a quorum would grant a lock */
	struct buffer warnings; /* of all of them, as a checkup's */
	struct mailbox mailbox;
	struct listener listener; /* hears no message */
	struct checkup at[SERVERS_MAX];
};

/* doctor is zeroed. */
void doctor_init(struct doctor *doctor, struct quorum *quorum, const char *key,
		 int64_t quarantine, int64_t ttl);
void doctor_release(struct doctor *doctor);

/* 0, or -1 with *error where no quorum would grant a lock: its code is that of
 * an attempt to take one. */
int doctor_examine(struct doctor *doctor, struct error *error);

/* How many would grant one. */
size_t doctor_count(const struct doctor *doctor);

#endif
