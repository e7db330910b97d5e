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
#include "base/buffer.h"

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

/* Reads up to the end of the first line, or more. A pipe's other end may take its
 * time. Returns the length, or -1 with errno; ETIME: nothing came. */
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
	char text[PASSWORD_LONGEST + 1] = "", shown[URL_QUOTED];
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
		password = xstrdup(text);
	else
		error_set(error, EXIT_CONFIG, "%s: %s",
			  url_is_meant(path) ? url_quote(path, shown) : path,
			  wrong);
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

/* Whether these servers are from the environment or the command line. */
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

/* Where to set the password that a user in a URL needs. */
static void explain_lack(struct buffer *text, const struct settings *settings,
			 enum secret_kind kind)
{
	bool servers = kind == SECRET_OF_SERVERS;

	if (settings->named == NULL || is_environment(settings->named))
		buffer_print(text, servers ? "set REDLOCK_PASSWORD"
					   : "set REDLOCK_SENTINEL_PASSWORD");
	else
		buffer_print(text,
			     servers ? "set password in %s"
				     : "set sentinel-password in %s",
			     settings->named);
}

/* Whether what it is sent can be read on the way. */
static bool is_plain(const struct url *url)
{
	return !url->tls && url->kind != URL_UNIX && url->kind != URL_LOCAL;
}

bool logins_are_only_tls(const char *servers)
{
	char *copy = xstrdup(servers), *rest = copy, *text;
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

/* Nothing but the password of the environment, for -S, is ever withheld. */
static bool is_withheld(const struct settings *settings, const struct url *url,
			const struct secret *secret)
{
	return settings->only_tls && is_plain(url) && secret->text != NULL;
}

static void explain_withheld(struct buffer *text)
{
	buffer_print(text, "the password of the environment was not used: "
			   "REDLOCK_SERVERS names rediss:// only, and this "
			   "one is not encrypted");
}

static void hand_out(const struct settings *settings, struct url *url)
{
	const struct secret *secret = &settings->secrets[SECRET_OF_SERVERS];
	struct buffer advice = {0};

	if (url->password != NULL) {
		buffer_print(
			&advice,
			"see the server's ACL, and the password in its URL");
	} else if (secret->text == NULL) {
		if (settings->spare != NULL)
			explain_spare(&advice, settings);
		else if (url->user != NULL || settings->named != NULL)
			explain_lack(&advice, settings, SECRET_OF_SERVERS);
		else
			buffer_print(&advice, "name it by -S, and set "
					      "REDLOCK_PASSWORD");
	} else if (is_withheld(settings, url, secret)) {
		explain_withheld(&advice);
	} else {
		url->password = xstrdup(secret->text);
		buffer_print(&advice, "see the server's ACL, and %s",
			     secret->from);
	}
	url->advice = advice.data;
}

/* Sentinels without a password of their own are sent the server's. */
static void hand_out_to_seeds(const struct settings *settings, struct url *url)
{
	const struct secret *secret = &settings->secrets[SECRET_OF_SENTINELS];
	bool withheld = is_withheld(settings, url, secret);
	struct buffer advice = {0};

	if (url->seed_password != NULL)
		buffer_print(&advice, "see the Sentinels' ACL, and the login "
				      "after 'sentinel=' in their URL");
	else if (secret->text == NULL)
		explain_lack(&advice, settings, SECRET_OF_SENTINELS);
	else if (withheld)
		explain_withheld(&advice);
	else
		buffer_print(&advice, "see the Sentinels' ACL, and %s",
			     secret->from);
	if (url->seed_password == NULL && !withheld)
		url->seed_password = xstrdup(secret->text);
	url->seed_advice = advice.data;
}

/* A user whose name is known, and for whom there is no password. */
static int refuse_lack(const struct url *url, struct error *error)
{
	bool server = url->user != NULL && url->password == NULL;

	if (!server && (url->seed_user == NULL || url->seed_password != NULL))
		return 0;
	error_set(
		error, EXIT_CONFIG,
		"server '%s': a user without a password: %s (put ':' before a password without a user)",
		url->name, server ? url->advice : url->seed_advice);
	return -1;
}

int logins_hand_out(struct settings *settings, struct error *error)
{
	for (size_t i = 0; i < settings->server_count; i++) {
		struct url *url = &settings->servers[i];

		if (url->kind == URL_LOCAL)
			continue;
		hand_out(settings, url);
		if (url->kind == URL_SENTINEL)
			hand_out_to_seeds(settings, url);
		if (refuse_lack(url, error) < 0)
			return -1;
	}
	return 0;
}
