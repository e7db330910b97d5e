/*
 * What /proc tells of one process. Without /proc, or the right to look, nothing is
 * known.
 */
#ifndef PROCESS_H
#define PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/output.h"

/* Its arguments with blanks between them, the first few KiB. False if there are
 * none. */
bool process_command_line(pid_t pid, struct buffer *text);

/* R, S, T and so on, as proc(5) has them; 0: not known. */
char process_state(pid_t pid);

/* Whether a thread of it is within a call that sends this signal: a stopped
 * process in which one is has stopped itself. */
bool process_sends(pid_t pid, int number);

#endif
