/*
 * What /proc says about one process. Without /proc, or the right to look, nothing
 * is known.
 */
#ifndef RUN_PROCESS_H
#define RUN_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buffer.h"

struct process {
	pid_t pid, parent, group, session;
	unsigned long long
		started; /* ticks; tells it from a later one of its pid */
	char state;      /* R, S, T and so on, as proc(5) has them */
	bool kernel;     /* one of the kernel's own threads */
	bool alive;
	bool ours, undecided; /* for tree.c */
};

/* Whether /proc is there, and that of our pid namespace: in another one's, a pid is
 * that of a stranger. */
bool process_proc_is_ours(void);

/* False if there is none. */
bool process_read(struct process *process, pid_t pid);

/* Even if /proc does not show it. */
bool process_exists(pid_t pid);

/* Whether pid is the number of a thread, and not of its process. */
bool process_is_thread(pid_t pid);

/* A pidfd, or -1 with errno, also if none can be used to send; and sends a signal by it. */
int process_pidfd(pid_t pid);
int process_send(int pidfd, int number);

/* A descriptor of that process, with the same file offset, or -1 with errno. */
int process_descriptor(int pidfd, int number);

/* Sends number to this process, and never to a later one that has its pid. False
 * if it has ended. */
bool process_signal(const struct process *process, int number);

/* Whether badge is an item of REDLOCK_HELD in the process's environment: a blank
 * or the end follows it. unsure: it shows no environment, as it is just becoming another
 * program, or ends. */
bool process_carries(pid_t pid, const char *badge, bool *unsure);

/* Whether a process of this group lives. The dead keep a group until they are reaped, but
 * do nothing in it. A group that exists but is not shown counts as living. */
bool process_group_lives(pid_t group);

/* The same for our own group, not counting us: another part of a pipeline, for instance, or
 * the script that we were started by. */
bool process_has_peers(void);

/* Adds "pid N of USER 'NAME'", after a comma. */
void process_name(pid_t pid, struct buffer *text);

/* Its arguments with blanks between them, the first few KiB. False if there are
 * none. */
bool process_command_line(pid_t pid, struct buffer *text);

/* If its first thread has ended, and others run on, the state is theirs. 0: not known. */
char process_state(pid_t pid);

/* Whether this signal was sent to it, and it has not taken it yet. */
bool process_has_pending(pid_t pid, int number);

/* Whether one of its threads is in a call that sends this signal: such a process,
 * if it is stopped, has stopped itself. */
bool process_sends(pid_t pid, int number);

#endif
