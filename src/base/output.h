/*
 * Escapes: makes bytes that users and servers chose fit for a terminal, a JSON text or
 * a shell. The functions append to a struct buffer. vis(3bsd) knows neither JSON nor a
 * shell's quotes, and lets characters through that hide text or turn it around.
 */
#ifndef BASE_OUTPUT_H
#define BASE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buffer.h"

/*
 * For people: printable text as it is (beyond ASCII only if utf8 is set), all else as
 * \n, \t, \e or \xHH. Characters that hide text or turn it around count as
 * unprintable.
 */
void output_visible(struct buffer *buffer, const char *text, size_t length,
		    bool utf8);

/* The number of bytes of visible text that fit into these columns of a terminal. */
size_t output_fit(const char *text, size_t length, size_t columns);

/* The number of columns that visible text takes on a terminal. */
size_t output_width(const char *text, size_t length);

/*
 * Appends visible text, broken at blanks into lines of at most `columns` columns
 * (0: not broken). Each line after the first begins with `indent` blanks. The first
 * line continues the buffer's last one. A word that is longer than a line gets one of
 * its own.
 */
void output_wrap(struct buffer *buffer, const char *text, size_t length,
		 size_t columns, size_t indent);

/* How many columns fd has: 0 if it is no terminal, `unknown` if the terminal
 * does not say. */
size_t output_columns(int fd, size_t unknown);

/* Whether the locale in the environment says UTF-8. */
bool output_utf8(void);

/*
 * A JSON string (RFC 8259), quotes included. What output_visible would not
 * show is escaped: the text is the same to programs, and harmless on a
 * terminal. Bytes that are not UTF-8 become U+FFFD, so that every byte string
 * gives a valid text.
 */
void output_json(struct buffer *buffer, const char *text, size_t length);

/*
 * The value of a label of Prometheus, quotes included. As output_visible for UTF-8,
 * and with each backslash twice, so two texts that differ are two values. The result
 * is then quoted for Prometheus.
 */
void output_label(struct buffer *buffer, const char *text, size_t length);

/* One word of a POSIX shell, in single quotes. */
void output_shell(struct buffer *buffer, const char *text);

/* Writes all of it to fd; -1 with errno if that failed. */
int output_write(int fd, const char *text, size_t length);

/* The same, while signals are blocked: waits for a reader until a signal tells us to end,
 * and then returns -1 with EINTR. told: a signal has told us already. */
int output_write_until_told(int fd, const char *text, size_t length, bool told);

/* Writes as much of it as fd takes without a reader; -1 with errno (EAGAIN: nothing). */
ssize_t output_write_at_once(int fd, const char *text, size_t length);

#endif
