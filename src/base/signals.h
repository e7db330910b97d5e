/*
 * Signals as a descriptor, and the mask and dispositions we were started with.
 *
 * Signals that end a waiter or go to COMMAND are blocked, and read from one signalfd.
 * So none can arrive between two lines: it stays pending until somebody looks, and
 * every sleep has the descriptor in its poll set. These are all signals that would end
 * us, whatever they are for, as any of them would leave the lock held. A fault of our
 * own still ends us, as the kernel does not let it be blocked. A signal that the
 * parent has set to be ignored (nohup) stays ignored, but for what a keeper is told to
 * end by (signals_heed). That is looked at when a signal comes, as most starts see none.
 *
 * This is the only module that touches masks and dispositions. They are
 * process-wide.
 */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct signals_mask {
	sigset_t set;
};

/* First act of main: remembers what was inherited; SIGPIPE and SIGXFSZ are
 * ignored from here on (a write then fails), SIGCHLD is not. */
void signals_init(void);

/* Until signals_open: before one of the usual signals ends us, its handler calls act, so
 * act must be async-signal-safe. A signal that the parent has set to be ignored stays
 * ignored. */
void signals_call_before_end(void (*act)(int number));

/* A descriptor that is readable once a signal has come that would end us;
 * -1 with errno. From now on the first process of a pid namespace (a container's)
 * leaves all its children to the kernel, which reaps them. */
int signals_open(void);

/* From now on the descriptor also reports CHLD, WINCH, CONT and TSTP, and all
 * children are ours to reap. */
int signals_open_all(void);

/* Takes the pending signals that are to be ignored. Then whether fd is still readable: it
 * is this descriptor, or an epoll(7) that contains it, or any other. */
bool signals_have_come(int fd);

/* Takes the next one; 0 if nothing is pending. _from: also tells which process has
 * sent it; 0 if the kernel has, or a process of no pid namespace of ours. */
int signals_next(void);
int signals_next_from(pid_t *sender);

/* A signal in a set of them. */
static inline uint64_t signals_bit(int number)
{
	return UINT64_C(1) << (number - 1);
}

/* The signals that are blocked and pending for this process. _take takes those
 * that are in which. Async-signal-safe. */
uint64_t signals_pending(void);
uint64_t signals_take(uint64_t which);

/* Whether one of these would end this process. */
bool signals_tell_to_end(void);

/* From now on this one is heeded, even if the parent has set it to be ignored. */
void signals_heed(int number);

/* Whether it is how a terminal, a shell or a user ends a process. */
static inline bool signals_is_end(int number)
{
	return number == SIGHUP || number == SIGINT || number == SIGQUIT ||
	       number == SIGTERM;
}

/* Whether it stops a process. */
static inline bool signals_is_stop(int number)
{
	return number == SIGSTOP || number == SIGTSTP || number == SIGTTIN ||
	       number == SIGTTOU;
}

/* Stops us by this signal, until we are continued. */
void signals_stop(int number);

/* Around what no signal may come into the middle of, such as fork or pthread_create:
 * nothing is delivered in between. */
void signals_block_all(struct signals_mask *before);
void signals_unblock(const struct signals_mask *before);

/* In a forked child: what was inherited, as it was. Async-signal-safe. */
void signals_reset(void);

/* In a forked child: nothing of what was inherited is left, but for SIGXFSZ, which stays
 * ignored: a limit on the size of files shall not end it. */
void signals_set_default(void);

/* Ends the process as SIGPIPE does, unless it was ignored when redlock began. */
void signals_end_by_pipe(void);

/* Ends the process by this signal, without a core. */
void signals_die(int number) __attribute__((noreturn));

/* Ends the process after this time, with status 0 and without a word: what it has written
 * until then is all that it had to say. */
void signals_end_after(int64_t ms);

/* "TERM", "SIGTERM" or "15"; 0 if there is no such signal. */
int signals_parse(const char *name);

/* The names that _parse knows, without SIG, from 0; NULL: no more. */
const char *signals_name(size_t n);

#endif
