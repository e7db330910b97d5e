/*
 * redlock as a job of a terminal: COMMAND is in redlock's process group then, so
 * the shell, the terminal and its user deal with one job, as with flock(1).
 *
 *	job_start(&job);			before COMMAND is
 *	if (job_has_terminal(&job)) ...		no group of its own for COMMAND
 *	if (job_has_got(&job, number)) ...	a signal that redlock has read
 *	job_stop(&job, number);			COMMAND has stopped
 *	job_end(&job);
 *
 * Whoever signals a job may mean redlock alone (kill(1)), or the whole group (the
 * terminal, a shell's `kill %1`, tini -g); the latter has reached COMMAND already.
 * Nothing that comes with a signal tells the two apart. So there is a process
 * of ours in the group that does nothing but stand by: it blocks all signals,
 * and what is pending for it when redlock asks was sent to the group. A process
 * that signals a group does so from the newest member to the oldest, so what has
 * reached redlock has reached the bystander before. Where that is gone, signals
 * count as meant for redlock.
 *
 * It bears neither redlock's name nor its command line, so that pkill(1) does not
 * hit it as well: that would look like a signal to the group.
 *
 * A COMMAND that stops, stops redlock: the shell sees its own child stop only. The
 * terminal may belong to COMMAND's own group by then (an interactive shell's), so
 * when the job is continued in the foreground it is given back. It is given to
 * nobody else: a job that has stopped in the background left it to the shell.
 */
#ifndef JOB_H
#define JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct job {
	int terminal;    /* 0: there is none */
	int bystander;   /* socket, 0: there is none */
	pid_t pid;       /* its */
	unsigned owed;   /* answers */
	uint64_t shared; /* signals that the group has got, not yet looked at */
};

/* Before there are threads, with descriptors 0 to 2 in use. 0, or -1 with errno: the bystander is missing. */
int job_start(struct job *job);

bool job_has_terminal(const struct job *job);

/* The signals that the group has got and redlock has not asked for: bit N - 1 for
 * signal N. Async-signal-safe. */
uint64_t job_look(struct job *job);

/* Whether this signal, which redlock has just read, has come to the group. */
bool job_has_got(struct job *job, int number);

/* After a SIGCHLD: the bystander may have been killed. */
void job_check(struct job *job);

/* Stops redlock by this signal, as command has stopped; returns when it is
 * continued. */
void job_stop(const struct job *job, int number, pid_t command);

void job_end(struct job *job);

#endif
