#include "environment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "heap.h"
#include "options.h"

#define PASSWORD_LONGEST 4096

/* In front of what is wrong with a variable, its name. */
static int blame_variable(struct error *error, const char *name)
{
	char text[sizeof(error->text)];

	memcpy(text, error->text, sizeof(text));
	error_set(error, EXIT_CONFIG, "%s: %s", name, text);
	return -1;
}

static int servers_from_environment(struct settings *settings,
				    struct error *error)
{
	const char *list = getenv("REDLOCK_SERVERS");
	char *copy;
	int result;

	if (settings->server_count > 0 || list == NULL || *list == '\0')
		return 0;
	copy = heap_copy(list);
	result = config_add_servers(settings, copy, error);
	free(copy);
	return result < 0 ? blame_variable(error, "REDLOCK_SERVERS") : 0;
}

/* The first line of a file that only we can read; NULL with *error. */
static char *read_password(const char *path, struct error *error)
{
	char text[PASSWORD_LONGEST + 1];
	char *password = NULL;
	struct stat found;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t size = -1;

	if (fd >= 0 && fstat(fd, &found) == 0)
		size = read(fd, text, sizeof(text) - 1);
	if (size < 0) {
		error_set(error, EXIT_CONFIG, "REDLOCK_PASSWORD_FILE: %s: %s",
			  path, strerror(errno));
	} else if (S_ISREG(found.st_mode) && (found.st_mode & 0077) != 0) {
		error_set(error, EXIT_CONFIG,
			  "REDLOCK_PASSWORD_FILE: %s: "
			  "others can read or change it: chmod 600",
			  path);
	} else {
		text[size] = '\0';
		text[strcspn(text, "\r\n")] = '\0';
		if (text[0] != '\0')
			password = heap_copy(text);
		else
			error_set(error, EXIT_CONFIG,
				  "REDLOCK_PASSWORD_FILE:"
				  " %s: its first line is empty",
				  path);
	}
	explicit_bzero(text, sizeof(text));
	if (fd >= 0)
		close(fd);
	return password;
}

static int password_from_environment(struct settings *settings,
				     struct error *error)
{
	const char *path = getenv("REDLOCK_PASSWORD_FILE");
	const char *given = getenv("REDLOCK_PASSWORD");

	if (settings->password != NULL)
		return 0;
	if (given != NULL && *given != '\0')
		return config_set_password(settings, given, error);
	if (path == NULL || *path == '\0')
		return 0;
	settings->password = read_password(path, error);
	return settings->password == NULL ? -1 : 0;
}

static void tls_from_environment(struct settings *settings)
{
	static const struct {
		const char *variable, *option;
	} pairs[] = {
		{"REDLOCK_CACERT", "cacert"},
		{"REDLOCK_CERT", "cert"},
		{"REDLOCK_KEY_FILE", "key-file"},
		{"REDLOCK_SNI", "sni"},
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		const struct option *option = options_find(
			pairs[i].option, strlen(pairs[i].option), ~0U);
		char *value = getenv(pairs[i].variable);
		bool overruled = settings->tls.insecure &&
				 strcmp(option->name, "cacert") == 0;

		if (value != NULL && *value != '\0' && !overruled &&
		    !(settings->given & options_bit(option)))
			options_set(settings, option, value);
	}
}

int environment_read(struct settings *settings, struct error *error)
{
	tls_from_environment(settings);
	return servers_from_environment(settings, error) < 0 ||
			       password_from_environment(settings, error) < 0
		       ? -1
		       : 0;
}
