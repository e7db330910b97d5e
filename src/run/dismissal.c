#include "run/dismissal.h"

#include <signal.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/log.h"
#include "net/runtime.h"
#include "run/note.h"

#define PARTING 5000 /* ms, for a keeper that was dismissed to end */

/* Of two that began in the same tick the pid tells, mostly. */
static bool is_better(const struct note *note, const struct note *best)
{
	if (note->near != best->near)
		return note->near > best->near;
	if (note->distance != best->distance)
		return note->distance < best->distance;
	if (note->process.started != best->process.started)
		return note->process.started > best->process.started;
	return note->process.pid > best->process.pid;
}

/* Of an owner's holds those at other servers are none that a release here is for. */
static bool is_elsewhere(const struct note *note)
{
	return note_has_hold(note) && note->near == NEAR_NONE;
}

/* The one to end (dismissal.h). False: there is none. */
static bool find_note(DIR *notes, struct lock *const *locks, size_t count,
		      struct note *best)
{
	bool found = false;
	struct note note;

	rewinddir(notes);
	while (note_next(notes, locks, count, &note)) {
		if (note.hidden || is_elsewhere(&note) ||
		    (found && !is_better(&note, best))) {
			close(note.fd);
			continue;
		}
		if (found)
			close(best->fd);
		*best = note;
		found = true;
	}
	return found;
}

bool dismissal_is_hidden(struct lock *const *locks, size_t count,
			 struct error *error)
{
	char path[URL_PATH_SIZE];
	bool hidden = false;
	struct note note;
	DIR *notes;

	/* no note is where there is no directory, and none can be made */
	if (runtime_directory(path, error) < 0)
		return error->code == EXIT_CONFIG;
	notes = opendir(path);
	if (notes == NULL) {
		error_system(error, "%s", path);
		return true;
	}
	while (!hidden && note_next(notes, locks, count, &note)) {
		hidden = note.hidden;
		close(note.fd);
	}
	if (hidden)
		error_set(error, EXIT_SYSTEM, "/proc does not show pid %ld",
			  (long)note.process.pid);
	closedir(notes);
	return hidden;
}

bool dismissal_is_elsewhere(struct lock *const *locks, size_t count,
			    struct error *error)
{
	DIR *notes = note_directory();
	bool elsewhere = false, here = false;
	struct note note;

	while (notes != NULL && note_next(notes, locks, count, &note)) {
		if (note.hidden || !is_elsewhere(&note)) {
			here |= !note.hidden;
		} else if (!elsewhere) {
			elsewhere = true;
			error_set(error, EXIT_NOT_HELD,
				  "its keeper (pid %ld) has servers of other "
				  "names: name these with -S",
				  (long)note.process.pid);
		}
		close(note.fd);
	}
	if (notes != NULL)
		closedir(notes);
	return elsewhere && !here;
}

bool dismissal_has_hold(struct lock *const *locks, size_t count)
{
	DIR *notes = note_directory();
	struct note note = {0};
	bool found, held;

	if (notes == NULL)
		return false;
	found = find_note(notes, locks, count, &note);
	held = found && note_has_hold(&note);
	if (found)
		close(note.fd);
	closedir(notes);
	return held;
}

static void tell_wait(const struct lock *lock, pid_t pid, struct deadline until)
{
	char text[DURATION_TEXT];

	log_notice("%s: waiting until its keeper (pid %ld) has given it back, "
		   "for %s at most",
		   lock->names.key.data, (long)pid,
		   duration_format(text, deadline_left(until)));
}

/* Ends it, which takes it a few rounds if it gives back. If it takes longer than ours
 * would, the user is told. False if it has neither ended nor answered in time. */
static bool dismiss(const struct note *note, const struct lock *lock)
{
	const int64_t ours = lock->ballot.quorum->timeout;
	const struct process *process = &note->process;
	const struct deadline tell = deadline_in(PARTING + 3 * ours);
	struct deadline until =
		deadline_in(PARTING + (note->gives_back ? 3 * note->round : 0));
	bool told = until.at <= tell.at;
	struct process now;

	process_signal(process, note->gives_back ? SIGUSR2 : SIGUSR1);
	while (process_read(&now, process->pid) && now.alive &&
	       now.started == process->started && !note_leaves(note)) {
		if (deadline_passed(until))
			return false;
		if (!told && deadline_passed(tell)) {
			tell_wait(lock, process->pid, until);
			told = true;
		}
		deadline_poll(NULL, 0, deadline_in(1));
	}
	return true;
}

enum dismissal dismissal_make(struct lock *const *locks, size_t count,
			      struct parting partings[LOCKS_MOST])
{
	enum dismissal dismissal = DISMISSED_NONE;
	DIR *notes = note_directory();
	struct note note = {0};
	bool found, held;

	if (notes == NULL)
		return DISMISSED_NONE;
	for (;;) {
		found = find_note(notes, locks, count, &note);
		held = found && note_has_hold(&note);
		if (!held || unlinkat(dirfd(notes), note.name, 0) == 0)
			break;
		close(note.fd);
	}
	closedir(notes);
	if (!found)
		return DISMISSED_NONE;
	if (held)
		note_adopt_holds(&note, locks, count);
	note.gives_back &= partings != NULL;
	if (dismiss(&note, locks[0])) {
		dismissal = DISMISSED_LEFT;
		if (note.gives_back &&
		    note_read_partings(&note, locks, count, partings))
			dismissal = note.near == NEAR_ALL ? DISMISSED_DONE
							  : DISMISSED_ELSEWHERE;
	}
	close(note.fd);
	return dismissal;
}
