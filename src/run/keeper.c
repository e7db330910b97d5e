#include "run/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/duration.h"
#include "base/lease.h"
#include "base/log.h"
#include "base/number.h"
#include "base/signals.h"
#include "base/threads.h"
#include "base/title.h"
#include "net/runtime.h"
#include "run/nearness.h"
#include "run/watchdogs.h"

#define LOOK_AGAIN 20      /* ms, whether a process has ended */
#define LOOK_WITHOUT 500   /* ms, the same if the kernel has no pidfd */
#define PARTING 5000       /* ms, for a keeper that was dismissed to end */
#define NOTE_PREFIX 32     /* bytes, of the name that a note has */
#define NOTE_LONGEST 65536 /* bytes, of the names of servers */
#define NOTE_PATH (URL_PATH_SIZE + NOTE_PREFIX + 32)

/* --- PID ---------------------------------------------------------------- */

static int refuse_pid(struct error *error, pid_t pid, const char *why)
{
	error_set(error, EXIT_USAGE, "--pid %ld: %s", (long)pid, why);
	return -1;
}

static bool is_there(pid_t pid)
{
	return kill(pid, 0) == 0 || errno == EPERM;
}

static bool is_signalled(const struct keeper *keeper)
{
	return keeper->signal != 0 || keeper->max_hold > 0;
}

static bool may_signal(const struct keeper *keeper)
{
	return kill(keeper->process.pid, 0) == 0 || errno != EPERM;
}

/* Where the note is to be. */
static int check_directory(pid_t pid, struct error *error)
{
	char directory[URL_PATH_SIZE];

	if (runtime_directory(directory, error) == 0)
		return 0;
	error_prepend(error, "--pid %ld: ", (long)pid);
	return -1;
}

int keeper_follow(struct keeper *keeper, pid_t pid, struct error *error)
{
	bool shown;

	keeper->pidfd = process_pidfd(pid);
	shown = process_proc_is_ours() && process_read(&keeper->process, pid);
	if (!shown && is_there(pid))
		return refuse_pid(error, pid, "/proc does not show it");
	if (keeper->process.pid == 0 || !keeper->process.alive)
		return refuse_pid(error, pid, "there is no such process");
	/* such as 3, if -P was meant */
	if (keeper->process.kernel)
		return refuse_pid(error, pid,
				  "it is a thread of the kernel, which does "
				  "not end");
	/* the first process of a namespace gets no SIGKILL from within, and its
	 * group, -1, would be all processes */
	if (pid == 1 && (keeper->kill || keeper->max_hold > 0))
		return refuse_pid(error, pid,
				  "the first process of a container, or of a "
				  "machine, cannot be stopped from within: use "
				  "redlock run, or --on-lost warn without "
				  "--max-hold");
	if (is_signalled(keeper) && !may_signal(keeper))
		return refuse_pid(error, pid,
				  "it is another user's, and could not be "
				  "stopped: use --on-lost warn without "
				  "--max-hold");
	keeper->group = keeper->group && keeper->process.group == pid;
	return check_directory(pid, error);
}

bool keeper_is_over(const struct keeper *keeper)
{
	struct pollfd polled = {.fd = keeper->pidfd, .events = POLLIN};
	struct process now;

	if (keeper->pidfd >= 0)
		return poll(&polled, 1, 0) > 0;
	return !process_read(&now, keeper->process.pid) || !now.alive ||
	       now.started != keeper->process.started;
}

void keeper_explain_end(const struct keeper *keeper, struct error *error)
{
	refuse_pid(error, keeper->process.pid,
		   "the process has ended, so no lock is kept for it");
}

/* Readable once a signal has come, or, if that is asked for, PID has ended. -1 with
 * errno. */
static int open_interrupt(const struct keeper *keeper, bool process)
{
	struct epoll_event event = {.events = EPOLLIN};
	int events = epoll_create1(EPOLL_CLOEXEC);

	if (events < 0)
		return -1;
	if (epoll_ctl(events, EPOLL_CTL_ADD, keeper->signals, &event) == 0 &&
	    (keeper->pidfd < 0 || !process ||
	     epoll_ctl(events, EPOLL_CTL_ADD, keeper->pidfd, &event) == 0))
		return events;
	close(events);
	return -1;
}

int keeper_interrupt(const struct keeper *keeper, struct error *error)
{
	int events = open_interrupt(keeper, true);

	if (events < 0)
		error_system(error, "cannot watch the process");
	return events;
}

