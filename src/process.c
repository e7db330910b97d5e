#include "process.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TEXT 512

/* The beginning of a file below /proc. False if there is none. */
static bool read_text(const char *path, char text[TEXT])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size;

	if (fd < 0)
		return false;
	size = read(fd, text, TEXT - 1);
	close(fd);
	text[size > 0 ? size : 0] = '\0';
	return size > 0;
}

/* "PID (NAME) STATE ..."; a NAME may hold anything, also ") ". */
char process_state(pid_t pid)
{
	char path[40], text[TEXT];
	const char *end;

	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	if (!read_text(path, text))
		return 0;
	end = strrchr(text, ')');
	return end != NULL && end[1] == ' ' ? end[2] : '\0';
}

/* "NUMBER ARGUMENT ARGUMENT ..." of the system call that the thread is in. */
static bool thread_sends(const char *path, long number)
{
	char text[TEXT], *at = text;
	long call, argument[3];

	if (!read_text(path, text))
		return false;
	call = strtol(at, &at, 10);
	for (int i = 0; i < 3; i++)
		argument[i] = (long)strtoul(at, &at, 16);
	return ((call == SYS_kill || call == SYS_tkill) &&
		argument[1] == number) ||
	       (call == SYS_tgkill && argument[2] == number);
}

bool process_sends(pid_t pid, int number)
{
	char path[80];
	struct dirent *entry;
	bool sends = false;
	DIR *threads;

	snprintf(path, sizeof(path), "/proc/%ld/task", (long)pid);
	threads = opendir(path);
	if (threads == NULL)
		return false;
	while (!sends && (entry = readdir(threads)) != NULL) {
		snprintf(path, sizeof(path), "/proc/%ld/task/%.20s/syscall",
			 (long)pid, entry->d_name);
		sends = thread_sends(path, number);
	}
	closedir(threads);
	return sends;
}
