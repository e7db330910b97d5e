#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/signals.h"

#define LOOK_AGAIN 100   /* ms, whether a signal has come */
#define AT_ONCE PIPE_BUF /* bytes: a pipe with room takes as many */

/* The length of the UTF-8 character at text, 0 if there is none (RFC 3629:
 * no overlong forms, no surrogates); its code point in *point. */
static size_t utf8_decode(const char *text, size_t length, uint32_t *point)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *byte = (const unsigned char *)text;
	size_t size = byte[0] < 0x80                      ? 1
		      : byte[0] >= 0xf0 && byte[0] < 0xf5 ? 4
		      : byte[0] >= 0xe0 && byte[0] < 0xf0 ? 3
		      : byte[0] >= 0xc2 && byte[0] < 0xe0 ? 2
							  : 0;

	if (size == 0 || size > length)
		return 0;
	*point = size == 1 ? byte[0] : byte[0] & (0xffu >> (size + 1));
	for (size_t i = 1; i < size; i++) {
		if ((byte[i] & 0xc0) != 0x80)
			return 0;
		*point = *point << 6 | (byte[i] & 0x3f);
	}
	if (size > 1 && (*point < least[size] || *point > 0x10ffff ||
			 (*point >= 0xd800 && *point < 0xe000)))
		return 0;
	return size;
}

/* In ascending order. */
struct range {
	uint32_t first, last;
};

static bool is_in(uint32_t point, const struct range *ranges, size_t count)
{
	for (size_t i = 0; i < count && ranges[i].first <= point; i++)
		if (point <= ranges[i].last)
			return true;
	return false;
}

