/*
 * Which of the servers that have granted KEY have a vote: those that cannot
 * have forgotten that somebody holds it (redlock-protocol(7), Servers that
 * forget).
 *
 *	trust_begin(lock);                 a wait: nothing has been told
 *	trust_begin_attempt(lock);         nobody has answered
 *	trust_hear(lock, i, age, last);    each answer tells its record's age
 *	trust_hear_holder(lock, i, ...);   a refusal, who holds KEY and for long
 *	trust_weigh(lock);                 VOTE_YES or VOTE_QUARANTINED, by all that
 *	                                   has been told so far
 *
 * A grant is a promise that the server has given no other. That is worth
 * something only while the server remembers the others. With three servers or
 * more a quorum of new servers could otherwise be had beside a holder:
 *
 *  - Uptime. One that has been up for less than the quarantine may have
 *    forgotten a lease that still runs, unless every write is on its disk
 *    before it answers. No lease is longer than its ttl, so a quarantine of
 *    the longest ttl that anybody uses is a proof; the default is a guess.
 *  - Learned. What a refusal tells makes the guess better: the longest ttl and
 *    the longest time left that were told during this wait are the quarantine,
 *    if that is longer. More can only keep us out for longer.
 *  - Hearing. Whoever could teach us that may answer last. So a quorum that
 *    needs a server which was started within the hour and appends to no file
 *    hears all that answer within the round, before it counts. One that cannot
 *    be heard is not waited for any longer: an outage is no reason to stop.
 *  - The missing record. One that was emptied while it ran has been up for
 *    long. But it begins KEY's record anew, and its age gives it away: the
 *    record is younger than that of another server (by more than requests of
 *    one attempt can be apart), or than the time for which somebody holds KEY
 *    there of whom it knows nothing (it tells who had KEY last). It has no vote
 *    until the record is older than the longest lease told of: until then a
 *    lease that was forgotten may run. A record that has
 *    not seen its holder go (KEY was evicted, or deleted by hand) begins anew,
 *    too (settle.lua).
 *    A KEY that is new to all has young records everywhere, and counts at once;
 *    as that looks the same until the last has answered, the others are given
 *    as long again as the quorum took, so that a dead minority is hardly felt.
 *
 * Every time is taken so that an error makes a record younger, and a holder
 * older. What this cannot know: that all who knew the holder forget (with a
 * ttl that is longer than the quarantine), that who knows cannot be heard, and
 * that a server's wall clock is set forward after its restart or loss.
 *
 * What is told is clamped: a server that lies can keep us out, for a day at
 * most, as it could by granting nothing; it can let nobody in but by its vote.
 */
#ifndef TRUST_H
#define TRUST_H

#include "lock.h"

/* Of "it has no vote", and until when. */
#define TRUST_TEXT 160

void trust_begin(struct lock *lock);
void trust_begin_attempt(struct lock *lock);

/* The server's record of KEY is so old (ms), as it says in answer to what was
 * asked at lock->told[server].asked. last: of whom it knows, the last to hold
 * KEY ("": nobody; NULL: it has not said). */
void trust_hear(struct lock *lock, size_t server, int64_t age,
		const char *last);

/* Besides, in a refusal: one that has this mark ("", "*": not one) holds KEY
 * there for so long (ms, -1 unknown), with so much left (-1: for ever) of so
 * long a ttl (0: unknown). */
void trust_hear_holder(struct lock *lock, size_t server, const char *mark,
		       int64_t held, int64_t left, int64_t ttl);

/* Tells the grants that count from those that do not. */
void trust_weigh(struct lock *lock);

/* Whether a quorum of votes can be relied on without hearing the others. */
bool trust_is_firm(const struct lock *lock);

/* Whether it needs a server that was started not long ago: whoever answers
 * within the round is to be heard. Else those are that are near enough. */
bool trust_needs_all(const struct lock *lock);

/* When the next grant that does not count will; never for none. */
struct deadline trust_next(const struct lock *lock);

/* Nobody is known to hold KEY, and it lacks only votes of servers that have lost
 * its record: they will count in a while. */
bool trust_is_short_of_records(const struct lock *lock);

/* The longest lease that somebody may have (ms), as far as we have heard. */
int64_t trust_longest(const struct lock *lock);

/* Why a VOTE_QUARANTINED does not count. */
const char *trust_explain(const struct lock *lock, size_t server,
			  char text[TRUST_TEXT]);

#endif
