#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "settings/command.h"
#include "settings/settings.h"
#include "base/deadline.h"
#include "base/duration.h"
#include "base/log.h"
#include "base/number.h"

/*
 * FILE holds the largest fence that has passed: a number, and blanks that fill 19
 * columns and a newline. No smaller fence passes after that, because
 *
 *  - a fence is compared and written under a lock of the file system on FILE, which
 *    ends with the process that has it. Over NFS it is the server's lock, and what was
 *    read before it was taken is read again. If FILE has been replaced meanwhile, the
 *    new FILE is locked.
 *  - the number is written over the old one, 20 bytes at the start of the file, which
 *    a disk writes whole or not at all. A file of another length, empty or made by
 *    hand, gets its blanks first, so the number's place never moves.
 *  - a fence passes after it is on the disk. An equal one is written out as well, as
 *    who wrote it may have been killed before that.
 */
#define RECORD 20

#define PATIENCE 10000 /* ms: others need the lock for an instant */
#define LOOK_AGAIN 20  /* ms, at most */

struct fence_file {
	const char *path;
	int fd;
};

static int complain(const char *path, const char *doing)
{
	log_error("%s: cannot %s it: %s", path, doing, strerror(errno));
	return EXIT_SYSTEM;
}

static int complain_of_content(const char *path)
{
	log_error("%s: it holds something other than a fence: name a file that "
		  "only redlock fence writes",
		  path);
	return EXIT_MISUSED;
}

/* Whether the path still leads to the file that is open. */
static bool is_in_place(const struct fence_file *file)
{
	struct stat opened, found;

	return fstat(file->fd, &opened) == 0 && stat(file->path, &found) == 0 &&
	       opened.st_ino == found.st_ino && opened.st_dev == found.st_dev;
}

/* Whoever may read the file can lock it, for ever: so no F_OFD_SETLKW. */
static int lock_file(struct fence_file *file, struct deadline until)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char text[DURATION_TEXT];

	while (fcntl(file->fd, F_OFD_SETLK, &all) < 0) {
		if (errno != EAGAIN && errno != EACCES && errno != EINTR)
			return complain(file->path, "lock");
		if (deadline_passed(until)) {
			log_error("%s: other processes have kept it locked "
				  "for %s, one or several in turn: fuser(1) "
				  "names those that have it open",
				  file->path, duration_format(text, PATIENCE));
			return EXIT_SYSTEM;
		}
		deadline_poll(NULL, 0,
			      deadline_in(1 + deadline_jitter(LOOK_AGAIN)));
	}
	return 0;
}

/* Whatever the umask, the owner of a file that we make can open it again. */
static void keep_owner_rights(void)
{
	mode_t mask = umask(0);

	umask(mask & ~(mode_t)(S_IRUSR | S_IWUSR));
}

/* 0, or an exit status after an error that was printed. */
static int open_file(struct fence_file *file)
{
	struct deadline until = deadline_in(PATIENCE);
	struct stat found;
	int status;

	for (;;) {
		/* O_NONBLOCK: nobody may read a FIFO */
		file->fd = open(file->path,
				O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK |
					O_NOCTTY,
				0666);
		if (file->fd < 0 && errno == EISDIR)
			return complain_of_content(file->path);
		if (file->fd < 0)
			return complain(file->path, "open");
		if (fstat(file->fd, &found) == 0 && !S_ISREG(found.st_mode))
			return complain_of_content(file->path);
		status = lock_file(file, until);
		if (status != 0 || is_in_place(file))
			return status;
		close(file->fd);
	}
}

/* The fence in the file, 0 if it is empty. *length: of the file, in bytes. */
static int read_fence(const struct fence_file *file, int64_t *fence,
		      size_t *length)
{
	char text[RECORD + 2];
	const char *rest = text;
	ssize_t got = pread(file->fd, text, sizeof(text) - 1, 0);

	*fence = 0;
	if (got < 0)
		return complain(file->path, "read");
	*length = (size_t)got;
	if (got == 0)
		return 0;
	text[got] = '\0';
	if (got > RECORD || strlen(text) != (size_t)got ||
	    number_read(&rest, 0, FENCE_LARGEST, fence) < 0 ||
	    rest[strspn(rest, " \n")] != '\0')
		return complain_of_content(file->path);
	return 0;
}

/* So that a file that is new is found again after a crash. This comes before it has a
 * number: if it fails, the next one tries again. */
static int sync_directory(const struct fence_file *file)
{
	char *path = realpath(file->path, NULL);
	char *slash = path == NULL ? NULL : strrchr(path, '/');
	int fd = -1, result = -1;

	if (slash != NULL) {
		slash[slash == path] = '\0';
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (fd >= 0) {
		result = fsync(fd);
		/* some file systems cannot, and need not */
		if (result < 0 && errno == EINVAL)
			result = 0;
		close(fd);
	}
	free(path);
	return result;
}

static int fill(const struct fence_file *file, size_t length)
{
	static const char blanks[] = "                   \n";
	size_t missing = RECORD - length;

	return pwrite(file->fd, blanks + length, missing, (off_t)length) ==
				       (ssize_t)missing &&
			       fsync(file->fd) == 0
		       ? 0
		       : -1;
}

static int write_fence(const struct fence_file *file, int64_t fence,
		       size_t length)
{
	char text[RECORD + 1];

	snprintf(text, sizeof(text), "%-19lld\n", (long long)fence);
	errno = EIO; /* if less is written */
	if ((length == 0 && sync_directory(file) < 0) ||
	    (length > 0 && length < RECORD && fill(file, length) < 0) ||
	    pwrite(file->fd, text, RECORD, 0) != RECORD || fsync(file->fd) < 0)
		return complain(file->path, "write");
	return 0;
}

static int compare(const struct fence_file *file, int64_t fence)
{
	int64_t largest;
	size_t length = 0;
	int status = read_fence(file, &largest, &length);

	if (status != 0)
		return status;
	if (fence >= largest)
		return write_fence(file, fence, length);
	log_error("%s: fence %lld is smaller than %lld, the largest seen here: "
		  "there has been a later holder: stop",
		  file->path, (long long)fence, (long long)largest);
	return EXIT_NOT_HELD;
}

int cmd_fence(struct settings *settings)
{
	struct fence_file file = {.path = settings->file};
	int status;

	keep_owner_rights();
	status = open_file(&file);
	if (status == 0)
		status = compare(&file, settings->fence);
	if (status == 0)
		log_step("%s: fence %lld is the largest", file.path,
			 (long long)settings->fence);
	if (file.fd >= 0)
		close(file.fd);
	return status;
}
