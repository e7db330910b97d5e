/*
 * What --once-in promises, judged in the course of a run:
 *
 *  - COMMAND does not begin if a run that succeeded began less than DURATION before, and
 *    a quorum has noted that success and has not forgotten it.
 *  - COMMAND is not refused if no run that succeeded began within DURATION: a job must
 *    not rest for ever.
 *  - While KEY is certainly held, for 30 seconds at most, the release of a success goes on: if
 *    most of the servers that granted it are there again for some rounds before that is over, a
 *    quorum has noted it.
 *
 * A success is a COMMAND that its guard did not stop, with exit status 0, under a lock that
 * was not lost. A server has noted it once it has answered the first request of the release
 * with "released". If no such answer comes (the release was sent twice, its answers were
 * lost, or redlock was killed), what the server has written down says whether it has. An
 * answer alone is not enough: to a request that is sent again, "gone" counts as released,
 * too. So LOCK_OK does not mean that a quorum has noted anything, and is not looked at.
 *
 * Why a quorum is enough: the next holder has votes of a quorum, too, so there is a server
 * in both. For an exclusive lock, that server noted the success before it voted for the
 * next holder: it votes after the release, or after the lease has ended, and then a late
 * release notes nothing. If several may hold KEY, the vote can come before the note; so
 * then a success counts only if it was noted before the next client began to ask.
 *
 * A run began when a server granted it KEY, and each server tells by its own clock how long
 * ago that was: it does not matter how far servers' clocks are apart, or how fast they run.
 * All servers of a quorum have to say that it is less than DURATION.
 *
 * The second promise, too, is judged by what servers know. A server that was stopped may
 * grant KEY only after COMMAND has ended. For it the run began later than it did, and so
 * does DURATION.
 *
 * What a server has forgotten, it has not noted. If too many forget, nothing is promised.
 */
#ifndef ONCE_H
#define ONCE_H

#include "plan.h"

/* A client begins to want its key. */
void once_take(size_t client);

/* COMMAND begins; then it has ended with exit 0, and a release is to say so. */
void once_begin(size_t client, size_t key, const char *token);
void once_succeeded(size_t client, size_t key);

/* A client has this key, by this token, and began to ask for it then (us): no server may say that it has had
 * it for longer, by its own clock. */
void once_held(size_t client, size_t key, const char *token, int64_t asked);

/* The release of a success begins, and may go on until then (us). */
void once_releases(size_t client, size_t key, int64_t until);

/* That release has returned. */
void once_released(size_t client, size_t key, const struct ballot *ballot);

/* The client was killed: its release goes on no more. */
void once_killed(size_t client);

/* COMMAND was refused, as a run has succeeded. */
void once_refused(size_t client, size_t key);

#endif
