/*
 * What redlock promises, judged while it happens. A promise that is broken ends the run.
 *
 * Two that hold a key at once, and a fence that falls, are seldom seen: whoever is the next
 * must come in that moment, and reach the right servers. So what these promises rest on
 * (lock.h) is judged as well, whenever a lock is taken or renewed:
 *
 *  - As long as a client believes in its lock, a quorum of servers has it. None of them
 *    lets it end sooner, or gives it another slot.
 *  - A quorum of servers has stored its fence. A vote has the largest fence that its server knows,
 *    even if it was given before.
 *  - A server that has lost it, or was out of reach, gets it with one of the next renewals, if
 *    nobody else tries to get the key, or all share it.
 *
 * And an attempt has no error, and no lock is lost, if most servers have been there and well
 * all the time. Nor is one lost that a quorum of servers still has, if these were well for
 * the last third of its lease. Who waits has no error, for as long as its limit lasts, or
 * for ever once a quorum has answered; and none at its end, if most servers were well then.
 *
 * A server that has lost data within a ttl counts as one of them: it may have voted before.
 *
 * While there is peace, a release reaches most servers if these are well; and no server grants
 * anything to a waiter that it knows to be gone.
 *
 * Who waits while it is calm gets the key within a bound: if somebody had it meanwhile, that grows
 * with what they may need, else it is short. While there is peace it is shorter still
 * (needless.h).
 */
#ifndef JUDGE_H
#define JUDGE_H

#include "plan.h"

/* From the beginning of the world. */
void judge_watch(void);

/* COMMAND of a client runs from now on: called for each of its keys. part: the owner
 * of a reentrant lock, or the slot of a permit, else 0. evicted: a server has taken the key
 * away from it already (break --now). */
void judge_begin(size_t client, size_t key, int64_t fence, int64_t part,
		 bool evicted);
void judge_end(size_t client);

/* Its lock was lost, or its guard has ended COMMAND, and nobody has asked it to stop. begun: us: when
 * the guard began to, as what comes after that helps no more; else now. */
void judge_loses(size_t client, int64_t begun, const char *why);

/* A server takes the key away from a client whose COMMAND runs: it may run on, beside the
 * next ones. */
void judge_evicted(size_t client, size_t key);

/* A client whose COMMAND runs believes in its lock until then (us): for as long, a quorum of
 * servers has it, and the same slot of it. */
void judge_belief(size_t client, size_t key, const char *token, int64_t until);

/* A client waits in the queue, or does no longer. */
void judge_wait(size_t client);
void judge_served(size_t client);

/* A client tries to get its keys, whether it waits or not; it does so no longer, and
 * calls one busy, or has an error; or it is told that it need not run (--once-in); or it
 * was killed. */
void judge_try(size_t client);
void judge_gives_up(size_t client);

/* Whom it is told of. */
void judge_is_told(size_t client, const char *who);

void judge_fails(size_t client, const char *why);

/* A client that waits has an error: over: its limit is; lasts: it may go by itself. */
void judge_tires(size_t client, bool over, bool lasts, const char *why);
void judge_spared(size_t client);
void judge_killed(size_t client);

/* It was killed before it had its key, with this token. A server that has told it of a grant keeps that
 * for 3 s: only what a request has got it lasts longer. */
void judge_dies(size_t client, size_t key, const char *token);

/* The holders of a key are asked to stop: not all servers need hear of it. */
void judge_asked(size_t key);

/* break --now begins to take a key away; whether that was so since then. */
void judge_broken(size_t key);
bool judge_was_broken(size_t key, int64_t since);

/* A script whose lease was over was told that it has been prolonged: the lock is still its
 * own, and nobody has held the key in between. */
void judge_resume(size_t client, size_t key, int64_t fence, int64_t part);

/* Whether it is calm, and has been since then. */
bool judge_is_calm(int64_t since);

/* Whether COMMAND of a client that has this key runs, and did so then. */
bool judge_holds(size_t client, size_t key, int64_t since);

/* Whether a client waits in the queue, and whether nobody can have the key beside those who
 * have it: others of an owner, or who share it, may. */
bool judge_waits(size_t client);
bool judge_is_full(size_t key);

/* The fences of a key have been forgotten, as long ago as records last. */
void judge_forget(size_t key);

/* Each waiter, now. */
void judge_waiters(void);

/* The largest fence of the key that anybody has held. */
int64_t judge_fence(size_t key);

/* A release that began then could not give its key back. */
void judge_keeps(size_t client, size_t key, int64_t began, const char *why);

/* A client has ended that may have held the key with this token. A second later, or that
 * long after --min-hold (kept, ms), no server may have it any more, unless others of its owner
 * are there. */
void judge_left(size_t client, size_t key, const char *token, int64_t kept);

/* What is left on the servers when nobody holds anything, or wants to. */
void judge_leftovers(bool all);

struct figures {
	uint64_t grants, commands, calm_grants, calm_commands;
	uint64_t refused; /* --once-in */
	int64_t longest;  /* us that anybody has waited while it was calm */
	int64_t needless; /* us that a wait has lasted that nothing explained */
};

extern struct figures figures;

#endif
