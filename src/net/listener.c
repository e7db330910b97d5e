#include "net/listener.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"

#define LISTENS 0x10000 /* __SO_ACCEPTCON, of the fourth column */

/* Of a socket that listens at this path; 0: the line has another. */
static uint64_t read_inode(const char *line, const char *path)
{
	unsigned flags = 0;
	uint64_t inode = 0;
	int length = 0;

	if (sscanf(line, "%*s %*s %*s %x %*s %*s %" SCNu64 " %n", &flags,
		   &inode, &length) < 2 ||
	    length == 0 || !(flags & LISTENS))
		return 0;
	line += length;
	length = (int)strlen(path);
	return strncmp(line, path, (size_t)length) == 0 &&
			       strcmp(line + length, "\n") == 0
		       ? inode
		       : 0;
}

static bool has_socket(const char *process, uint64_t inode)
{
	char path[300], wanted[40], found[40];
	struct dirent *entry;
	bool has = false;
	DIR *all;

	snprintf(path, sizeof(path), "/proc/%s/fd", process);
	snprintf(wanted, sizeof(wanted), "socket:[%" PRIu64 "]", inode);
	all = opendir(path);
	while (all != NULL && !has && (entry = readdir(all)) != NULL) {
		ssize_t got = readlinkat(dirfd(all), entry->d_name, found,
					 sizeof(found));

		has = got == (ssize_t)strlen(wanted) &&
		      memcmp(found, wanted, (size_t)got) == 0;
	}
	if (all != NULL)
		closedir(all);
	return has;
}

static bool is_ours(const char *process)
{
	struct stat status, namespace, own;
	char path[300];

	snprintf(path, sizeof(path), "/proc/%s", process);
	if (stat(path, &status) < 0 || status.st_uid != geteuid())
		return false;
	snprintf(path, sizeof(path), "/proc/%s/ns/pid", process);
	return stat(path, &namespace) == 0 &&
	       stat("/proc/self/ns/pid", &own) == 0 &&
	       namespace.st_ino == own.st_ino;
}

static pid_t owner_of(uint64_t inode)
{
	DIR *all = opendir("/proc");
	struct dirent *entry;
	int64_t pid = 0, found = 0;

	while (all != NULL && found == 0 && (entry = readdir(all)) != NULL)
		if (number_parse(entry->d_name, 1, INT32_MAX, &pid) == 0 &&
		    is_ours(entry->d_name) && has_socket(entry->d_name, inode))
			found = pid;
	if (all != NULL)
		closedir(all);
	return (pid_t)found;
}

pid_t listener_of(const char *path)
{
	FILE *sockets = fopen("/proc/net/unix", "re");
	char *line = NULL;
	size_t size = 0;
	pid_t found = 0;

	while (sockets != NULL && found == 0 &&
	       getline(&line, &size, sockets) >= 0) {
		uint64_t inode = read_inode(line, path);

		if (inode != 0)
			found = owner_of(inode);
	}
	free(line);
	if (sockets != NULL)
		fclose(sockets);
	return found;
}