static void send_one(const struct keeper *keeper, int number)
{
	if (keeper->group)
		kill(-keeper->process.pid, number);
	else if (keeper->pidfd >= 0)
		process_send(keeper->pidfd, number);
	else
		process_signal(&keeper->process, number);
}

/* A stopped process takes no SIGTERM. */
static void send_signal(const struct keeper *keeper, int number)
{
	send_one(keeper, number);
	if (!signals_is_stop(number))
		send_one(keeper, SIGCONT);
}

/* Whether what gets the signals is gone. */
static bool is_gone(const struct keeper *keeper)
{
	return keeper_is_over(keeper) &&
	       (!keeper->group || kill(-keeper->process.pid, 0) < 0 ||
		!process_group_lives(keeper->process.pid));
}

/* --- the note that it is found by --------------------------------------- */

/* What their names begin with; a keeper with the second gives back what it keeps. */
#define NOTE "keeper"
#define NOTE_OF_SERVERS "servers"

/* What is appended to it in place of partings. */
#define LEAVES "-"

/* Up to the pid. Containers may share the directory, and each has pids of its own. */
static void note_prefix(const char *which, char prefix[NOTE_PREFIX])
{
	struct stat own = {0};

	stat("/proc/self/ns/pid", &own);
	snprintf(prefix, NOTE_PREFIX, "%s-%ju-", which, (uintmax_t)own.st_ino);
}

static int note_path(const char *which, pid_t pid, char path[NOTE_PATH])
{
	char directory[URL_PATH_SIZE], prefix[NOTE_PREFIX];
	struct error error;

	if (runtime_directory(directory, &error) < 0)
		return -1;
	note_prefix(which, prefix);
	snprintf(path, NOTE_PATH, "%s/%s%ld", directory, prefix, (long)pid);
	return 0;
}

/* How many of these keys come before this one, bytewise. */
static size_t rank(const struct lock *lock, struct lock *const *locks,
		   size_t count)
{
	size_t before = 0;

	for (size_t i = 0; i < count; i++)
		before += strcmp(locks[i]->names.key.data,
				 lock->names.key.data) < 0;
	return before;
}

/* Their indices in that order. */
static void sort(size_t order[LOCKS_MOST], struct lock *const *locks,
		 size_t count)
{
	memset(order, 0, LOCKS_MOST * sizeof(order[0]));
	for (size_t i = 0; i < count; i++)
		order[rank(locks[i], locks, count)] = i;
}

/* "TOKEN\nKEY", and for each other key "\nTOKEN\nKEY", in their bytewise order. */
static void print_locks(struct buffer *text, struct lock *const *locks,
			size_t count)
{
	size_t order[LOCKS_MOST];

	sort(order, locks, count);
	for (size_t i = 0; i < count; i++)
		buffer_print(text, "%s%s\n%s", i > 0 ? "\n" : "",
			     locks[order[i]]->grant.token,
			     locks[order[i]]->names.key.data);
}

/* "START " and the locks; for reentrant ones "START PID,HOLD,HOLD " with the hold of each,
 * in the same order. Neither has a blank, and a token has none. */
static void print_note(struct buffer *text, unsigned long long started,
		       pid_t pid, struct lock *const *locks, size_t count)
{
	size_t order[LOCKS_MOST];

	sort(order, locks, count);
	buffer_print(text, "%llu ", started);
	if (locks[0]->wish.kind == KIND_REENTRANT) {
		buffer_print(text, "%ld", (long)pid);
		for (size_t i = 0; i < count; i++)
			buffer_print(text, ",%s", locks[order[i]]->grant.hold);
		buffer_print(text, " ");
	}
	print_locks(text, locks, count);
}

/* Whole at once, as it is renamed. Its descriptor; -1 with errno. */
static int write_whole(const char *which, const struct buffer *text)
{
	char path[NOTE_PATH], fresh[NOTE_PATH + 8];
	int fd;

	if (note_path(which, getpid(), path) < 0)
		return -1;
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	unlink(fresh);
	fd = open(fresh, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC,
		  0600);
	if (fd < 0)
		return -1;
	fchmod(fd, 0600); /* whatever the umask is */
	if (write(fd, text->data, text->length) == (ssize_t)text->length &&
	    rename(fresh, path) == 0)
		return fd;
	close(fd);
	unlink(fresh);
	return -1;
}

