/*
 * redlock as a job of a terminal. COMMAND is in redlock's process group then,
 * so the shell, the terminal and its user deal with one job, as with flock(1).
 *
 *	job_start(&job);			before COMMAND is started
 *	if (job_has_terminal(&job)) ...		no group of its own for COMMAND
 *	if (job_has_got(&job, number, sender, due)) ...	a signal that redlock has read
 *	job_stop(&job, number, command, until);	COMMAND has stopped
 *	job_end(&job, killed);			COMMAND has ended
 *
 * A signal may be meant for redlock alone (kill(1)) or for the whole group
 * (the terminal, a shell's `kill %1`, tini -g). A signal to the group has
 * already reached COMMAND. A signal does not tell which of the two it is. So
 * there is a process of ours in the group, the bystander, which blocks all
 * signals: what is pending for it when redlock asks was sent to the group. The
 * kernel signals the members of a group from the newest to the oldest, so a
 * signal that has reached redlock has reached the bystander before. If the
 * bystander is gone, all signals count as meant for redlock.
 *
 * timeout(1) sends a signal to redlock and then the same one to the group, which it
 * is a member of. COMMAND is to get that once, as under flock(1). So if a member of
 * the group has sent a signal, redlock waits until that process sleeps, stops or has
 * ended, or for half a second, before it asks the bystander; not longer than until
 * something else is due, so that a COMMAND that sends signals all the time is renewed.
 * If the signal was sent to the group as well, COMMAND has it, and what redlock got
 * is dropped. Without a terminal COMMAND is in another group; there redlock waits as well,
 * and hands on one signal for the two.
 *
 * The bystander has neither redlock's name nor its command line, so that
 * pkill(1) does not hit both: that would look like a signal to the group.
 *
 * If COMMAND stops, redlock stops, too, as the shell sees only its own child
 * stop. By then the terminal may belong to COMMAND's own group (of an
 * interactive shell, for example). Then it is given back to that group when the
 * job is continued in the foreground. It is given to nobody else: a job that
 * has stopped in the background left the terminal to the shell.
 *
 * An interactive COMMAND gives the terminal back to redlock's group when it ends by
 * itself. One that is killed, because the lock is lost for example, cannot: a script
 * that goes on after redlock would be stopped as soon as it reads. So redlock takes the
 * terminal back from a group in which nobody lives any more. A group that lives keeps
 * it: a job of COMMAND's that runs on, or, if redlock's job is in the background, the
 * shell. There the shell is just about to take it if the job in the foreground has ended,
 * so redlock does nothing unless its own job was in the foreground.
 *
 * Such a COMMAND cannot undo what it has set either, such as no echo. If redlock has the
 * terminal then, it sets what was set when COMMAND began, as a shell does for a job that a
 * signal has ended. It does not know that if the job began in the background, where the
 * shell has settings of its own. And it sets nothing while another process of the group
 * lives, as that may have set them since: the pager at the end of a pipeline, or the script
 * that has started redlock, perhaps with `&`, and now reads a password. So redlock does it
 * only if it has the job for itself, as when an interactive shell starts it. What a COMMAND
 * that ends by itself has set is meant to last.
 *
 * A COMMAND that waits for a child made by vfork(2) takes no signal until that
 * child has called exec. If ^Z stops the child first, COMMAND does not stop: it
 * is in state D, with SIGTSTP pending. That counts as stopped, and the job stops.
 *
 * If somebody continues only COMMAND, redlock cannot notice: it is stopped. The
 * bystander, which SIGTSTP does not stop, sees in /proc that COMMAND goes on, and
 * continues redlock; so it does if COMMAND has ended. It watches COMMAND from before
 * redlock stops until redlock says that it runs, so it does not matter which of the
 * two comes first. Once the guard may continue COMMAND in order to kill it, the
 * bystander leaves redlock stopped: the user is told at `fg`. The
 * bystander's SIGCONT is not handed on, as COMMAND has had one.
 *
 * redlock does not follow a SIGSTOP that somebody else sends to COMMAND alone (an
 * administrator, cpulimit(1)): as under flock(1) the job keeps the terminal, redlock
 * renews the lock, and COMMAND goes on when it is continued. If the user presses ^Z
 * in this time, the job stops. A COMMAND that sends itself SIGSTOP (`suspend` of some
 * shells) stops the job. The system call in which it has stopped tells the two apart
 * (process.h); if that cannot be seen, redlock does not follow.
 *
 * A COMMAND that is stopped while redlock runs takes no ^C. redlock continues it when a
 * signal comes that is to end the job. flock(1), which does not look at signals, ends
 * then.
 *
 * No shell continues a group that is orphaned (POSIX): that of a session's leader, such as
 * what a terminal was opened for. The kernel does not stop it by SIGTSTP, and redlock does
 * not by SIGSTOP. A COMMAND that has stopped itself there waits for such a signal, too.
 */
#ifndef RUN_JOB_H
#define RUN_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <termios.h>

#include "base/deadline.h"

struct job {
	int terminal;    /* 0: there is none */
	int bystander;   /* socket, 0: there is none */
	pid_t pid;       /* the bystander's */
	unsigned owed;   /* answers */
	uint64_t shared; /* signals that the group has got, not yet looked at */
	bool continued;  /* the bystander has continued redlock */
	bool foreground; /* the job had the terminal when it began, or went on */
	bool known;      /* settings, of the terminal when it began */
	struct termios settings;
};

/* Before there are threads, with descriptors 0 to 2 in use. 0, or -1 with
 * errno: the bystander is missing. */
int job_start(struct job *job);

bool job_has_terminal(const struct job *job);

/* The signals that the group has got since the last call: bit N - 1 for signal
 * N. Async-signal-safe. */
uint64_t job_look(struct job *job);

/* Whether this signal, which redlock has just read, was sent to the group: by sender,
 * 0 if not known. Answers at about `due` at the latest. */
bool job_has_got(struct job *job, int number, pid_t sender,
		 struct deadline due);

/* After a SIGCHLD: the bystander may have been killed. */
void job_check(struct job *job);

/* Stops redlock by this signal, as command has stopped; but not a group that is orphaned.
 * Returns when redlock is continued: with the job, or because command goes on or has ended
 * before until. */
void job_stop(struct job *job, int number, pid_t command,
	      struct deadline until);

/* Takes the terminal back if COMMAND has left it to nobody, and restores its settings if
 * COMMAND was killed and redlock has the job for itself. */
void job_end(struct job *job, bool killed);

#endif
