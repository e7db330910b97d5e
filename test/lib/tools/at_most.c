/*
 * at_most: a builtin of bash, for what tests do most often:
 *
 *	at_most SECONDS OUT ERR COMMAND [ARGUMENT ...]
 *
 * runs COMMAND as `timeout -k 1 SECONDS COMMAND ... </dev/null >OUT 2>ERR` does, and has
 * its status; but bash is not copied, and no program is started besides.
 */
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <config.h>

#include <builtins.h>
#include <shell.h>

#include <common.h>
#include <quit.h>

extern char *search_for_command(const char *name, int flags); /* findcmd.h */

#define KILL_AFTER 1000 /* ms, after SIGTERM */

static int start(pid_t *pid, const char *out, const char *err, const char *path,
		 char **words)
{
	static const int flags = O_WRONLY | O_CREAT | O_TRUNC;
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t all, none;
	int error;

	sigfillset(&all);
	sigemptyset(&none);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, 1, out, flags, 0666);
	posix_spawn_file_actions_addopen(&files, 2, err, flags, 0666);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF |
						      POSIX_SPAWN_SETSIGMASK |
						      POSIX_SPAWN_SETPGROUP);
	maybe_make_export_env();
	error = posix_spawn(pid, path, &files, &attributes, words, export_env);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	return error;
}

/* Until it ends: 1, or 0 if it has not. Somebody who wants us to end ends it. */
static int ends_within(int process, int ms)
{
	struct pollfd end = {.fd = process, .events = POLLIN};
	int ended;

	do
		ended = poll(&end, 1, ms);
	while (ended < 0 && errno == EINTR && !interrupt_state &&
	       !terminating_signal);
	return ended > 0;
}

/* As bash and timeout(1) tell it. */
static int wait_for(pid_t pid, int ms)
{
	int process = (int)syscall(SYS_pidfd_open, pid, 0);
	int late = !ends_within(process, ms), status;

	if (late) {
		kill(-pid, SIGTERM);
		kill(-pid, SIGCONT);
		if (!ends_within(process, KILL_AFTER))
			kill(-pid, SIGKILL);
	}
	close(process);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (late)
		return 124;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int at_most_builtin(WORD_LIST *list)
{
	const char *out, *err;
	char **words, *path;
	int count = 0, seconds, error;
	sigset_t child, before;
	pid_t pid;

	if (list_length(list) < 4) {
		builtin_usage();
		return EX_USAGE;
	}
	seconds = atoi(list->word->word);
	out = list->next->word->word;
	err = list->next->next->word->word;
	list = list->next->next->next;
	words = xmalloc(sizeof(*words) * (size_t)(list_length(list) + 1));
	for (; list != NULL; list = list->next)
		words[count++] = list->word->word;
	words[count] = NULL;
	path = search_for_command(words[0], 0);

	/* or bash would take its status */
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &before);
	error = path != NULL ? start(&pid, out, err, path, words) : ENOENT;
	if (error == 0)
		error = wait_for(pid, seconds * 1000);
	else {
		builtin_error("%s: %s", words[0], strerror(error));
		error = 127;
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	free(path);
	free(words);
	QUIT;
	return error;
}

static char *at_most_doc[] = {"A command for some seconds.", NULL};

struct builtin at_most_struct = {
	.name = "at_most",
	.function = at_most_builtin,
	.flags = BUILTIN_ENABLED,
	.long_doc = at_most_doc,
	.short_doc = "at_most SECONDS OUT ERR COMMAND [ARGUMENT ...]",
};