/* The note that it is found by is the last. */
static int write_notes(struct keeper *keeper, struct lock *const *locks,
		       size_t count)
{
	struct process self;
	struct buffer servers = {0}, text = {0};

	if (!process_read(&self, getpid()))
		return -1;
	nearness_print(&servers, locks[0]->ballot.quorum);
	/* an earlier redlock reads no further than the empty line */
	buffer_print(&servers, "\n%" PRId64 "\n",
		     locks[0]->ballot.quorum->timeout);
	print_note(&text, self.started, keeper->process.pid, locks, count);
	keeper->servers = write_whole(NOTE_OF_SERVERS, &servers);
	keeper->note = keeper->servers < 0 ? -1 : write_whole(NOTE, &text);
	buffer_release(&servers);
	buffer_release(&text);
	return keeper->note < 0 ? -1 : 0;
}

/* "RESULT UNSURE CODE LENGTH TEXT" of each, by rank. */
static void append_partings(const struct keeper *keeper,
			    struct lock *const *locks, size_t count,
			    const struct parting *partings)
{
	size_t order[LOCKS_MOST];
	struct buffer text = {0};
	ssize_t written;

	sort(order, locks, count);
	for (size_t i = 0; i < count; i++) {
		const struct parting *parting = &partings[order[i]];
		const char *why =
			parting->result == LOCK_OK ? "" : parting->error.text;

		buffer_print(&text, "%d %d %d %zu %s", (int)parting->result,
			     parting->unsure, parting->error.code, strlen(why),
			     why);
	}
	written = write(keeper->note, text.data, text.length);
	(void)written; /* then it is asked for at the servers */
	buffer_release(&text);
}

void keeper_forget(const struct keeper *keeper, struct lock *const *locks,
		   size_t count, const struct parting *partings)
{
	char path[NOTE_PATH];

	if (partings != NULL)
		append_partings(keeper, locks, count, partings);
	if (note_path(NOTE, getpid(), path) == 0)
		unlink(path);
	if (note_path(NOTE_OF_SERVERS, getpid(), path) == 0)
		unlink(path);
}

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

static size_t distance_of(int64_t pid)
{
	struct process process;
	pid_t above = getppid();

	for (size_t steps = 0; above > 0; steps++) {
		if (above == pid)
			return steps;
		if (!process_read(&process, above) || process.parent == above)
			break;
		above = process.parent;
	}
	return SIZE_MAX;
}

/* "PID,HOLD,HOLD " at *at, if it is there, which it moves past. */
static bool read_holds(struct note *note, const char **at, size_t count)
{
	size_t length = strcspn(*at, " \n");
	const char *text = *at;
	int64_t pid;

	note->distance = SIZE_MAX;
	if (text[length] != ' ')
		return true; /* that was the token */
	if (number_read(&text, 1, INT32_MAX, &pid) < 0)
		return false;
	for (size_t i = 0; i < count; i++) {
		size_t size;

		if (*text++ != ',')
			return false;
		size = strcspn(text, ", \n");
		if (size >= sizeof(note->hold[i]))
			return false;
		memcpy(note->hold[i], text, size);
		text += size;
	}
	note->distance = distance_of(pid);
	*at = text + 1;
	return *text == ' ';
}

/* Whether the file is of this keeper, and says this of its locks, and no more. */
static bool says(struct note *note, size_t count, const struct buffer *locks)
{
	const size_t most = locks->length + 64 + count * sizeof(note->hold[0]);
	struct buffer text = {0};
	bool result = false;
	const char *at;
	int64_t started;
	ssize_t got;

	buffer_reserve(&text, most + 1);
	got = read(note->fd, text.data, most);
	if (got > 0) {
		text.data[got] = '\0';
		at = text.data;
		result = number_read(&at, 0, INT64_MAX, &started) == 0 &&
			 (note->hidden || (unsigned long long)started ==
						  note->process.started) &&
			 *at++ == ' ' && read_holds(note, &at, count) &&
			 (size_t)(text.data + got - at) == locks->length &&
			 memcmp(at, locks->data, locks->length) == 0;
	}
	buffer_release(&text);
	return result;
}

/* What follows the names of its servers; ours if it is not said. */
static int64_t read_round(const char *text, const struct quorum *quorum)
{
	const char *at = strstr(text, "\n\n");
	int64_t round;

	if (at == NULL)
		return quorum->timeout;
	at += 2;
	return number_read(&at, 1, LEASE_LONGEST, &round) < 0 ? quorum->timeout
							      : round;
}

/* Whether the keeper is one that gives back, and of its servers, how near they are, and how
 * long they may take. */
