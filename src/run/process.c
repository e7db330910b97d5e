#include "run/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/number.h"

#define TEXT 512
#define STATUS 4096
#define COMMAND_LINE 4096
#define KERNEL_THREAD 0x200000 /* PF_KTHREAD of the kernel */
#define ENVIRONMENT_LONGEST ((size_t)4 << 20)

static int open_of(pid_t pid, const char *file)
{
	char path[80];

	snprintf(path, sizeof(path), "/proc/%ld/%s", (long)pid, file);
	return open(path, O_RDONLY | O_CLOEXEC);
}

bool process_proc_is_ours(void)
{
	char name[16];
	ssize_t length = readlink("/proc/self", name, sizeof(name) - 1);
	int64_t pid;

	if (length <= 0)
		return false;
	name[length] = '\0';
	return number_parse(name, 1, INT32_MAX, &pid) == 0 && pid == getpid();
}

/* The beginning of a file. Its length, 0 if there is none. */
static size_t read_text(pid_t pid, const char *file, char *text, size_t size)
{
	int fd = open_of(pid, file);
	ssize_t length;

	if (fd < 0)
		return 0;
	length = read(fd, text, size - 1);
	close(fd);
	if (length < 0)
		length = 0;
	text[length] = '\0';
	return (size_t)length;
}

bool process_exists(pid_t pid)
{
	return kill(pid, 0) == 0 || errno == EPERM;
}

/* "... NAME:	NUMBER ...", where name has the line's end before it; otherwise: if there is none. */
static uint64_t status_number(pid_t pid, const char *name, int base,
			      uint64_t otherwise)
{
	char text[STATUS];
	const char *at = NULL;

	if (read_text(pid, "status", text, sizeof(text)) > 0)
		at = strstr(text, name);
	return at != NULL ? strtoull(at + strlen(name), NULL, base) : otherwise;
}

bool process_is_thread(pid_t pid)
{
	const uint64_t own = (uint64_t)pid;

	return status_number(pid, "\nTgid:", 10, own) != own;
}

bool process_command_line(pid_t pid, struct buffer *text)
{
	char line[COMMAND_LINE];
	size_t length = read_text(pid, "cmdline", line, sizeof(line));

	while (length > 0 && line[length - 1] == '\0')
		length--;
	for (size_t i = 0; i < length; i++)
		if (line[i] == '\0')
			line[i] = ' ';
	buffer_append(text, line, length);
	return length > 0;
}

/* A field of stat from the 3rd on, or 0: "PID (NAME) STATE ..." */
static unsigned long stat_field(const char *text, int number)
{
	const char *at = strrchr(text, ')');

	for (int field = 2; at != NULL && field < number; field++)
		at = strchr(at + 1, ' ');
	return at != NULL ? strtoul(at, NULL, 10) : 0;
}

/* For certain: its environment (the fields 50 and 51) begins where it ends. That is so for a
 * moment as well while it is being made; then its code (26) is not known yet. */
static bool has_no_environment(pid_t pid)
{
	char text[TEXT];

	return read_text(pid, "stat", text, sizeof(text)) > 0 &&
	       stat_field(text, 26) != 0 &&
	       stat_field(text, 50) == stat_field(text, 51);
}

bool process_carries(pid_t pid, const char *badge, bool *unsure)
{
	char chunk[8192], *at;
	size_t length = strlen(badge), kept = 0, total = 0;
	bool found = false;
	ssize_t got;
	int fd = open_of(pid, "environ");

	*unsure = false;
	if (fd < 0)
		return false;
	while (!found && total < ENVIRONMENT_LONGEST &&
	       (got = read(fd, chunk + kept, sizeof(chunk) - kept)) > 0) {
		size_t size = kept + (size_t)got;

		for (at = chunk; !found && (at = memmem(at, size - (at - chunk),
							badge, length));
		     at++)
			found = at + length < chunk + size &&
				strchr(" ", at[length]) != NULL;
		kept = size < length ? size : length;
		memmove(chunk, chunk + size - kept, kept);
		total += (size_t)got;
	}
	close(fd);
	*unsure = total == 0 && !has_no_environment(pid);
	return found;
}

static bool has_ended(char state)
{
	return state == 'Z' || state == 'X';
}

/* "PID (NAME) STATE PPID PGRP SESSION TTY TPGID FLAGS ... THREADS 0 STARTTIME ..." (the 20th to
 * 22nd); a NAME may hold anything, also ") ". A zombie with threads is a process
 * that runs on after its first thread has ended. */
bool process_read(struct process *process, pid_t pid)
{
	char text[TEXT];
	unsigned long long started;
	long parent, group, session, threads;
	unsigned flags;
	const char *end;
	char state;
	int found;

	if (read_text(pid, "stat", text, sizeof(text)) == 0)
		return false;
	end = strrchr(text, ')');
	if (end == NULL)
		return false;
	/* NOLINTNEXTLINE(cert-err34-c): the kernel wrote these numbers */
	found = sscanf(end + 1,
		       " %c %ld %ld %ld %*d %*d %u %*u %*u %*u %*u %*u %*u "
		       "%*d %*d %*d %*d %ld %*d %llu",
		       &state, &parent, &group, &session, &flags, &threads,
		       &started);
	if (found != 7)
		return false;
	*process = (struct process){
		.pid = pid,
		.parent = (pid_t)parent,
		.group = (pid_t)group,
		.session = (pid_t)session,
		.started = started,
		.state = state,
		.kernel = (flags & KERNEL_THREAD) != 0,
		.alive = !has_ended(state) || threads > 1,
	};
	return true;
}

