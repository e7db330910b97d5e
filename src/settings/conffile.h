/*
 * A configuration file, taken apart: lines `name = value`, `# comments`, and
 * sections `[name]`. Each line has its number, for error messages.
 *
 *	struct conffile file;
 *
 *	if (conffile_read(&file, path, &error) < 0) ...
 *	for (i = 0; i < file.count; i++) ... file.lines[i] ...
 *	conffile_release(&file);
 *
 * A value is everything after the first `=`, without the blanks around it. A `#`
 * or a quote is part of the value, so a password can be anything. (This is why
 * fparseln(3bsd) is not used: it cuts a value at a `#` and removes backslashes.)
 * A comment has a line of its own. A line may end with CR LF, and the file may
 * begin with the byte order mark of UTF-8. Other control characters are mistakes,
 * as an editor may not show them.
 *
 * Reading ends soon, whatever the path names: only regular files are read, up to
 * CONFFILE_SIZE bytes, and /dev/null, which is an empty file. A file is refused
 * if anybody but us and root may write it: they would choose the servers, and so
 * the receivers of passwords. Errors never show a value or a line that is not
 * understood, as it may be a password.
 */
#ifndef SETTINGS_CONFFILE_H
#define SETTINGS_CONFFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define CONFFILE_SIZE 65536
#define CONFFILE_SECTIONS 64 /* with the one before the first header */

struct conffile_line {
	char *name, *value; /* the caller may change the value */
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
 * Reads the file. Returns 0, or -1 with *error (EXIT_CONFIG, "PATH: ..." or
 * "PATH:LINE: ..."). If may_lack is set, a missing file is no error: it is empty
 * and has no path. Release it in any case.
 */
int conffile_read(struct conffile *file, const char *path, bool may_lack,
		  struct error *error);

/* Puts "PATH:LINE: " in front of the error. */
void conffile_blame(const struct conffile *file, unsigned number,
		    struct error *error);

/* Overwrites and frees what was read. */
void conffile_release(struct conffile *file);

#endif
