/*
 * A configuration file, taken apart: lines `name = value`, `# comments`, and
 * sections `[name]`, each with its number for whoever finds a mistake in it.
 *
 *	struct conffile file;
 *
 *	if (conffile_read(&file, path, &error) < 0) ...
 *	for (i = 0; i < file.count; i++) ... file.lines[i] ...
 *	conffile_release(&file);
 *
 * A value is all that follows the first `=`, without the blanks around it: a
 * `#` or a quote in it is part of it, so a password can be anything. (That is
 * why fparseln(3bsd) does not read it: it cuts a value at a `#` and takes
 * backslashes away.) A comment has its line to itself. A line may end with CR
 * LF, and the file may begin with the byte order mark of UTF-8; other control
 * characters are mistakes, as whoever edits the file cannot see them.
 *
 * Reading ends soon whatever the path names: only regular files, and /dev/null
 * for an empty one, and only up to CONFFILE_SIZE bytes. A file is refused if
 * somebody may write it who is neither we nor root: it would choose the
 * servers, and so the receivers of passwords. No error shows a value, or a
 * line that is not understood: it may be a password.
 */
#ifndef CONFFILE_H
#define CONFFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define CONFFILE_SIZE 65536
#define CONFFILE_SECTIONS 64 /* with the one before the first header */

struct conffile_line {
	char *name, *value; /* the reader may change the value */
	size_t section;
	unsigned number; /* from 1 on */
};

struct conffile {
	const char *path; /* the caller's; NULL: there is no file */
	bool readable;    /* by others than its owner */
	struct conffile_line *lines;
	size_t count;
	const char *sections[CONFFILE_SECTIONS]; /* [0] is NULL */
	size_t section_count;
	char *text; /* owned: the texts above */
	size_t size;
};

/*
 * Reads it. 0, or -1 with *error (EXIT_CONFIG, "PATH: ..." or "PATH:LINE:
 * ..."); where may_lack is set, no such file is an empty one without a path.
 * Release it in any case.
 */
int conffile_read(struct conffile *file, const char *path, bool may_lack,
		  struct error *error);

/* What is wrong in *error, and where: "PATH:LINE: " is put in front. */
void conffile_blame(const struct conffile *file, unsigned number,
		    struct error *error);

/* Overwrites and frees what was read. */
void conffile_release(struct conffile *file);

#endif
