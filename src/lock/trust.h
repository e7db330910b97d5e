/*
 * Which of the servers that have granted KEY have a vote: those that cannot
 * have forgotten that somebody holds it (redlock-protocol(7), Servers that
 * forget).
 *
 *	trust_begin(lock);                a wait: nothing has been told
 *	trust_begin_attempt(lock);        nobody has answered
 *	trust_hear(lock, i, age, last);   each answer tells its record's age
 *	trust_hear_holder(lock, i, ...);  a refusal tells who holds KEY
 *	trust_weigh(lock);                VOTE_YES or VOTE_QUARANTINED, by all
 *	                                  that has been told so far
 *
 * A grant is a promise that the server has given no other. It is worth
 * something only while the server remembers the others. With three servers or
 * more, a quorum of new servers could otherwise be had beside a holder:
 *
 *  - Uptime. A server that has been up for less than the quarantine may have
 *    forgotten a lease that still runs, unless every write is on its disk
 *    before it answers. No lease is longer than its ttl, so a quarantine of the
 *    longest ttl that anybody uses is a proof; the default is a guess.
 *  - Learned. What refusals tell improves the guess: if the longest ttl or the
 *    longest time left that was told during this wait is longer than the
 *    quarantine, it is the quarantine. A larger number can only keep us out for
 *    longer.
 *  - Hearing. The server that could tell us this may answer last. So if a
 *    quorum needs a server that was started within the hour and appends to no
 *    file, all servers that answer within the round are heard before it counts.
 *    One that cannot be heard is not waited for any longer: an outage is no
 *    reason to stop.
 *  - The missing record. A server that was emptied while it ran has been up for
 *    long. But it begins KEY's record anew, and the record's age shows that.
 *    There are two signs. The record is younger than that of another server, by
 *    more than requests of one attempt can be apart. Or somebody holds KEY on
 *    another server, has held it for longer than the age of this record, and is
 *    unknown here (a server tells who had KEY last). Such a server has no vote
 *    until its record is older than the longest lease told of: until then a
 *    forgotten lease may run. A record that has not seen its holder go (KEY was
 *    evicted, or deleted by hand) begins anew, too (settle.lua).
 *
 * A KEY that is new to all servers has young records everywhere, and counts at
 * once. This looks the same until the last server has answered: one may have been
 * emptied, and the only other one that knows the holder may be far. So the others
 * are given as long again as the quorum took and 25 ms, and those that have not
 * been silent within the last minute at least 200 ms from when they were asked
 * (silence.h). Nothing less would do: 25 ms after the quorum not even a handshake
 * need have come from a far server, and nothing tells it from a dead one but what
 * was seen of it before. To hear the whole round instead would cost each new KEY a
 * second while a server is down. So a dead minority is hardly felt: once a minute,
 * one acquisition takes 200 ms longer. One case remains: a server that knows the
 * holder but answers later than that.
 * The others are heard until the records are older than the quarantine: a holder
 * that we have not heard of may have a longer ttl than ours.
 *
 * Every time is taken so that an error makes a record younger, and a holder
 * older. Three things cannot be known: that all servers that knew the holder
 * have forgotten it (with a ttl that is longer than the quarantine), what a
 * server knows that cannot be reached, and that a server's wall clock was set
 * forward after its restart or loss.
 *
 * What is told is clamped. A server that lies can keep us out, for a day at
 * most, as it could by granting nothing. It can let nobody in but by its vote.
 */
#ifndef TRUST_H
#define TRUST_H

#include "lock/lock.h"

/* Bytes of the reason why a server has no vote. */
#define TRUST_TEXT 160

void trust_begin(struct lock *lock);
void trust_begin_attempt(struct lock *lock);

/* Notes the age (ms) of the server's record of KEY, from its answer to what was
 * asked at lock->told[server].asked. last: the last holder that it knows of
 * ("": none; NULL: it has not said). */
void trust_hear(struct lock *lock, size_t server, int64_t age,
		const char *last);

/* Notes what a refusal says of the holder besides: its mark ("", "*": not a
 * single one), how long it has held KEY (ms, -1: unknown), the time left (-1:
 * for ever), and its ttl (0: unknown). */
void trust_hear_holder(struct lock *lock, size_t server, const char *mark,
		       int64_t held, int64_t left, int64_t ttl);

/* Tells the grants that count from those that do not. */
void trust_weigh(struct lock *lock);

/* Whether a quorum of votes can be relied on without hearing the others. */
bool trust_is_firm(const struct lock *lock);

/* Whether the quorum needs a server that was started not long ago: then all
 * that answer within the round are heard; otherwise only those that are near
 * enough. */
bool trust_needs_all(const struct lock *lock);

/* When the next grant that does not count yet will count; never if there is
 * none. */
struct deadline trust_next(const struct lock *lock);

/* Whether nobody is known to hold KEY, and only votes of servers that have lost
 * its record are missing: they will count in a while. */
bool trust_is_short_of_records(const struct lock *lock);

/* The longest lease (ms) that was told of, our own included. */
int64_t trust_longest(const struct lock *lock);

/* Whether the server is known to be up for less than the quarantine, so that a
 * grant of it does not count. */
bool trust_is_new(const struct lock *lock, size_t server);

/* Why a VOTE_QUARANTINED does not count. */
const char *trust_explain(const struct lock *lock, size_t server,
			  char text[TRUST_TEXT]);

#endif
