/*
 * Bytes that users and servers chose, made fit for where they go: a terminal,
 * a JSON text, a shell.
 *
 * Each function appends to a struct buffer, which grows as needed; a zeroed
 * one is empty. A failed allocation ends the process (heap.h).
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stddef.h>
#include <stdint.h>

struct buffer {
	char *data; /* ends with a NUL that length does not count */
	size_t length, size;
};

void buffer_release(struct buffer *buffer);
void buffer_reserve(struct buffer *buffer, size_t more);
void buffer_append(struct buffer *buffer, const void *data, size_t length);
void buffer_print(struct buffer *buffer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * For people: printable text as it is (beyond ASCII only where utf8 is set),
 * all else as \n, \t, \e or \xHH. Characters that hide or turn text around
 * count as unprintable.
 */
void output_visible(struct buffer *buffer, const char *text, size_t length,
		    int utf8);

/* How many bytes of visible text fit into so many columns of a terminal. */
size_t output_fit(const char *text, size_t length, size_t columns);

/* How many columns of a terminal visible text takes. */
size_t output_width(const char *text, size_t length);

/*
 * Appends visible text, broken at blanks into lines of at most `columns` columns
 * (0: not broken). Each line after the first begins with `indent` blanks. The first
 * line continues the buffer's last one. A word that is too long gets a line of its
 * own.
 */
void output_wrap(struct buffer *buffer, const char *text, size_t length,
		 size_t columns, size_t indent);

/* How many columns fd has: 0 if it is no terminal, `unknown` if the terminal
 * does not say. */
size_t output_columns(int fd, size_t unknown);

/* Whether the locale in the environment says UTF-8. */
int output_utf8(void);

/*
 * A JSON string (RFC 8259), quotes included. What output_visible would not
 * show is escaped: the text is the same to programs, and harmless on a
 * terminal. Bytes that are not UTF-8 become U+FFFD, so that every byte string
 * gives a valid text.
 */
void output_json(struct buffer *buffer, const char *text, size_t length);

/* One word of a POSIX shell, in single quotes. */
void output_shell(struct buffer *buffer, const char *text);

/* Writes all of it to fd; -1 with errno where that failed. */
int output_write(int fd, const char *text, size_t length);

#endif