static void read_servers(int directory, struct lock *const *locks,
			 struct note *note)
{
	char prefix[NOTE_PREFIX], name[NOTE_PREFIX + 32];
	struct buffer theirs = {0};
	ssize_t got;
	int fd;

	note->near = NEAR_UNKNOWN;
	note->round = locks[0]->ballot.quorum->timeout;
	note_prefix(NOTE_OF_SERVERS, prefix);
	snprintf(name, sizeof(name), "%s%ld", prefix, (long)note->process.pid);
	fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	note->gives_back = fd >= 0;
	if (fd < 0)
		return;
	buffer_reserve(&theirs, NOTE_LONGEST + 1);
	got = read(fd, theirs.data, NOTE_LONGEST);
	close(fd);
	if (got > 0) {
		theirs.data[got] = '\0';
		note->round = read_round(theirs.data, locks[0]->ballot.quorum);
		note->near =
			nearness_read(theirs.data, locks[0]->ballot.quorum);
	}
	buffer_release(&theirs);
}

static void remove_notes(int directory, pid_t pid)
{
	static const char *const all[] = {NOTE, NOTE_OF_SERVERS};
	char prefix[NOTE_PREFIX], name[NOTE_PREFIX + 32];

	for (size_t i = 0; i < 2; i++) {
		note_prefix(all[i], prefix);
		snprintf(name, sizeof(name), "%s%ld", prefix, (long)pid);
		unlinkat(directory, name, 0);
	}
}

/* Whether the process of a note may be a keeper. Of one that has ended the notes are
 * removed; but one that /proc does not show, or not to us, may live. */
static bool read_keeper(int directory, pid_t pid, struct note *note)
{
	note->hidden =
		!process_proc_is_ours() || !process_read(&note->process, pid);
	if (note->hidden && !is_there(pid)) {
		remove_notes(directory, pid);
		return false;
	}
	if (note->hidden)
		note->process = (struct process){.pid = pid, .alive = true};
	return note->process.alive;
}

/* The note NAME. False as well if it is not about these locks. */
static bool read_note(int directory, const char *name,
		      struct lock *const *locks, size_t count,
		      struct note *note)
{
	struct buffer wanted = {0};
	char prefix[NOTE_PREFIX];
	bool result;
	int64_t pid;

	*note = (struct note){0};
	note_prefix(NOTE, prefix);
	if (strncmp(name, prefix, strlen(prefix)) != 0 ||
	    number_parse(name + strlen(prefix), 1, INT32_MAX, &pid) < 0 ||
	    !read_keeper(directory, (pid_t)pid, note))
		return false;
	note->fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (note->fd < 0)
		return false;
	strlcpy(note->name, name, sizeof(note->name));
	print_locks(&wanted, locks, count);
	result = says(note, count, &wanted);
	buffer_release(&wanted);
	if (result)
		read_servers(directory, locks, note);
	else
		close(note->fd);
	return result;
}

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
	return note->hold[0][0] != '\0' && note->near == NEAR_NONE;
}

/* The next note about these locks. */
static bool next_note(DIR *notes, struct lock *const *locks, size_t count,
		      struct note *note)
{
	struct dirent *entry;

	while ((entry = readdir(notes)) != NULL)
		if (read_note(dirfd(notes), entry->d_name, locks, count, note))
			return true;
	return false;
}

/* The one to end (keeper.h). False: there is none. */
static bool find_note(DIR *notes, struct lock *const *locks, size_t count,
		      struct note *best)
{
	bool found = false;
	struct note note;