int process_send(int pidfd, int number)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0);
}

int process_pidfd(pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (pidfd >= 0 && process_send(pidfd, 0) < 0 && errno != ESRCH &&
	    kill(pid, 0) == 0) {
		close(pidfd); /* a filter lets it be opened, and not used */
		errno = ENOSYS;
		return -1;
	}
	return pidfd;
}

int process_descriptor(int pidfd, int number)
{
	return (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
}

bool process_signal(const struct process *process, int number)
{
	int pidfd = process_pidfd(process->pid);
	struct process now;
	bool same = process_read(&now, process->pid) && now.alive &&
		    now.started == process->started;

	if (same && pidfd < 0)
		kill(process->pid, number);
	else if (same)
		process_send(pidfd, number);
	if (pidfd >= 0)
		close(pidfd);
	return same;
}

static bool group_exists(pid_t group)
{
	return kill(-group, 0) == 0 || errno != ESRCH;
}

/* except: a process that does not count, or 0. */
static bool group_lives(pid_t group, pid_t except)
{
	bool lives = false, shown = false;
	struct process process;
	struct dirent *entry;
	int64_t pid;
	DIR *all;

	if (!group_exists(group))
		return false;
	all = process_proc_is_ours() ? opendir("/proc") : NULL;
	while (all != NULL && !lives && (entry = readdir(all)) != NULL) {
		if (number_parse(entry->d_name, 1, INT32_MAX, &pid) < 0 ||
		    !process_read(&process, (pid_t)pid) ||
		    process.group != group)
			continue;
		shown = true;
		lives = process.alive && process.pid != except;
	}
	if (all != NULL)
		closedir(all);
	return lives || (!shown && group_exists(group));
}

bool process_group_lives(pid_t group)
{
	return group_lives(group, 0);
}

bool process_has_peers(void)
{
	return group_lives(getpgrp(), getpid());
}

void process_name(pid_t pid, struct buffer *text)
{
	struct stat status = {0};
	struct passwd *user = NULL;
	char name[64] = "";
	int fd = open_of(pid, "comm");
	ssize_t got = fd < 0 ? 0 : read(fd, name, sizeof(name) - 1);

	if (text->length > 0)
		buffer_print(text, ", ");
	buffer_print(text, "pid %ld", (long)pid);
	if (fd < 0)
		return;
	if (fstat(fd, &status) == 0)
		user = getpwuid(status.st_uid);
	close(fd);
	while (got > 0 && name[got - 1] == '\n')
		got--;
	if (user != NULL)
		buffer_print(text, " of %s", user->pw_name);
	else
		buffer_print(text, " of user %ld", (long)status.st_uid);
	buffer_print(text, " '%.*s'", (int)got, name);
}

static DIR *threads_of(pid_t pid)
{
	char path[80];

	snprintf(path, sizeof(path), "/proc/%ld/task", (long)pid);
	return opendir(path);
}

/* Of the first of its threads that has not ended; 'Z': now all have. */
static char state_of_threads(pid_t pid)
{
	DIR *threads = threads_of(pid);
	struct dirent *entry;
	struct process thread;
	char state = 'Z';
	int64_t id;

	while (threads != NULL && has_ended(state) &&
	       (entry = readdir(threads)) != NULL)
		if (number_parse(entry->d_name, 1, INT32_MAX, &id) == 0 &&
		    process_read(&thread, (pid_t)id))
			state = thread.state;
	if (threads != NULL)
		closedir(threads);
	return state;
}

char process_state(pid_t pid)
{
	struct process process;

	if (!process_read(&process, pid))
		return '\0';
	if (has_ended(process.state) && process.alive)
		return state_of_threads(pid);
	return process.state;
}

/* The signals of the process rather than of a thread. */
bool process_has_pending(pid_t pid, int number)
{
	return (status_number(pid, "\nShdPnd:", 16, 0) >> (number - 1) & 1) !=
	       0;
}

/* "NUMBER ARGUMENT ARGUMENT ..." of the system call that the thread is in. */
static bool thread_sends(pid_t pid, const char *file, long number)
{
	char text[TEXT], *end;
	const char *at = text;
	int64_t call;
	long argument[3];

	if (read_text(pid, file, text, sizeof(text)) == 0 ||
	    number_read(&at, 0, INT32_MAX, &call) < 0)
		return false;
	for (int i = 0; i < 3; i++, at = end)
		argument[i] = (long)strtoul(at, &end, 16);
	return ((call == SYS_kill || call == SYS_tkill) &&
		argument[1] == number) ||
	       (call == SYS_tgkill && argument[2] == number);
}

bool process_sends(pid_t pid, int number)
{
	char path[80];
	struct dirent *entry;
	bool sends = false;
	DIR *threads = threads_of(pid);

	if (threads == NULL)
		return false;
	while (!sends && (entry = readdir(threads)) != NULL) {
		snprintf(path, sizeof(path), "task/%.20s/syscall",
			 entry->d_name);
		sends = thread_sends(pid, path, number);
	}
	closedir(threads);
	return sends;
}
