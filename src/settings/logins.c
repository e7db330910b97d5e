#include "settings/logins.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/deadline.h"
#include "base/alloc.h"
#include "base/output.h"

#define PASSWORD_LONGEST 4096
#define PIPE_PATIENCE 10000 /* ms; said in why_unread */

/* --- password files ------------------------------------------------------ */

static const char *why_unfit(const struct stat *found, ssize_t size,
			     const char *text)
{
	size_t line = strcspn(text, "\r\n");

	if (S_ISREG(found->st_mode) &&
	    (found->st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return "others may write it: chmod go-w";
	/* what follows would be left out: maybe it is UTF-16 */
	if (line < (size_t)size && text[line] == '\0')
		return "its first line has a NUL byte: is it plain text?";
	if (size == PASSWORD_LONGEST && text[line] == '\0')
		return "its first line is too long";
	return line == 0 ? "its first line is empty" : NULL;
}

/* What is there, up to the end of the first line. A pipe's other end may take
 * its time. -1 with errno; ETIME: nothing came. */
static ssize_t read_line(int fd, mode_t mode, char text[PASSWORD_LONGEST + 1])
{
	struct pollfd polled = {.fd = fd, .events = POLLIN};
	struct deadline until = deadline_in(PIPE_PATIENCE);
	ssize_t length = 0, got;

	do {
		if (!S_ISREG(mode) && deadline_poll(&polled, 1, until) == 0) {
			errno = ETIME;
			return -1;
		}
		got = read(fd, text + length,
			   PASSWORD_LONGEST - (size_t)length);
		if (got < 0 && errno != EAGAIN && errno != EINTR)
			return -1;
		length += got > 0 ? got : 0;
		text[length] = '\0';
	} while (got != 0 && length < PASSWORD_LONGEST && !S_ISREG(mode) &&
		 strpbrk(text, "\r\n") == NULL);
	return length;
}

static const char *why_unread(int cause)
{
	return cause == ETIME ? "no line was written into it for 10s"
			      : strerror(cause);
}

char *logins_read_file(const char *path, struct error *error)
{
	char text[PASSWORD_LONGEST + 1] = "";
	char *password = NULL;
	const char *wrong;
	struct stat found;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t size = -1;

	if (fd >= 0 && fstat(fd, &found) == 0)
		size = read_line(fd, found.st_mode, text);
	wrong = size < 0 ? why_unread(errno) : why_unfit(&found, size, text);
	text[strcspn(text, "\r\n")] = '\0';
	if (wrong == NULL)
		password = heap_copy(text);
	else
		error_set(error, EXIT_CONFIG, "%s: %s", path, wrong);
	explicit_bzero(text, sizeof(text));
	if (fd >= 0)
		close(fd);
	return password;
}

/* --- who gets it ---------------------------------------------------------- */

void logins_spare(struct settings *settings, const char *where)
{
	if (settings->spare == NULL)
		settings->spare = where;
}

/* Whether the environment has named these, or whoever has the environment. */
static bool is_environment(const char *where)
{
	return strcmp(where, "-S") == 0 || strncmp(where, "REDLOCK_", 8) == 0;
}

static void explain_spare(struct buffer *text, const struct settings *settings)
{
	buffer_print(text,
		     "the password of %s was not used: it is for the servers "
		     "%s, and this is ",
		     settings->spare,
		     is_environment(settings->spare)
			     ? "of -S and REDLOCK_SERVERS"
			     : "that are named there");
	if (settings->named != NULL)
		buffer_print(text, "one of %s", settings->named);
	else
		buffer_print(text, "the default one");
}

/* Where one may be set. */
static void explain_place(struct buffer *text, const struct settings *settings)
{
	if (settings->named == NULL)
		buffer_print(text, "name it by -S, and set REDLOCK_PASSWORD");
	else if (is_environment(settings->named))
		buffer_print(text, "see the server's ACL, and %s",
			     settings->password_from != NULL
				     ? settings->password_from
				     : "REDLOCK_PASSWORD");
	else
		buffer_print(text,
			     "see the server's ACL, and the password in %s",
			     settings->named);
}

/* Where to set the one that a user has to have. */
static void explain_lack(struct buffer *text, const struct settings *settings)
{
	if (settings->named != NULL && !is_environment(settings->named))
		buffer_print(text, "set password in %s", settings->named);
	else
		buffer_print(text, "set REDLOCK_PASSWORD");
}

/* Whoever is on the way can read what it is sent. */
static bool is_plain(const struct url *url)
{
	return !url->tls && url->kind != URL_UNIX && url->kind != URL_LOCAL;
}

bool logins_are_only_tls(const char *servers)
{
	char *copy = heap_copy(servers), *rest = copy, *text;
	bool tls = false, plain = false;
	struct error error;
	struct url url;

	while ((text = url_separate(&rest)) != NULL) {
		if (url_parse(&url, text, &error) < 0)
			continue;
		tls |= url.tls;
		plain |= is_plain(&url);
		url_release(&url);
	}
	explicit_bzero(copy, strlen(servers));
	free(copy);
	return tls && !plain;
}

static void hand_out(const struct settings *settings, struct url *url)
{
	struct buffer advice = {0};

	if (url->password != NULL) {
		buffer_print(
			&advice,
			"see the server's ACL, and the password in its URL");
	} else if (settings->password == NULL) {
		if (settings->spare != NULL)
			explain_spare(&advice, settings);
		else if (url->user != NULL || settings->named != NULL)
			explain_lack(&advice, settings);
		else
			explain_place(&advice, settings);
	} else if (settings->only_tls && is_plain(url)) {
		buffer_print(&advice,
			     "the password of the environment was not used: "
			     "REDLOCK_SERVERS names rediss:// only, and this "
			     "one is not encrypted");
	} else {
		url->password = heap_copy(settings->password);
		explain_place(&advice, settings);
	}
	url->advice = advice.data;
}

int logins_hand_out(struct settings *settings, struct error *error)
{
	for (size_t i = 0; i < settings->server_count; i++) {
		struct url *url = &settings->servers[i];

		if (url->kind == URL_LOCAL)
			continue;
		hand_out(settings, url);
		if (url->user == NULL || url->password != NULL)
			continue;
		error_set(error, EXIT_CONFIG,
			  "server '%s': a user without a password: %s (before "
			  "a password alone put ':')",
			  url->name, url->advice);
		return -1;
	}
	return 0;
}
