/*
 * Which servers that granted KEY have a vote: those that cannot have forgotten
 * that somebody holds it (redlock-protocol(7), Servers that forget).
 *
 *	trust_begin(ballot);                a wait: nothing has been reported
 *	trust_begin_attempt(ballot);        nobody has answered
 *	trust_hear(ballot, i, ...);         each answer tells its record's age
 *	trust_hear_holder(ballot, i, ...);  a refusal tells who holds KEY
 *	trust_hear_tenants(ballot, i, ...); an answer names several holders
 *	trust_weigh(ballot);                VOTE_YES or VOTE_QUARANTINED, by
 *	                                    all that has been reported so far
 *
 * A grant is a promise that the server has given no other. It is worth
 * something only while the server remembers its other promises. Otherwise, with
 * three servers or more, servers that have forgotten could make a quorum beside
 * a holder. Four things prevent that:
 *
 *  - Uptime. A server that has been up for less than the quarantine may have
 *    forgotten a lease that still runs, unless it writes everything to its disk
 *    before it answers. No lease is longer than its ttl. So a quarantine of the
 *    longest ttl that anybody uses is a proof; the default is a guess.
 *    What was on the disk must also have been read: Redis 7 forgets what scripts
 *    wrote if its user `default` has no rights, so a server that syncs every write
 *    is only believed if that user may do everything (identity.h). What this user
 *    may do now is taken for what it could do when the server was started.
 *  - Learned. Refusals improve the guess: if they report a ttl or a remaining
 *    time during this wait that is longer than the quarantine, the longest of
 *    these is the quarantine. A grant of a slot reports the longest ttl of those
 *    who hold other slots, which is used in the same way. A larger number can
 *    only keep us out for longer.
 *  - Hearing. The server that could tell us this may answer last. So if a
 *    quorum needs a server that was started within the hour and appends to no
 *    file, we wait for all servers that answer within the round before the
 *    quorum counts. After that we wait no longer: an outage is no reason to
 *    stop.
 *  - The missing record. A server that was emptied while it ran has been up for
 *    long. But it begins KEY's record anew, and the record's age shows that.
 *    There are two signs. Either the record is younger than that of another
 *    server, by more than requests of one attempt can be apart. Or somebody
 *    holds KEY on another server, has held it for longer than the age of this
 *    record, and is unknown here (a server tells who had KEY last, and names up
 *    to twenty holders that share KEY). Such a server has no vote until its
 *    record is older than the longest lease that was reported: until then a
 *    forgotten lease may run. If what is known is the holder of a slot, the
 *    server has no vote for that slot, and may have one for another. A record
 *    also begins anew if it has not seen its holder go, because KEY was evicted
 *    or deleted by hand (settle.lua).
 *
 * A KEY that is new to all servers has young records everywhere, and counts at
 * once. Until the last server has answered, this looks the same as a loss: one
 * server may have been emptied, and the only other server that knows the holder
 * may be far away. So the other servers get as long again as the quorum took,
 * and 25 ms. Those that have not been silent within the last minute get at
 * least 200 ms from when they were asked (silence.h). Nothing less would do:
 * 25 ms after the quorum not even a handshake with a far server need be
 * complete, and only what was seen of a server before distinguishes it from a
 * dead one. Waiting for the whole round would cost each new KEY a second while
 * a server is down. This way a dead minority is hardly felt: once a minute, one
 * acquisition takes 200 ms longer. One case remains: a server that knows the
 * holder but answers later than that.
 * We wait for the others until the records are older than the quarantine: a
 * holder that we have not heard of may have a longer ttl than ours. If there is a sign
 * that one of the records was lost, the quarantine is too short for that: the
 * lease that was lost with it may be one of hours. So that record has to be an hour old,
 * as a server has to be up for an hour.
 *
 * Every time is taken so that an error makes a record younger, and a holder
 * older. Three things cannot be known: that all servers that knew the holder
 * have forgotten it (if its ttl is longer than the quarantine), what an
 * unreachable server knows, and that a server's wall clock was set forward
 * after its restart or loss.
 *
 * Reported numbers are clamped. A server that lies can keep us out for a day at
 * most, as it could by granting nothing. Only its vote can let anybody in.
 */
#ifndef LOCK_TRUST_H
#define LOCK_TRUST_H

#include "lock/ballot.h"

/* Bytes of the reason why a server has no vote. */
#define TRUST_TEXT 160

void trust_begin(struct ballot *ballot);
void trust_begin_attempt(struct ballot *ballot);

/*
 * Notes the age (ms) of the server's record of KEY, from its answer to what was
 * asked at ballot->report[server].asked. begins: the request begins a record if
 * there is none. last: the token's prefix of the last holder that the server
 * knows of ("": none; NULL: it has not said).
 */
void trust_hear(struct ballot *ballot, size_t server, bool begins, int64_t age,
		const char *last);

/* Notes what else a refusal says of the holder: its token's prefix ("", "*":
 * not a single one), how long it has held KEY (ms, -1: unknown), the time left
 * (-1: for ever), and its ttl (0: unknown). */
void trust_hear_holder(struct ballot *ballot, size_t server, const char *holder,
		       int64_t held, int64_t left, int64_t ttl);

/* Notes a ttl (ms, 0: unknown) with which others hold KEY. */
void trust_learn(struct ballot *ballot, int64_t ttl);

/* Notes several holders: text as acquire.lua has it, as far as it makes sense; ttl (ms,
 * 0: unknown) is the longest of theirs. */
void trust_hear_tenants(struct ballot *ballot, size_t server, const char *text,
			int64_t ttl);

/* The server has granted it since the refusal that was noted last: whom that named does not hold it
 * there any more. (An answer with a grant says so itself.) */
void trust_hear_overtaken(struct ballot *ballot, size_t server);

/* Separates the grants that count from those that do not. */
void trust_weigh(struct ballot *ballot);

/* Whether a quorum of votes can be relied on without hearing the others. */
bool trust_is_firm(const struct ballot *ballot);

/* Whether the quorum needs a server that was started not long ago. Then we wait
 * for all that answer within the round; otherwise only for those that are near
 * enough. */
bool trust_needs_all(const struct ballot *ballot);

/* When the next grant that does not count yet will count; never if there is
 * none. */
struct deadline trust_next(const struct ballot *ballot);

/* Whether nobody is known to hold KEY, and only votes of servers that have lost
 * its record are missing: they will count in a while. */
bool trust_is_short_of_records(const struct ballot *ballot);

/* The longest lease (ms) that was reported, our own included. */
int64_t trust_longest(const struct ballot *ballot);

/* Whether the server is known to be up for less than the quarantine, so that its
 * grant does not count. */
bool trust_is_new(const struct ballot *ballot, size_t server);

/* Why a VOTE_QUARANTINED does not count. */
const char *trust_explain(const struct ballot *ballot, size_t server,
			  char text[TRUST_TEXT]);

#endif
