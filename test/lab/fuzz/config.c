/*
 * Configuration files: any text is read to its end or refused with where and
 * why, the same each time, and what is read is within its bounds. Where the
 * first line is a comment, it names the set. Built with -fsanitize=fuzzer.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "settings/settings.h"
#include "settings/sources.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* a program's, that is named as every file is */
static int descriptor;
static char path[32];
static char *nothing[] = {NULL}; /* in the environment */

static void put(const uint8_t *data, size_t size)
{
	if (descriptor == 0) {
		environ = nothing;
		descriptor = memfd_create("redlock.conf", MFD_CLOEXEC);
		fchmod(descriptor, 0600);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", descriptor);
	}
	if (ftruncate(descriptor, 0) < 0 ||
	    pwrite(descriptor, data, size, 0) != (ssize_t)size)
		abort();
}

static bool is_empty(const char *text)
{
	return text != NULL && *text == '\0';
}

static void check_settings(const struct settings *settings)
{
	if (settings->server_count > SERVERS_MAX ||
	    (settings->ttl != UNSET && settings->ttl <= 0) ||
	    (settings->server_timeout != UNSET &&
	     settings->server_timeout <= 0) ||
	    is_empty(settings->secrets[SECRET_OF_SERVERS].text) ||
	    is_empty(settings->secrets[SECRET_OF_SENTINELS].text) ||
	    (settings->nonblock && settings->wait != UNSET) ||
	    (settings->nonblock && settings->poll) || settings->shared ||
	    settings->reentrant || settings->quiet || settings->help ||
	    settings->yes || settings->status_fd != -1 ||
	    settings->conflict_code != EXIT_BUSY)
		abort();
}

static int read_as(unsigned id, const char *set, struct error *error)
{
	const struct command command = {.id = id, .name = "command"};
	struct settings settings;
	int result;

	settings_init(&settings);
	settings.config = path;
	settings.set = set;
	result = sources_read(&settings, &command, error);
	if (result == 0)
		check_settings(&settings);
	else if (error->code != EXIT_CONFIG || error->text[0] == '\0')
		abort();
	settings_release(&settings);
	return result;
}

static void read_set(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, '\n', size);
	struct error error;
	char *set = NULL;

	if (size > 1 && data[0] == '#' && end != NULL)
		set = strndup((const char *)data + 1, (size_t)(end - data) - 1);
	read_as(COMMAND_WAIT, set != NULL ? set : "a", &error);
	free(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error first, again;
	int result;

	put(data, size);
	result = read_as(COMMAND_RUN, NULL, &first);
	if (result < 0 && strncmp(first.text, path, strlen(path)) != 0)
		abort();
	/* a file is right or wrong, whatever the command */
	if (read_as(COMMAND_LIST, NULL, &again) != result ||
	    (result < 0 && strcmp(first.text, again.text) != 0))
		abort();
	read_set(data, size);
	return 0;
}