/* Controls, and what hides text or turns it around. */
static bool is_printable(uint32_t point)
{
	static const struct range hidden[] = {
		{0, 0x1f},          {0x7f, 0x9f},       {0xad, 0xad},
		{0x34f, 0x34f},     {0x61c, 0x61c},     {0x115f, 0x1160},
		{0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200f},
		{0x2028, 0x202e},   {0x2060, 0x206f},   {0x3164, 0x3164},
		{0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff0, 0xfffb},
		{0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
	};

	return !is_in(point, hidden, sizeof(hidden) / sizeof(hidden[0]));
}

static void escape_byte(struct buffer *buffer, unsigned char byte)
{
	static const char from[] = "\n\t\r\033", to[] = "ntre";
	const char *known = byte ? strchr(from, byte) : NULL;

	if (known != NULL)
		buffer_print(buffer, "\\%c", to[known - from]);
	else
		buffer_print(buffer, "\\x%02x", byte);
}

void output_visible(struct buffer *buffer, const char *text, size_t length,
		    bool utf8)
{
	uint32_t point = 0;

	buffer_reserve(buffer, length);
	for (size_t at = 0, size; at < length; at += size) {
		size = utf8_decode(text + at, length - at, &point);
		if (size > 0 && (size == 1 || utf8) && is_printable(point)) {
			buffer_append(buffer, text + at, size);
			continue;
		}
		size = 1;
		escape_byte(buffer, (unsigned char)text[at]);
	}
	buffer_append(buffer, "", 0);
}

/* Unicode's East Asian Wide and Fullwidth. No table of the combining, nor of the selectors of
 * emoji: what counts one column too many is cut early. */
static size_t width(uint32_t point)
{
	static const struct range wide[] = {
		{0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},
		{0x23e9, 0x23ec},   {0x23f0, 0x23f0},   {0x23f3, 0x23f3},
		{0x25fd, 0x25fe},   {0x2614, 0x2615},   {0x2630, 0x2637},
		{0x2648, 0x2653},   {0x267f, 0x267f},   {0x268a, 0x268f},
		{0x2693, 0x2693},   {0x26a1, 0x26a1},   {0x26aa, 0x26ab},
		{0x26bd, 0x26be},   {0x26c4, 0x26c5},   {0x26ce, 0x26ce},
		{0x26d4, 0x26d4},   {0x26ea, 0x26ea},   {0x26f2, 0x26f3},
		{0x26f5, 0x26f5},   {0x26fa, 0x26fa},   {0x26fd, 0x26fd},
		{0x2705, 0x2705},   {0x270a, 0x270b},   {0x2728, 0x2728},
		{0x274c, 0x274c},   {0x274e, 0x274e},   {0x2753, 0x2755},
		{0x2757, 0x2757},   {0x2795, 0x2797},   {0x27b0, 0x27b0},
		{0x27bf, 0x27bf},   {0x2b1b, 0x2b1c},   {0x2b50, 0x2b50},
		{0x2b55, 0x2b55},   {0x2e80, 0xa4cf},   {0xa960, 0xa97c},
		{0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe10, 0xfe19},
		{0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},
		{0x16fe0, 0x18dff}, {0x1aff0, 0x1b2ff}, {0x1d300, 0x1d376},
		{0x1f000, 0x3ffff},
	};

	return is_in(point, wide, sizeof(wide) / sizeof(wide[0])) ? 2 : 1;
}

size_t output_fit(const char *text, size_t length, size_t columns)
{
	uint32_t point = 0;
	size_t at = 0;

	while (at < length) {
		size_t size = utf8_decode(text + at, length - at, &point);
		size_t needed = size > 0 ? width(point) : 1;

		if (needed > columns)
			break;
		columns -= needed;
		at += size > 0 ? size : 1;
	}
	return at;
}

size_t output_width(const char *text, size_t length)
{
	uint32_t point = 0;
	size_t columns = 0;

	for (size_t at = 0, size; at < length; at += size ? size : 1) {
		size = utf8_decode(text + at, length - at, &point);
		columns += size > 0 ? width(point) : 1;
	}
	return columns;
}

/* The column after the buffer's last byte. */
static size_t column_of(const struct buffer *buffer)
{
	size_t at = buffer->length;

	while (at > 0 && buffer->data[at - 1] != '\n')
		at--;
	return at < buffer->length
		       ? output_width(buffer->data + at, buffer->length - at)
		       : 0; /* maybe without data */
}

void output_wrap(struct buffer *buffer, const char *text, size_t length,
		 size_t columns, size_t indent)
{
	size_t column = column_of(buffer), at = 0;

	while (at < length) {
		size_t blanks = strspn(text + at, " ");
		size_t word = blanks + strcspn(text + at + blanks, " ");
		size_t width;

		if (word > length - at)
			word = length - at;
		width = output_width(text + at, word);
		if (columns > 0 && blanks > 0 && column > indent &&
		    column + width > columns) {
			buffer_print(buffer, "\n%*s", (int)indent, "");
			at += blanks;
			word -= blanks;
			width -= blanks;
			column = indent;
		}
		buffer_append(buffer, text + at, word);
		column += width;
		at += word;
	}
}

size_t output_columns(int fd, size_t unknown)
{
	struct winsize size;

	if (!isatty(fd))
		return 0;
	if (ioctl(fd, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return unknown;
	return size.ws_col;
}

/* "UTF-8" or "utf8". strcasestr(3) would read tables that a run needs nowhere else,
 * each of which is a page. */
static bool names_utf8(const char *locale)
{
	for (const char *at = locale; *at != '\0'; at++)
		if ((at[0] | 0x20) == 'u' && (at[1] | 0x20) == 't' &&
		    (at[2] | 0x20) == 'f' && at[at[3] == '-' ? 4 : 3] == '8')
			return true;
	return false;
}

bool output_utf8(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < 3; i++) {
		const char *value = getenv(names[i]);

		if (value != NULL && value[0] != '\0')
			return names_utf8(value);
	}
	return false;
}

/* Beyond 16 bits, as UTF-16 has it. */
static void escape_point(struct buffer *buffer, uint32_t point)
{
	if (point > 0xffff)
		buffer_print(buffer, "\\u%04x\\u%04x",
			     (unsigned)(0xd7c0 + (point >> 10)),
			     (unsigned)(0xdc00 + (point & 0x3ff)));
	else
		buffer_print(buffer, "\\u%04x", (unsigned)point);
}

void output_json(struct buffer *buffer, const char *text, size_t length)
{
	uint32_t point = 0;

	buffer_append(buffer, "\"", 1);
	for (size_t at = 0, size; at < length; at += size) {
		size = utf8_decode(text + at, length - at, &point);
		if (size == 0) {
			size = 1;
			buffer_append(buffer, "\\ufffd", 6);
		} else if (point == '"' || point == '\\') {
			buffer_print(buffer, "\\%c", (int)point);
		} else if (!is_printable(point)) {
			escape_point(buffer, point);
		} else {
			buffer_append(buffer, text + at, size);
		}
	}
	buffer_append(buffer, "\"", 1);
}

/* There is no newline in it. */
static void quote_label(struct buffer *buffer, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		buffer_print(buffer,
			     text[i] == '"' || text[i] == '\\' ? "\\%c" : "%c",
			     text[i]);
}

void output_label(struct buffer *buffer, const char *text, size_t length)
{
	struct buffer part = {0};

	buffer_append(buffer, "\"", 1);
	for (size_t at = 0, size; at < length; at += size) {
		const char *next = memchr(text + at, '\\', length - at);

		size = next == NULL ? length - at : (size_t)(next - text) - at;
		if (size > 0) {
			part.length = 0;
			output_visible(&part, text + at, size, true);
			quote_label(buffer, part.data, part.length);
			continue;
		}
		quote_label(buffer, "\\\\", 2);
		size = 1;
	}
	buffer_append(buffer, "\"", 1);
	buffer_release(&part);
}

void output_shell(struct buffer *buffer, const char *text)
{
	buffer_append(buffer, "'", 1);
	for (; *text; text++) {
		if (*text == '\'')
			buffer_append(buffer, "'\\''", 4);
		else
			buffer_append(buffer, text, 1);
	}
	buffer_append(buffer, "'", 1);
}

int output_write(int fd, const char *text, size_t length)
{
	while (length > 0) {
		ssize_t written = write(fd, text, length);

		if (written < 0 && errno == EAGAIN) {
			poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1,
			     1000);
			continue;
		}
		if (written < 0 && errno != EINTR)
			return -1;
		if (written > 0) {
			text += written;
			length -= (size_t)written;
		}
	}
	return 0;
}

/* The pipe or terminal, opened anew so that a write never waits: others share the one
 * that we were given, and their writes may have to wait. -1 if that cannot be. */
static int open_twin(int fd, const struct stat *status)
{
	char path[32];

	if (!S_ISFIFO(status->st_mode) && !S_ISCHR(status->st_mode))
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* Whether any write either succeeds or fails at once. */
static bool never_waits(int fd, const struct stat *status)
{
	return S_ISREG(status->st_mode) ||
	       (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY;
}

ssize_t output_write_at_once(int fd, const char *text, size_t length)
{
	struct pollfd polled = {.fd = fd, .events = POLLOUT};
	struct stat status = {0};
	ssize_t written;
	int twin, failure;

	if (fstat(fd, &status) == 0 && never_waits(fd, &status))
		return write(fd, text, length);
	twin = open_twin(fd, &status);
	if (twin < 0) {
		if (length > AT_ONCE)
			length = AT_ONCE;
		if (poll(&polled, 1, 0) > 0)
			return write(fd, text, length);
		errno = EAGAIN;
		return -1;
	}
	written = write(twin, text, length);
	failure = errno;
	close(twin);
	errno = failure;
	return written;
}

int output_write_until_told(int fd, const char *text, size_t length, bool told)
{
	struct pollfd polled = {.fd = fd, .events = POLLOUT};

	while (length > 0) {
		ssize_t written = output_write_at_once(fd, text, length);

		if (written < 0 && errno != EAGAIN && errno != EINTR)
			return -1;
		if (written > 0) {
			text += written;
			length -= (size_t)written;
			continue;
		}
		if (told || signals_tell_to_end()) {
			errno = EINTR;
			return -1;
		}
		poll(&polled, 1, LOOK_AGAIN);
	}
	return 0;
}
