#include "net/runtime.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_own_directory(const char *path)
{
	struct stat found;

	return lstat(path, &found) == 0 && S_ISDIR(found.st_mode) &&
	       found.st_uid == geteuid();
}

static int find(char path[URL_PATH_SIZE], struct error *error)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	unsigned uid = (unsigned)geteuid();
	char login[32];
	size_t size = runtime != NULL ? strlen(runtime) : 0;
	int length;

	snprintf(login, sizeof(login), "/run/user/%u", uid);
	while (size > 1 && runtime[size - 1] == '/')
		size--;
	if (size > 1 && runtime[0] == '/' &&
	    (size != strlen(login) || memcmp(runtime, login, size) != 0) &&
	    is_own_directory(runtime))
		length = snprintf(path, URL_PATH_SIZE, "%s/redlock", runtime);
	else if (uid == 0)
		length = snprintf(path, URL_PATH_SIZE, "/run/redlock");
	else
		length = snprintf(path, URL_PATH_SIZE, "/tmp/redlock-%u", uid);
	if (length + (int)sizeof("/redis.sock") > URL_PATH_SIZE) {
		error_set(error, EXIT_CONFIG,
			  "XDG_RUNTIME_DIR is too long for a socket's path: "
			  "%.60s...",
			  runtime);
		return -1;
	}
	return 0;
}

/* Whether others may put something else in its place. */
static bool may_be_replaced(const char *path)
{
	char above[URL_PATH_SIZE];
	struct stat found;

	snprintf(above, sizeof(above), "%.*s", (int)(strrchr(path, '/') - path),
		 path);
	return stat(above, &found) < 0 ||
	       ((found.st_mode & S_IWOTH) && !(found.st_mode & S_ISVTX));
}

int runtime_directory(char path[URL_PATH_SIZE], struct error *error)
{
	struct stat found;
	const char *wrong;

	if (find(path, error) < 0)
		return -1;
	if (mkdir(path, 0700) < 0 && errno != EEXIST) {
		error_system(error, "cannot make %s", path);
		return -1;
	}
	if (lstat(path, &found) < 0) {
		error_system(error, "%s", path);
		return -1;
	}
	/* made with a umask that leaves us nothing */
	if (S_ISDIR(found.st_mode) && found.st_uid == geteuid() &&
	    (found.st_mode & 0700) != 0700 &&
	    chmod(path, (found.st_mode & 07777) | 0700) < 0) {
		error_system(error, "%s", path);
		return -1;
	}
	if (!S_ISDIR(found.st_mode))
		wrong = "is not a directory";
	else if (found.st_uid != geteuid())
		wrong = "belongs to another user";
	else if ((found.st_mode & 0077) != 0)
		wrong = "can be entered by others (want mode 0700)";
	else if (may_be_replaced(path))
		wrong = "can be replaced by others (want a sticky directory "
			"above)";
	else
		return 0;
	error_set(error, EXIT_CONFIG,
		  "%s %s: it is not used; remove it, or set "
		  "XDG_RUNTIME_DIR",
		  path, wrong);
	return -1;
}
