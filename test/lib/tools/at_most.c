/*
 * at_most: a builtin of bash, for what tests do most often:
 *
 *	at_most SECONDS OUT ERR COMMAND [ARGUMENT ...]
 *
 * runs COMMAND as `timeout -k 1 SECONDS COMMAND ... </dev/null >OUT 2>ERR` does, and has
 * its status, or 124 if that took longer; but bash is not copied, and no other program
 * is started.
 */
#include <sys/prctl.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <config.h>

#include <builtins.h>
#include <shell.h>

#include <common.h>
#include <quit.h>

extern char *search_for_command(const char *name, int flags); /* findcmd.h */

#define KILL_AFTER 1000 /* ms, after SIGTERM */

static bool open_as(int fd, const char *path, int flags)
{
	int file = open(path, flags, 0666);

	return file >= 0 && dup2(file, fd) >= 0 && (file == fd || !close(file));
}

/* As a child that shares our memory until it executes something, so all signals are
 * blocked. It dies with us. */
static _Noreturn void become(const char *out, const char *err, const char *path,
			     char *const *words, char *const *variables)
{
	static const int new = O_WRONLY | O_CREAT | O_TRUNC;
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (open_as(0, "/dev/null", O_RDONLY) && open_as(1, out, new) &&
	    open_as(2, err, new)) {
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		execve(path, words, variables);
	}
	_exit(127);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Whether it ends within that time; a signal that is to end bash cuts it short. */
static bool ends_within(pid_t pid, int64_t ms, int *status)
{
	int64_t until = now_ms() + ms, left;
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	while (waitpid(pid, status, WNOHANG) != pid) {
		left = until - now_ms();
		if (left <= 0 || interrupt_state || terminating_signal)
			return false;
		sigtimedwait(
			&child, NULL,
			&(struct timespec){left / 1000, left % 1000 * 1000000});
	}
	return true;
}

/* As bash and timeout(1) tell it. */
static int wait_for(pid_t pid, int64_t ms)
{
	int status;

	if (!ends_within(pid, ms, &status)) {
		kill(-pid, SIGTERM);
		kill(-pid, SIGCONT);
		if (!ends_within(pid, KILL_AFTER, &status)) {
			kill(-pid, SIGKILL);
			waitpid(pid, &status, 0);
		}
		return 124;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int at_most_builtin(WORD_LIST *list)
{
	const char *out, *err;
	char **words, *path;
	int count = 0, seconds, status;
	sigset_t all, child, before, meanwhile;
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
	if (path == NULL) {
		builtin_error("%s: not found", words[0]);
		free(words);
		return 127;
	}

	/* bash is to take the status of its own children, later, and not of this one */
	sigfillset(&all);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	maybe_make_export_env();
	sigprocmask(SIG_BLOCK, &child, &before);
	sigprocmask(SIG_BLOCK, &all, &meanwhile);
	pid = vfork();
	if (pid == 0)
		become(out, err, path, words, export_env);
	sigprocmask(SIG_SETMASK, &meanwhile, NULL);
	status = pid > 0 ? wait_for(pid, seconds * INT64_C(1000)) : 126;
	raise(SIGCHLD); /* that of another child may have been waited for */
	sigprocmask(SIG_SETMASK, &before, NULL);
	free(path);
	free(words);
	QUIT;
	return status;
}

static char *at_most_doc[] = {"A command for some seconds.", NULL};

struct builtin at_most_struct = {
	.name = "at_most",
	.function = at_most_builtin,
	.flags = BUILTIN_ENABLED,
	.long_doc = at_most_doc,
	.short_doc = "at_most SECONDS OUT ERR COMMAND [ARGUMENT ...]",
};
