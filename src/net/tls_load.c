#include "net/tls_load.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#ifndef BINDIR
#define BINDIR "/usr/local/bin"
#endif

static const struct tls_module *loaded;

const struct tls_module *tls_module(void)
{
	return loaded;
}

/* Where the program is. One with more rights than its caller may have been
 * linked to anywhere by him, and has to be where it was installed. */
static void find_program(char directory[PATH_MAX])
{
	ssize_t length = -1;
	char *name = NULL;

	if (!getauxval(AT_SECURE))
		length = readlink("/proc/self/exe", directory, PATH_MAX - 1);
	if (length > 0) {
		directory[length] = '\0';
		name = strrchr(directory, '/');
	}
	if (name != NULL)
		*name = '\0';
	else
		snprintf(directory, PATH_MAX, "%s", BINDIR);
}

static int open_module(const char *path, struct error *error)
{
	void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const struct tls_module *found =
		module != NULL ? dlsym(module, TLS_SYMBOL) : NULL;

	if (found == NULL) {
		error_set(error, EXIT_CONFIG, "rediss:// needs %s: %s", path,
			  dlerror());
		return -1;
	}
	if (strcmp(found->version, TLS_VERSION) != 0) {
		error_set(error, EXIT_CONFIG,
			  "%s is of redlock %s, and this is %s: install them "
			  "together",
			  path, found->version, TLS_VERSION);
		return -1;
	}
	loaded = found;
	return 0;
}

static int find_module(struct error *error)
{
	static const char *const places[] = {"", "/../lib/redlock"};
	char directory[PATH_MAX], path[PATH_MAX + 64];

	find_program(directory);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s%s/redlock-tls.so", directory,
			 places[i]);
		if (access(path, F_OK) == 0)
			return open_module(path, error);
	}
	error_set(error, EXIT_CONFIG,
		  "rediss:// needs redlock-tls.so, which is neither in %s nor "
		  "in %s%s: install redlock whole",
		  directory, directory, places[1]);
	return -1;
}

int tls_load(const struct tls_settings *settings, struct error *error)
{
	char text[512];

	if (find_module(error) < 0)
		return -1;
	if (loaded->start(settings, text, sizeof(text)) == 0)
		return 0;
	error_set(error, EXIT_CONFIG, "%s", text);
	return -1;
}
