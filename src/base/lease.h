/*
 * The arithmetic of a lease: how long a lock is believed, when it is renewed,
 * and when COMMAND is stopped. redlock-protocol(7) says why; this is the page
 * to hold beside it. All times are in ms, and nothing here looks at a clock.
 *
 * A lease of ttl ms begins, for its holder, before the first request is sent:
 *
 *	0              renewal            term    kill   validity   ttl
 *	|-- ttl/3 ------|------------------|-------|--------|--------|
 *	                                    kill_after margin  drift
 *
 * If `term` comes before two thirds of the ttl, the renewal is halfway to it.
 *
 * A holder that no renewal reaches sends SIGTERM at `term` and SIGKILL at
 * `kill`, so that COMMAND is gone before its validity ends. A server lets go
 * of the lock at ttl or later.
 *
 * A waiter that is granted KEY by a message gets a first lease of 3 s only,
 * until it has answered (queue.h). The same functions, given that lease
 * instead of the ttl, say when to stop COMMAND under it.
 */
#ifndef BASE_LEASE_H
#define BASE_LEASE_H

#include <stdint.h>

#include "base/deadline.h"

#define LEASE_LONGEST INT64_C(86400000)         /* of any ttl */
#define LEASE_AFTERLIFE (7 * INT64_C(86400000)) /* of KEY's record */

/* The part of a ttl that clocks may disagree about. */
int64_t lease_drift(int64_t ttl);

/* How long a grant is believed after its request was sent. */
int64_t lease_validity(int64_t ttl);

/* The shortest ttl that is longer than its own drift. */
int64_t lease_shortest(void);

/* --- renewing it ---------------------------------------------------------- */

/* From the start of a good round to the next one, at most. */
int64_t lease_renewal(int64_t ttl);

/* When to renew a lease that started then: when it is due, or halfway to SIGTERM if that
 * is sooner, as it is if COMMAND may take long to stop. In the other half there is time
 * for a round that no server answers (lease_need), and for repeating one that fails
 * sooner. */
struct deadline lease_renewal_due(struct deadline due, int64_t started,
				  struct deadline term);

/* Between rounds that fail, after the first repetition, which is at once. */
int64_t lease_retry(int64_t lease);

/* A renewal is late if less than this of the lease is left. */
int64_t lease_late(int64_t ttl);

/* For how long a server may be away before a run that needs it loses its lock. And the
 * ttl with which it may be away for so long. */
int64_t lease_outage(int64_t ttl);
int64_t lease_for_outage(int64_t outage);

/* --- taking it ------------------------------------------------------------ */

/* The lease that a message grants to a waiter (settle.lua, `unanswered`: a test holds
 * them together). */
int64_t lease_first(int64_t ttl);

/* A round has to confirm it unless more than this is left (queue.h). */
int64_t lease_unconfirmed(int64_t lease);

/* The longest time between two requests of a waiter to one server. Servers
 * take a waiter for gone that has not asked for two of the longest
 * (settle.lua, is_away). */
int64_t lease_heartbeat(int64_t ttl);

/* How much of the lease may pass while answers are waited for that no vote
 * depends on: of slow servers (silence.h), and of those that have not said yet
 * which server they are (alias.h). */
int64_t lease_for_slow_servers(int64_t ttl);
int64_t lease_for_names(int64_t ttl);

/* --- stopping COMMAND in time --------------------------------------------- */

/* From SIGKILL to the end of validity. From SIGKILL to reaped has taken 76 ms
 * at p99 for a process of 1 GiB. */
int64_t lease_margin(int64_t lease);

/* When to stop COMMAND so that it is gone before validity ends. */
struct lease_times {
	struct deadline term, kill; /* send SIGTERM, SIGKILL */
	struct deadline end;        /* of validity: no use in going on */
};

/* For a lease that is valid until then. One that is shorter than the ttl leaves
 * a sixth of itself between the signals, if that is less than kill_after. */
struct lease_times lease_times(struct deadline valid, int64_t lease,
			       int64_t ttl, int64_t kill_after);

/* The earlier of each: of two leases that COMMAND needs. */
struct lease_times lease_times_earlier(struct lease_times one,
				       struct lease_times other);

/* A ttl must be longer than this: two rounds must fit in before COMMAND has to
 * be stopped. */
int64_t lease_need(int64_t ttl, int64_t kill_after, int64_t server_timeout);

/* The validity that a run needs to begin with: a round, and then the time to
 * stop COMMAND. */
int64_t lease_validity_needed(int64_t ttl, int64_t kill_after,
			      int64_t server_timeout);

/* --- what is used unless it is set ---------------------------------------- */

/* A round's time: two of them fit into a short lease. */
int64_t lease_server_timeout(int64_t ttl);

/* From SIGTERM to SIGKILL. */
int64_t lease_kill_after(int64_t ttl);

/* How long a server that was restarted has no vote: others may use a longer
 * ttl than ours. */
int64_t lease_quarantine(int64_t ttl);

#endif