	rewinddir(notes);
	while (next_note(notes, locks, count, &note)) {
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

static DIR *open_notes(void)
{
	char path[URL_PATH_SIZE];
	struct error error;

	return runtime_directory(path, &error) < 0 ? NULL : opendir(path);
}

bool keeper_is_hidden(struct lock *const *locks, size_t count,
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
	while (!hidden && next_note(notes, locks, count, &note)) {
		hidden = note.hidden;
		close(note.fd);
	}
	if (hidden)
		error_set(error, EXIT_SYSTEM, "/proc does not show pid %ld",
			  (long)note.process.pid);
	closedir(notes);
	return hidden;
}

bool keeper_is_elsewhere(struct lock *const *locks, size_t count,
			 struct error *error)
{
	DIR *notes = open_notes();
	bool elsewhere = false, here = false;
	struct note note;

	while (notes != NULL && next_note(notes, locks, count, &note)) {
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

bool keeper_has_hold(struct lock *const *locks, size_t count)
{
	DIR *notes = open_notes();
	struct note note = {0};
	bool found, held;

	if (notes == NULL)
		return false;
	found = find_note(notes, locks, count, &note);
	held = found && note.hold[0][0] != '\0';
	if (found)
		close(note.fd);
	closedir(notes);
	return held;
}

/* Whether it is stopping PID, and leaves the locks to us. */
static bool leaves(const struct note *note)
{
	char answer[sizeof(LEAVES) - 1];

	return pread(note->fd, answer, sizeof(answer),
		     lseek(note->fd, 0, SEEK_CUR)) == (ssize_t)sizeof(answer) &&
	       memcmp(answer, LEAVES, sizeof(answer)) == 0;
}

static void tell_wait(const struct lock *lock, pid_t pid, struct deadline until)
{
	char text[DURATION_TEXT];

	log_notice("%s: waiting until its keeper (pid %ld) has given it back, "
		   "for %s at most",
		   lock->names.key.data, (long)pid,
		   duration_format(text, deadline_left(until)));
}

/* Ends it, which takes it a few rounds if it gives back; if these are longer than ours, that
 * is said. False if it has neither ended nor answered in time. */
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
	       now.started == process->started && !leaves(note)) {
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

static bool read_parting(const char **at, const char *end,
			 struct parting *parting)
{
	int64_t result, unsure, code, length;

	if (number_read(at, 0, LOCK_ERROR, &result) < 0 || *(*at)++ != ' ' ||
	    number_read(at, 0, 1, &unsure) < 0 || *(*at)++ != ' ' ||
	    number_read(at, 0, 255, &code) < 0 || *(*at)++ != ' ' ||
	    number_read(at, 0, (int64_t)sizeof(parting->error.text) - 1,
			&length) < 0 ||
	    *(*at)++ != ' ' || end - *at < length)
		return false;
	parting->result = (enum lock_result)result;
	parting->unsure = unsure != 0;
	error_set(&parting->error, (int)code, "%.*s", (int)length, *at);
	*at += length;
	return true;
}

/* What a keeper that has ended says in its note of how it gave the locks back. */
static bool read_partings(const struct note *note, struct lock *const *locks,
			  size_t count, struct parting partings[LOCKS_MOST])
{
	const size_t most = count * (sizeof(partings[0].error.text) + 64);
	size_t order[LOCKS_MOST];
	struct buffer text = {0};
	bool all = false;
	const char *at;
	ssize_t got;

	sort(order, locks, count);
	buffer_reserve(&text, most + 1);
	got = read(note->fd, text.data, most);
	if (got > 0) {
		text.data[got] = '\0';
		at = text.data;
		all = true;
		for (size_t i = 0; i < count && all; i++)
			all = read_parting(&at, text.data + got,
					   &partings[order[i]]);
	}
	buffer_release(&text);
	return all;
}

/* The hold that the keeper kept is ours now. */
static void adopt_holds(const struct note *note, struct lock *const *locks,
			size_t count)
{
	for (size_t i = 0; i < count; i++)
		strlcpy(locks[i]->grant.hold,
			note->hold[rank(locks[i], locks, count)],
			sizeof(locks[i]->grant.hold));
}

enum dismissal keeper_dismiss(struct lock *const *locks, size_t count,
			      struct parting partings[LOCKS_MOST])
{
	enum dismissal dismissal = DISMISSED_NONE;
	DIR *notes = open_notes();
	struct note note = {0};
	bool found, held;

	if (notes == NULL)
		return DISMISSED_NONE;
	for (;;) {
		found = find_note(notes, locks, count, &note);
		held = found && note.hold[0][0] != '\0';
		if (!held || unlinkat(dirfd(notes), note.name, 0) == 0)
			break;
		close(note.fd);
	}
	closedir(notes);
	if (!found)
		return DISMISSED_NONE;
	if (held)
		adopt_holds(&note, locks, count);
	note.gives_back &= partings != NULL;
	if (dismiss(&note, locks[0])) {
		dismissal = DISMISSED_LEFT;
		if (note.gives_back &&
		    read_partings(&note, locks, count, partings))
			dismissal = note.near == NEAR_ALL ? DISMISSED_DONE
							  : DISMISSED_ELSEWHERE;
	}
	close(note.fd);
	return dismissal;
}

/* --- its own process ---------------------------------------------------- */

/* All that was inherited: redlock's own are close-on-exec from birth. */
static void close_inherited(void)
{
	int null = descriptors_nowhere(O_RDWR);
	struct dirent *entry;
	int64_t fd;
	DIR *all;

	for (int i = STDIN_FILENO; null >= 0 && i <= STDERR_FILENO; i++)
		dup2(null, i);
	all = opendir("/proc/self/fd");
	while (all != NULL && (entry = readdir(all)) != NULL)
		if (number_parse(entry->d_name, STDERR_FILENO + 1, INT32_MAX,
				 &fd) == 0 &&
		    !(fcntl((int)fd, F_GETFD) & FD_CLOEXEC))
			close((int)fd);
	if (all != NULL)
		closedir(all);
	if (null > STDERR_FILENO)
		close(null);
}

static void detach(const struct keeper *keeper, struct lock *const *locks,
		   size_t count)
{
	struct buffer keys = {0};

	setsid();
	/* what has come so far was for the group that our parent is in */
	signals_take(UINT64_MAX);
	/* a script may ignore them, but they are how a keeper is told to end */
	signals_heed(SIGTERM);
	signals_heed(SIGUSR1);
	signals_heed(SIGUSR2);
	if (chdir("/") < 0)
		return; /* then it stays */
	close_inherited();
	title_name("redlock-keeper");
	for (size_t i = 0; i < count; i++)
		buffer_print(&keys, "%s%s", i > 0 ? ", " : "",
			     locks[i]->names.key.data);
	title_set("%s for %ld", keys.data, (long)keeper->process.pid);
	buffer_release(&keys);
}

/* The child says over the pipe that it is there, or errno. */
static void report(int fd, int cause)
{
	ssize_t written = write(fd, &cause, sizeof(cause));

	(void)written; /* the parent sees end-of-file */
	close(fd);
}

static int await(int fd)
{
	int cause;
	ssize_t got;

	do
		got = read(fd, &cause, sizeof(cause));
	while (got < 0 && errno == EINTR);
	return got == (ssize_t)sizeof(cause) ? cause : ECHILD;
}

/* The connections are the child's from now on. */
static void leave_connections(struct lock *const *locks, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct quorum *quorum = locks[i]->ballot.quorum;

		for (size_t k = 0; k < quorum->count; k++)
			server_before_fork(&quorum->servers[k]);
	}
}

pid_t keeper_fork(struct keeper *keeper, struct lock *const *locks,
		  size_t count, struct error *error)
{
	int ends[2], failed;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) < 0) {
		error_system(error, "cannot make the keeper");
		return -1;
	}
	leave_connections(locks, count);
	child = fork();
	if (child == 0) {
		bool noted;

		close(ends[0]);
		deadline_after_fork();
		detach(keeper, locks, count);
		noted = write_notes(keeper, locks, count) == 0;
		report(ends[1], noted ? 0 : errno != 0 ? errno : EIO);
		if (!noted)
			_exit(EXIT_SYSTEM);
		return 0;
	}
	failed = child < 0 ? errno : 0;
	close(ends[1]);
	if (child > 0)
		failed = await(ends[0]);
	close(ends[0]);
	if (failed == 0)
		return child;
	errno = failed;
	error_system(error, "cannot make the keeper");
	return -1;
}

void keeper_recall(pid_t child)
{
	kill(child, SIGTERM);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

/* --- keeping ------------------------------------------------------------- */

struct keeping {
	struct keeper *keeper;
	struct lock *const *locks;
	size_t count;
	struct watchdogs watchdogs;
	int timer;
	struct deadline stop;    /* when to send the next signal of max_hold */
	struct deadline refresh; /* the notes */
	bool overdue;
	struct deadline part[LOCKS_MOST]; /* with those that are lost */
	size_t parted;                    /* how many */
};

/* The ends of the other locks that are not lost. */
static int add_watchdogs(const struct keeping *keeping, int events)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct pollfd polled[LOCKS_MOST];

	watchdogs_poll(&keeping->watchdogs, polled);
	for (size_t i = 1; i < keeping->count; i++)
		if (!keeping->keeper->is_lost[i] &&
		    epoll_ctl(events, EPOLL_CTL_ADD, polled[i].fd, &event) < 0)
			return -1;
	return 0;
}

/* Readable once PID has ended, a signal has come, another lock than the first is lost, or
 * `at` has passed. -1 with errno. */
static int open_events(const struct keeping *keeping, struct deadline at)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct itimerspec end = {0};
	const struct keeper *keeper = keeping->keeper;
	/* after --max-hold its group, at which next_look looks, may outlive PID, which would
	 * stay readable */
	bool survived =
		keeping->overdue && keeper->group && keeper_is_over(keeper);
	int timer = keeping->timer;
	int events = open_interrupt(keeper, !survived);

