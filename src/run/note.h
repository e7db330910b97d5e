/*
 * The notes by which a keeper is found, in the runtime directory (runtime.h): one names its
 * process, the locks and their holds, and takes what the keeper has to say to whoever
 * releases them; the other names its servers. Both are whole at once, as they are renamed.
 *
 *	keeper-NS-PID	START TOKEN\nKEY[\nTOKEN\nKEY ...]
 *			START PID,HOLD[,HOLD ...] TOKEN\nKEY ...	reentrant locks
 *	servers-NS-PID	a line for each server (nearness.h), an empty one, and how long
 *			a round may take (ms)
 *
 * NS is the pid namespace: containers may share the directory, and each has pids of its
 * own. START tells the keeper from a later process with its pid. Keys are in bytewise
 * order.
 *
 * An earlier redlock's keeper has no note of servers. It only knows SIGUSR1, at which it
 * ends and leaves the locks to whoever has sent it. One that has such a note gives the
 * locks back at SIGUSR2, and says what came of it with or without what is unsure.
 *
 * A note is removed once its keeper's pid is nobody's. What /proc does not show, or not
 * to us, may live: it is neither signalled nor forgotten.
 */
#ifndef RUN_NOTE_H
#define RUN_NOTE_H

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>

#include "base/error.h"
#include "lock/lock.h"
#include "run/nearness.h"
#include "run/process.h"

/* --- its keeper's ----------------------------------------------------------- */

/* Descriptors of the two. */
struct own_notes {
	int note, servers;
};

/* How the release of a lock has ended. */
struct parting {
	enum lock_result result; /* LOCK_OK, _NOT_HELD or _ERROR */
	bool unsure;             /* lock_release_is_unsure */
	struct error error;      /* but for LOCK_OK */
};

/* Those of this process, which keeps the locks for `kept`. 0, or -1 with errno. */
int note_write(struct own_notes *own, pid_t kept, struct lock *const *locks,
	       size_t count);

/* As if they were new. */
void note_refresh(const struct own_notes *own);

/* Says that it leaves the locks to whoever releases them. */
void note_leave(const struct own_notes *own);

/* Removes the notes of this process, and says in them how it gave the locks back. partings:
 * by index, or NULL: the locks were left. */
void note_forget(const struct own_notes *own, struct lock *const *locks,
		 size_t count, const struct parting *partings);

/* --- for whoever looks for it ------------------------------------------------- */

/* A note that was found. */
struct note {
	struct process process; /* the keeper's */
	bool hidden;            /* but for its pid: it cannot be seen */
	char name[NAME_MAX + 1];
	bool gives_back;    /* at SIGUSR2 */
	int64_t round;      /* ms that each of its rounds may take */
	enum nearness near; /* its servers to ours */
	int fd;             /* owned, as much as it is about was read */
	size_t distance; /* how far above us the kept process is; SIZE_MAX: it is not */
	/* of each lock, by its rank; "": it is not reentrant, or that is not said */
	char hold[LOCKS_MOST][TOKEN_SIZE + 2];
};

/* Where they are, or NULL: there are none. */
DIR *note_directory(void);

/* The next one about these locks, all of its own; false: there is none. */
bool note_next(DIR *notes, struct lock *const *locks, size_t count,
	       struct note *note);

/* Whether its locks are reentrant: it says which hold is its own. */
bool note_has_hold(const struct note *note);

/* Makes that hold the locks' own. */
void note_adopt_holds(const struct note *note, struct lock *const *locks,
		      size_t count);

/* Whether it has been told note_leave. */
bool note_leaves(const struct note *note);

/* What a keeper that has ended has told note_forget, by index. False: nothing. */
bool note_read_partings(const struct note *note, struct lock *const *locks,
			size_t count, struct parting partings[LOCKS_MOST]);

#endif
