#include "run/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TEXT 512
#define COMMAND_LINE 4096

/* The beginning of a file below /proc. Its length, 0 if there is none. */
static size_t read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
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

bool process_command_line(pid_t pid, struct buffer *text)
{
	char path[40], line[COMMAND_LINE];
	size_t length;

	snprintf(path, sizeof(path), "/proc/%ld/cmdline", (long)pid);
	length = read_text(path, line, sizeof(line));
	while (length > 0 && line[length - 1] == '\0')
		length--;
	for (size_t i = 0; i < length; i++)
		if (line[i] == '\0')
			line[i] = ' ';
	buffer_append(text, line, length);
	return length > 0;
}

/* "PID (NAME) STATE ..."; a NAME may hold anything, also ") ". */
char process_state(pid_t pid)
{
	char path[40], text[TEXT];
	const char *end;

	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	if (read_text(path, text, sizeof(text)) == 0)
		return 0;
	end = strrchr(text, ')');
	if (end == NULL || end[1] != ' ')
		return 0;
	return end[2];
}

/* "NUMBER ARGUMENT ARGUMENT ..." of the system call that the thread is in. */
static bool thread_sends(const char *path, long number)
{
	char text[TEXT], *at = text;
	long call, argument[3];

	if (read_text(path, text, sizeof(text)) == 0)
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
