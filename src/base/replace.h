/*
 * Replaces a file by a text, so that whoever reads it finds the old text or the new
 * one, whole, also after a crash: the text is written to a file beside it, which then
 * takes its name. That file's name is the old one, a dot and six characters. It is
 * left behind only by SIGKILL or a crash: signals wait until all is done.
 *
 * A path that is a symbolic link, or anything other than a plain file, is refused and
 * left as it is. The links of a directory on the way are followed.
 */
#ifndef BASE_REPLACE_H
#define BASE_REPLACE_H

#include <stddef.h>

#include "base/error.h"

/* 0, or -1 with *error (EXIT_SYSTEM). Its mode is 0666 without the umask. */
int replace_file(const char *path, const char *text, size_t length,
		 struct error *error);

#endif
