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

#define FLAGS 3
#define LISTENS "00010000" /* __SO_ACCEPTCON, and nothing else is ever set */
#define INODE 6

/* But for repeated slashes. */
static bool is_same(const char *a, const char *b)
{
	while (*a != '\0' && *a == *b) {
		if (*a == '/') {
			a += strspn(a, "/");
			b += strspn(b, "/");
		} else {
			a++;
			b++;
		}
	}
	return *a == *b;
}

/* The inode, if this line is about a socket that listens at this path, or 0. The line:
 * "address: count protocol flags type state inode path". */
static int64_t read_inode(char *line, const char *path)
{
	const char *column[INODE + 1] = {NULL};
	int64_t inode;

	line[strcspn(line, "\n")] = '\0';
	for (size_t n = 0; n <= INODE && line != NULL; n++) {
		line += strspn(line, " ");
		column[n] = strsep(&line, " ");
	}
	if (line == NULL || !is_same(line, path) ||
	    strcmp(column[FLAGS], LISTENS) != 0 ||
	    number_parse(column[INODE], 1, INT64_MAX, &inode) < 0)
		return 0;
	return inode;
}

static bool has_socket(const char *process, int64_t inode)
{
	char path[300], wanted[40], found[40];
	struct dirent *entry;
	bool has = false;
	DIR *all;

	snprintf(path, sizeof(path), "/proc/%s/fd", process);
	snprintf(wanted, sizeof(wanted), "socket:[%" PRId64 "]", inode);
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

static pid_t owner_of(int64_t inode)
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
		int64_t inode = read_inode(line, path);

		if (inode != 0)
			found = owner_of(inode);
	}
	free(line);
	if (sockets != NULL)
		fclose(sockets);
	return found;
}
