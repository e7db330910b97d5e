#include "run/note.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/lease.h"
#include "base/number.h"
#include "net/runtime.h"

#define PREFIX_SIZE 32 /* bytes, of the name that a note has */
#define PATH_SIZE (URL_PATH_SIZE + PREFIX_SIZE + 32)
#define SERVERS_LONGEST 65536 /* bytes, of their names */

/* What their names begin with; a keeper with the second gives back what it keeps. */
#define NOTE "keeper"
#define NOTE_OF_SERVERS "servers"

/* What is appended to it in place of partings. */
#define LEAVES "-"

/* Up to the pid. Containers may share the directory, and each has pids of its own. */
static void note_prefix(const char *which, char prefix[PREFIX_SIZE])
{
	struct stat own = {0};

	stat("/proc/self/ns/pid", &own);
	snprintf(prefix, PREFIX_SIZE, "%s-%ju-", which, (uintmax_t)own.st_ino);
}

static int note_path(const char *which, pid_t pid, char path[PATH_SIZE])
{
	char directory[URL_PATH_SIZE], prefix[PREFIX_SIZE];
	struct error error;

	if (runtime_directory(directory, &error) < 0)
		return -1;
	note_prefix(which, prefix);
	snprintf(path, PATH_SIZE, "%s/%s%ld", directory, prefix, (long)pid);
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
	buffer_append(text, "", 0);
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
	char path[PATH_SIZE], fresh[PATH_SIZE + 8];
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
int note_write(struct own_notes *own, pid_t kept, struct lock *const *locks,
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
	print_note(&text, self.started, kept, locks, count);
	own->servers = write_whole(NOTE_OF_SERVERS, &servers);
	own->note = own->servers < 0 ? -1 : write_whole(NOTE, &text);
	buffer_release(&servers);
	buffer_release(&text);
	return own->note < 0 ? -1 : 0;
}

/* "RESULT UNSURE CODE LENGTH TEXT" of each, by rank; an earlier redlock's has no UNSURE. */
static void append_partings(const struct own_notes *own,
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
	written = write(own->note, text.data, text.length);
	(void)written; /* then it is asked for at the servers */
	buffer_release(&text);
}

void note_refresh(const struct own_notes *own)
{
	futimens(own->servers, NULL);
	futimens(own->note, NULL);
}

void note_leave(const struct own_notes *own)
{
	ssize_t written = write(own->note, LEAVES, strlen(LEAVES));

	(void)written; /* then it waits as long as it does for any keeper */
}

void note_forget(const struct own_notes *own, struct lock *const *locks,
		 size_t count, const struct parting *partings)
{
	char path[PATH_SIZE];

	if (partings != NULL)
		append_partings(own, locks, count, partings);
	if (note_path(NOTE, getpid(), path) == 0)
		unlink(path);
	if (note_path(NOTE_OF_SERVERS, getpid(), path) == 0)
		unlink(path);
}

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

/* The length of its rounds, which follows the names of its servers; or else of ours. */
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

/* Whether the keeper is one that gives back, how near its servers are, and how long its
 * rounds may take. */
static void read_servers(int directory, struct lock *const *locks,
			 struct note *note)
{
	char prefix[PREFIX_SIZE], name[PREFIX_SIZE + 32];
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
	buffer_reserve(&theirs, SERVERS_LONGEST + 1);
	got = read(fd, theirs.data, SERVERS_LONGEST);
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
	char prefix[PREFIX_SIZE], name[PREFIX_SIZE + 32];

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
	if (note->hidden && !process_exists(pid)) {
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
	char prefix[PREFIX_SIZE];
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

bool note_next(DIR *notes, struct lock *const *locks, size_t count,
	       struct note *note)
{
	struct dirent *entry;

	while ((entry = readdir(notes)) != NULL)
		if (read_note(dirfd(notes), entry->d_name, locks, count, note))
			return true;
	return false;
}

DIR *note_directory(void)
{
	char path[URL_PATH_SIZE];
	struct error error;

	return runtime_directory(path, &error) < 0 ? NULL : opendir(path);
}

bool note_has_hold(const struct note *note)
{
	return note->hold[0][0] != '\0';
}

bool note_leaves(const struct note *note)
{
	char answer[sizeof(LEAVES) - 1];

	return pread(note->fd, answer, sizeof(answer),
		     lseek(note->fd, 0, SEEK_CUR)) == (ssize_t)sizeof(answer) &&
	       memcmp(answer, LEAVES, sizeof(answer)) == 0;
}

/* says_unsure: an earlier redlock says nothing of that. */
static bool read_parting(const char **at, const char *end, bool says_unsure,
			 struct parting *parting)
{
	int64_t result, unsure = 0, code, length;

	if (number_read(at, 0, LOCK_ERROR, &result) < 0 || *(*at)++ != ' ')
		return false;
	if (says_unsure &&
	    (number_read(at, 0, 1, &unsure) < 0 || *(*at)++ != ' '))
		return false;
	if (number_read(at, 0, 255, &code) < 0 || *(*at)++ != ' ' ||
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

/* Whether they are all, up to the end: so it is seen which of the two forms they have. */
static bool read_all(const char *at, const char *end, bool says_unsure,
		     struct lock *const *locks, size_t count,
		     struct parting partings[LOCKS_MOST])
{
	size_t order[LOCKS_MOST];

	sort(order, locks, count);
	for (size_t i = 0; i < count; i++)
		if (!read_parting(&at, end, says_unsure, &partings[order[i]]))
			return false;
	return at == end;
}

bool note_read_partings(const struct note *note, struct lock *const *locks,
			size_t count, struct parting partings[LOCKS_MOST])
{
	const size_t most = count * (sizeof(partings[0].error.text) + 64);
	struct buffer text = {0};
	bool all = false;
	ssize_t got;

	buffer_reserve(&text, most + 1);
	got = read(note->fd, text.data, most);
	if (got > 0) {
		text.data[got] = '\0';
		all = read_all(text.data, text.data + got, true, locks, count,
			       partings) ||
		      read_all(text.data, text.data + got, false, locks, count,
			       partings);
	}
	buffer_release(&text);
	return all;
}

void note_adopt_holds(const struct note *note, struct lock *const *locks,
		      size_t count)
{
	for (size_t i = 0; i < count; i++)
		strlcpy(locks[i]->grant.hold,
			note->hold[rank(locks[i], locks, count)],
			sizeof(locks[i]->grant.hold));
}