	if (at.at != INT64_MAX) {
		end.it_value.tv_sec = at.at / 1000;
		end.it_value.tv_nsec = (long)(at.at % 1000 * 1000000);
	}
	if (events < 0)
		return -1;
	/* a time that has passed makes it readable at once */
	if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &end, NULL) == 0 &&
	    epoll_ctl(events, EPOLL_CTL_ADD, timer, &event) == 0 &&
	    add_watchdogs(keeping, events) == 0)
		return events;
	close(events);
	return -1;
}

static struct deadline next_look(const struct keeping *keeping)
{
	struct deadline next = deadline_never();

	if (keeping->overdue && keeping->keeper->group)
		next = deadline_in(LOOK_AGAIN);
	else if (keeping->keeper->pidfd < 0)
		next = deadline_in(LOOK_WITHOUT);
	for (size_t i = 0; i < keeping->count; i++)
		if (keeping->part[i].at < next.at)
			next = keeping->part[i];
	next = deadline_earlier(next, keeping->refresh);
	return deadline_earlier(next, keeping->stop);
}

static void refresh_notes(struct keeping *keeping)
{
	if (!deadline_passed(keeping->refresh))
		return;
	futimens(keeping->keeper->servers, NULL);
	futimens(keeping->keeper->note, NULL);
	keeping->refresh = deadline_in(keeping->locks[0]->wish.ttl);
}

