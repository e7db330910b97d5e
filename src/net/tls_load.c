#include "net/tls_load.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "built.h"

static const struct tls_module *loaded;
static char loaded_from[PATH_MAX + 64];

const struct tls_module *tls_module(void)
{
	return loaded;
}

/* The program's directory. A set-user-ID program may have been hard-linked
 * elsewhere by its caller, so only the install path is trusted. */
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

/* How much of two paths is the same directory. */
static size_t common_length(const char *a, const char *b)
{
	size_t length = 0;

	for (size_t i = 0; a[i] != '\0' && a[i] == b[i]; i++)
		if (a[i] == '/')
			length = i;
	return length;
}

/* MODULEDIR, or, if the whole tree that has BINDIR in it was moved, what that has
 * become: /opt/lib/redlock of a program in /opt/bin, if they were installed in
 * /usr/lib/redlock and /usr/bin. */
static void find_installed(const char *directory, char place[PATH_MAX])
{
	size_t common = common_length(BINDIR, MODULEDIR);
	size_t length = strlen(directory), tail = strlen(BINDIR) - common;
	size_t root = length < tail ? 0 : length - tail;

	if (strcmp(directory + root, &BINDIR[common]) == 0)
		snprintf(place, PATH_MAX, "%.*s%s", (int)root, directory,
			 &MODULEDIR[common]);
	else
		snprintf(place, PATH_MAX, "%s", MODULEDIR);
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
	snprintf(loaded_from, sizeof(loaded_from), "%s", path);
	return 0;
}

static int find_module(struct error *error)
{
	char program[PATH_MAX], installed[PATH_MAX], path[PATH_MAX + 64];
	const char *const places[] = {program, installed};

	find_program(program);
	find_installed(program, installed);
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/redlock-tls.so", places[i]);
		if (access(path, F_OK) == 0)
			return open_module(path, error);
	}
	error_set(error, EXIT_CONFIG,
		  "rediss:// needs redlock-tls.so, which is neither in %s nor "
		  "in %s: install redlock-tls",
		  program, installed);
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

int tls_describe(struct buffer *text, struct error *error)
{
	if (find_module(error) < 0)
		return -1;
	buffer_print(text, "%s, by %s", loaded->library(), loaded_from);
	return 0;
}
