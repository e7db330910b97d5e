#include "settings/conffile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/alloc.h"

#define BLANKS " \t"
#define BYTE_ORDER_MARK "\xef\xbb\xbf"
#define NAME_CHARACTERS                          \
	"abcdefghijklmnopqrstuvwxyz0123456789-_" \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define SECTION_CHARACTERS "." NAME_CHARACTERS
#define NAME_LONGEST 64

/* --- the file ----------------------------------------------------------- */

/* A directory that we may not enter, such as another user's home, has no file
 * for us. A file that we may not read is an error, and so is a link that leads nowhere:
 * its servers would be others for a while. */
static bool is_missing(const char *path, int cause)
{
	struct stat found;

	return (cause == ENOENT || cause == ENOTDIR || cause == EACCES) &&
	       lstat(path, &found) < 0;
}

/* Root may have made its file readable for a group on purpose. */
static bool is_readable(const struct stat *found)
{
	mode_t others = found->st_uid == 0 ? S_IROTH : S_IRGRP | S_IROTH;

	return (found->st_mode & others) != 0;
}

/* Anybody who may write the file chooses the servers, and so who gets a password
 * and whom a lock keeps out. */
static const char *why_distrusted(const struct stat *found)
{
	if (found->st_uid != 0 && found->st_uid != geteuid())
		return "it is neither yours nor root's: chown it, or name another "
		       "by --config";
	if ((found->st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return "others may write it: chmod go-w";
	return NULL;
}

static bool is_null_device(const struct stat *found)
{
	return S_ISCHR(found->st_mode) && found->st_rdev == makedev(1, 3);
}

/* Reads one byte more than is allowed, to detect a file that is too large. */
static int read_all(struct conffile *file, int fd)
{
	ssize_t size;

	file->text = xrealloc(NULL, CONFFILE_SIZE + 1);
	while (file->size <= CONFFILE_SIZE) {
		size = read(fd, file->text + file->size,
			    CONFFILE_SIZE + 1 - file->size);
		if (size < 0)
			return -1;
		if (size == 0)
			break;
		file->size += (size_t)size;
	}
	return 0;
}

/* By errno: a lack of descriptors or memory is not the file's fault. */
static int blame_system(const char *path, struct error *error)
{
	bool scarce = errno == EMFILE || errno == ENFILE || errno == ENOMEM;

	error_set(error, scarce ? EXIT_SYSTEM : EXIT_CONFIG, "%s: %s", path,
		  strerror(errno));
	return -1;
}

/* ls(1) shows a link that leads nowhere as if it were a file. */
static int blame_open(const char *path, struct error *error)
{
	bool missing = errno == ENOENT;
	struct stat found;

	blame_system(path, error);
	if (missing && lstat(path, &found) == 0 && S_ISLNK(found.st_mode))
		error_append(error, ": it is a symbolic link to a file that is "
				    "not there");
	return -1;
}

static int slurp(struct conffile *file, int fd, struct error *error)
{
	const char *wrong = NULL;
	struct stat found;

	if (fstat(fd, &found) < 0)
		return blame_system(file->path, error);
	if (S_ISREG(found.st_mode))
		wrong = why_distrusted(&found);
	else if (!is_null_device(&found))
		wrong = "not a regular file";
	if (wrong != NULL) {
		error_set(error, EXIT_CONFIG, "%s: %s", file->path, wrong);
		return -1;
	}
	file->readable = is_readable(&found);
	if (read_all(file, fd) < 0)
		return blame_system(file->path, error);
	if (file->size > CONFFILE_SIZE) {
		error_set(error, EXIT_CONFIG, "%s: more than %d bytes",
			  file->path, CONFFILE_SIZE);
		return -1;
	}
	return 0;
}

/* --- its lines ---------------------------------------------------------- */

static int refuse(const struct conffile *file, unsigned number,
		  struct error *error)
{
	error->code = EXIT_CONFIG;
	conffile_blame(file, number, error);
	return -1;
}

static char *trim(char *text)
{
	size_t length;

	text += strspn(text, BLANKS);
	length = strlen(text);
	while (length > 0 && strchr(BLANKS, text[length - 1]) != NULL)
		text[--length] = '\0';
	return text;
}

static bool is_name(const char *text, const char *characters)
{
	size_t length = strlen(text);

	return length > 0 && length <= NAME_LONGEST &&
	       strspn(text, characters) == length;
}

static int add_section(struct conffile *file, char *text, unsigned number,
		       struct error *error)
{
	size_t length = strlen(text);
	char *name = text + 1;

	if (text[length - 1] != ']') {
		error_set(error, EXIT_CONFIG,
			  "a section is [NAME], alone on "
			  "its line");
		return refuse(file, number, error);
	}
	text[length - 1] = '\0';
	name = trim(name);
	if (!is_name(name, SECTION_CHARACTERS)) {
		error_set(error, EXIT_CONFIG,
			  "a section's name is 1 to %d of a-z, A-Z, 0-9, "
			  "'-', '_' and '.'",
			  NAME_LONGEST);
		return refuse(file, number, error);
	}
	for (size_t i = 1; i < file->section_count; i++) {
		if (strcmp(file->sections[i], name) != 0)
			continue;
		error_set(error, EXIT_CONFIG, "duplicate section [%s]", name);
		return refuse(file, number, error);
	}
	if (file->section_count == CONFFILE_SECTIONS) {
		error_set(error, EXIT_CONFIG, "more than %d sections",
			  CONFFILE_SECTIONS - 1);
		return refuse(file, number, error);
	}
	file->sections[file->section_count++] = name;
	return 0;
}

static int add_line(struct conffile *file, char *text, unsigned number,
		    struct error *error)
{
	char *sign = strchr(text, '=');

	if (sign != NULL) {
		*sign = '\0';
		text = trim(text);
	}
	if (sign == NULL || !is_name(text, NAME_CHARACTERS)) {
		error_set(error, EXIT_CONFIG,
			  "not NAME = VALUE, nor [SECTION], nor # COMMENT");
		return refuse(file, number, error);
	}
	/* the array has room up to the next power of two */
	if ((file->count & (file->count - 1)) == 0) {
		size_t capacity = file->count == 0 ? 1 : 2 * file->count;

		file->lines =
			xrealloc(file->lines, capacity * sizeof(*file->lines));
	}
	file->lines[file->count++] = (struct conffile_line){
		.name = text,
		.value = trim(sign + 1),
		.section = file->section_count - 1,
		.number = number,
	};
	return 0;
}

/* text is one line, length bytes, with a NUL in place of its newline. */
static int read_line(struct conffile *file, char *text, size_t length,
		     unsigned number, struct error *error)
{
	if (length > 0 && text[length - 1] == '\r')
		text[--length] = '\0';
	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)text[i];

		if ((byte >= ' ' && byte != 0x7f) || byte == '\t')
			continue;
		error_set(error, EXIT_CONFIG, "a control character (0x%02x)",
			  byte);
		return refuse(file, number, error);
	}
	text = trim(text);
	if (*text == '\0' || *text == '#')
		return 0;
	return *text == '[' ? add_section(file, text, number, error)
			    : add_line(file, text, number, error);
}

