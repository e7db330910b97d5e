/*
 * What commands write to the standard output.
 */
#ifndef CMD_PRINT_H
#define CMD_PRINT_H

#include "base/buffer.h"
#include "settings/settings.h"

/* Appends a line for people that will be written to fd, and then `end`. The line's
 * bytes are made visible. If fd is a terminal, the line is broken at blanks to the
 * terminal's width. Text that the buffer holds already is kept as it is. */
void cmd_add_line(struct buffer *text, const struct buffer *line, int fd,
		  const char *end);

/* Writes to the standard output. 0, or an exit status after an error that was printed. */
int cmd_print(const char *text, size_t length);

/* The same, for a command that changes nothing: if nobody reads, SIGPIPE ends us. */
int cmd_show(const char *text, size_t length);

/* If a command that prints text for eval fails: prints text that makes eval fail, too.
 * With status 0 (-E 0) it ends the shell, as a script must not go on without the
 * lock. told: a signal has told us to end, so no reader is waited for. */
void cmd_print_failure(const struct settings *settings, int status, bool told);

#endif
