/*
 * What --once-in promises of a key, judged while it happens:
 *
 *  - COMMAND does not begin where a run that succeeded began less than DURATION before,
 *    if a quorum has noted that success and has not forgotten it.
 *  - COMMAND is not refused because of a success where there was none within DURATION: a
 *    job must not rest for ever.
 *
 * A success is a COMMAND that its guard did not stop, with exit status 0, under a lock that
 * was not lost. A server has noted it once it has answered the first request of the release
 * with "released". If no such answer comes (the release was sent twice, its answers were
 * lost, or redlock was killed), what the server has written down says whether it has. An
 * answer alone is not enough: to a request that is sent again, "gone" counts as released,
 * too. So LOCK_OK does not mean that a quorum has noted anything, and is not looked at.
 *
 * Why a quorum is enough: the next holder has votes of a quorum, too, so there is a server
 * in both. It had noted the success before it gave its vote: of an exclusive lock, it does
 * not vote for the next one before, and forgets the last one if that lease ends first, so
 * that a release that is late notes nothing. If several may hold KEY, a vote can come
 * first; so only what was noted before the next one began to ask counts then.
 *
 * When a run began is when a server has granted it KEY, and how long ago that is each says
 * by its own clock: how far the clocks of servers are apart, and how fast they run, does
 * not matter. All servers of a quorum have to say that it is less than DURATION.
 *
 * The second promise is judged by what servers know, too: one that was stopped may grant
 * KEY only when COMMAND has ended, and one that gets KEY back says that the run began then.
 * So to these a run began later than it did, and that is when DURATION begins for them.
 *
 * A server that forgets KEY's data has noted nothing before that; if these are too many,
 * nothing is promised.
 */
#ifndef ONCE_H
#define ONCE_H

#include "plan.h"

/* A client begins to want its key. */
void once_take(size_t client);

/* COMMAND begins; then it has ended with exit 0, and a release is to say so. */
void once_begin(size_t client, size_t key, const char *token);
void once_succeeded(size_t client, size_t key);

/* That release has returned. */
void once_released(size_t client, size_t key, const struct ballot *ballot);

/* COMMAND was refused, as a run has succeeded. */
void once_refused(size_t client, size_t key);

#endif