/* The lock is held and renewed until all of it is gone. */
static void heed_max_hold(struct keeping *keeping)
{
	if (!deadline_passed(keeping->stop))
		return;
	if (!keeping->overdue)
		keeping->keeper->tell(keeping->keeper, KEPT_OVERDUE, NULL);
	send_signal(keeping->keeper, keeping->overdue ? SIGKILL : SIGTERM);
	keeping->stop = keeping->overdue
				? deadline_never()
				: deadline_in(keeping->keeper->kill_after);
	keeping->overdue = true;
}

static void send_loss(struct keeper *keeper)
{
	if (keeper->signal != 0 && !keeper->told)
		send_signal(keeper, keeper->signal);
	keeper->told = true;
}

/* A release that comes now is not kept waiting (keeper.h). */
static void heed_release(struct keeper *keeper)
{
	ssize_t written;
	int number;

	if (!signals_have_come(keeper->signals))
		return;
	number = signals_next();
	if (keeper->left || (number != SIGUSR1 && number != SIGUSR2))
		return;
	written = write(keeper->note, LEAVES, strlen(LEAVES));
	(void)written; /* then it waits as long as it does for any keeper */
	keeper->left = true;
}

/* False: something was left then. */
static bool await_end(struct keeper *keeper, struct deadline until)
{
	while (!is_gone(keeper)) {
		if (deadline_passed(until))
			return false;
		heed_release(keeper);
		deadline_poll(NULL, 0,
			      deadline_earlier(until, deadline_in(LOOK_AGAIN)));
	}
	return true;
}

/* Before validity of the first lock ends. */
static void stop_in_time(const struct keeping *keeping)
{
	struct keeper *keeper = keeping->keeper;
	struct lease_times times =
		watchdog_plan(keeping->locks[0], keeper->kill_after);

	for (size_t i = 1; i < keeping->count; i++)
		times = lease_times_earlier(
			times,
			watchdog_plan(keeping->locks[i], keeper->kill_after));
	send_loss(keeper);
	if (!keeper->kill)
		return;
	if (await_end(keeper,
		      deadline_earlier(times.kill,
				       deadline_in(keeper->kill_after))))
		return;
	send_signal(keeper, SIGKILL);
	await_end(keeper, times.end);
}

/* False: PID is to be stopped. Or else it has the others. What was broken is still held,
 * until PID ends. */
static bool lose(struct keeping *keeping, const struct error *why)
{
	struct keeper *keeper = keeping->keeper;
	const struct lock *lost = keeper->lost;
	size_t index = watchdogs_part(&keeping->watchdogs, lost);

	keeper->is_lost[index] = true;
	if (keeper->kill)
		return false;
	keeper->tell(keeper, KEPT_LOST, why);
	send_loss(keeper);
	keeping->part[index] =
		lost->broken && keeper->signal != 0
			? watchdog_plan(lost, keeper->kill_after).end
			: deadline_at(0);
	return true;
}