static int take_apart(struct conffile *file, struct error *error)
{
	char *text = file->text, *end = file->text + file->size;
	size_t mark = strlen(BYTE_ORDER_MARK);

	if (file->size >= mark && memcmp(text, BYTE_ORDER_MARK, mark) == 0)
		text += mark;
	for (unsigned number = 1; text < end; number++) {
		char *newline = memchr(text, '\n', (size_t)(end - text));
		char *stop = newline != NULL ? newline : end;

		*stop = '\0';
		if (read_line(file, text, (size_t)(stop - text), number,
			      error) < 0)
			return -1;
		text = stop + 1;
	}
	return 0;
}

/* --- all of it ---------------------------------------------------------- */

int conffile_read(struct conffile *file, const char *path, bool may_lack,
		  struct error *error)
{
	/* a pipe must not block us, a terminal not become ours */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int result;

	*file = (struct conffile){.section_count = 1};
	if (fd < 0 && may_lack && is_missing(path, errno))
		return 0;
	file->path = path;
	if (fd < 0)
		return blame_open(path, error);
	result = slurp(file, fd, error);
	close(fd);
	return result < 0 ? -1 : take_apart(file, error);
}

void conffile_blame(const struct conffile *file, unsigned number,
		    struct error *error)
{
	error_prepend(error, "%s:%u: ", file->path, number);
}

void conffile_release(struct conffile *file)
{
	if (file->text != NULL)
		explicit_bzero(file->text, file->size);
	free(file->text);
	free(file->lines);
	*file = (struct conffile){0};
}
