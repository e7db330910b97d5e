#include "base/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/output.h"
#include "base/signals.h"

/* Links are not followed: in a directory that all may write, somebody else may have
 * made the link. */
static int refuse_others(const char *path, struct error *error)
{
	struct stat found;

	if (lstat(path, &found) < 0) {
		if (errno == ENOENT)
			return 0;
		error_system(error, "%s", path);
		return -1;
	}
	if (S_ISREG(found.st_mode))
		return 0;
	error_set(error, EXIT_SYSTEM,
		  S_ISLNK(found.st_mode)
			  ? "%s: it is a symbolic link: name the file itself"
			  : "%s: it is not a plain file",
		  path);
	return -1;
}

/* What a program that creates a file would give it; mkostemp(3) gives 0600. */
static mode_t usual_mode(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return 0666 & ~mask;
}

static int write_all(int fd, const char *text, size_t length)
{
	int result = fchmod(fd, usual_mode()) < 0 ||
				     output_write(fd, text, length) < 0 ||
				     fsync(fd) < 0
			     ? -1
			     : 0;
	int failure = errno;

	if (close(fd) < 0 && result == 0)
		return -1;
	errno = failure;
	return result;
}

static int write_beside(const char *path, const char *text, size_t length)
{
	struct buffer beside = {0};
	int fd, failure, result = -1;

	buffer_print(&beside, "%s.XXXXXX", path);
	fd = mkostemp(beside.data, O_CLOEXEC);
	if (fd >= 0 && write_all(fd, text, length) == 0)
		result = rename(beside.data, path);
	failure = errno;
	if (fd >= 0 && result < 0)
		unlink(beside.data);
	buffer_release(&beside);
	errno = failure;
	return result;
}

int replace_file(const char *path, const char *text, size_t length,
		 struct error *error)
{
	struct signals_mask before;
	int result;

	if (refuse_others(path, error) < 0)
		return -1;
	signals_block_all(&before);
	result = write_beside(path, text, length);
	if (result < 0)
		error_system(error, "%s", path);
	signals_unblock(&before);
	return result;
}