static void part(struct keeping *keeping)
{
	struct keeper *keeper = keeping->keeper;

	for (size_t i = 0; i < keeping->count; i++) {
		if (!deadline_passed(keeping->part[i]))
			continue;
		keeper->part(keeper, i);
		keeper->is_parted[i] = true;
		keeping->part[i] = deadline_never();
		keeping->parted++;
	}
}

/* Renews the first lock meanwhile. */
static void await_event(struct keeping *keeping, int events)
{
	struct pollfd polled = {.fd = events, .events = POLLIN};

	if (keeping->keeper->is_lost[0])
		poll(&polled, 1, -1);
	else
		watchdog_watch(&keeping->watchdogs.first, events);
}

/* False: it is over, and *kept says how. */
static bool keep_on(struct keeping *keeping, enum keeper_result *kept,
		    struct error *why)
{
	struct keeper *keeper = keeping->keeper;
	int events = open_events(keeping, next_look(keeping));
	int number = 0;

	if (events < 0) {
		error_system(why, "cannot watch the process");
		keeper->lost = NULL;
		*kept = KEPT_LOST;
		return false;
	}
	await_event(keeping, events);
	close(events);
	*kept = keeping->overdue ? KEPT_OVERDUE : KEPT_TO_THE_END;
	if (keeping->overdue ? is_gone(keeper) : keeper_is_over(keeper))
		return false;
	if (signals_have_come(keeper->signals))
		number = signals_next();
	/* whoever gives it back may have done so during a long round */
	*kept = number == SIGUSR1 ? KEPT_GIVEN_BACK : KEPT_CALLED_BACK;
	if (number == SIGUSR1 || number == SIGUSR2)
		return false;
	*kept = KEPT_LOST;
	keeper->lost = watchdogs_lost(&keeping->watchdogs, why);
	if (keeper->lost != NULL && !lose(keeping, why))
		return false;
	part(keeping);
	if (keeping->parted == keeping->count)
		return false;
	*kept = KEPT_UNTIL_TOLD;
	if (number != 0)
		return false;
	heed_max_hold(keeping);
	refresh_notes(keeping);
	return true;
}

/* Has the record say who keeps the lock, by a renewal that says so. Whether it succeeds
 * is found out by the next one. */
static void introduce(void *context, size_t i)
{
	const struct keeping *keeping = context;
	struct lock *lock = keeping->locks[i];
	const struct wait wait = {deadline_in(lock->ballot.quorum->timeout),
				  open_interrupt(keeping->keeper, true)};
	struct error ignored;

	lock->wish.keeper = getpid();
	lock_extend(lock, wait, &ignored);
	if (wait.interrupt >= 0)
		close(wait.interrupt);
}

/* The first lock is renewed by this thread. False with *why: no other can be. */
static bool start_watchdogs(struct keeping *keeping, struct error *why)
{
	int cause;

	watchdogs_init(&keeping->watchdogs, keeping->locks, keeping->count,
		       NULL, keeping->keeper->kill_after);
	cause = watchdogs_start(&keeping->watchdogs, 1);
	if (cause == 0)
		return true;
	errno = cause;
	error_system(why, "no thread to renew the locks");
	return false;
}

enum keeper_result keeper_keep(struct keeper *keeper, struct lock *const *locks,
			       size_t count, struct error *why)
{
	struct keeping keeping = {
		.keeper = keeper,
		.locks = locks,
		.count = count,
		.timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC),
		.stop = deadline_never(),
		.refresh = deadline_in(locks[0]->wish.ttl),
	};
	enum keeper_result kept = KEPT_LOST;
	int64_t acquired = 0;

	for (size_t i = 0; i < count; i++) {
		keeping.part[i] = deadline_never();
		if (locks[i]->grant.acquired > acquired)
			acquired = locks[i]->grant.acquired;
	}
	if (keeper->max_hold > 0)
		keeping.stop = deadline_at(acquired + keeper->max_hold);
	threads_each(count, introduce, &keeping);
	if (start_watchdogs(&keeping, why))
		while (keep_on(&keeping, &kept, why))
			;
	watchdogs_stop(&keeping.watchdogs);
	if (kept == KEPT_LOST && keeping.parted < count) {
		keeper->tell(keeper, kept, why);
		stop_in_time(&keeping);
	}
	watchdogs_release(&keeping.watchdogs);
	return kept;
}
