#include "tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENVIRONMENT_LONGEST ((size_t)4 << 20)
#define LOOKS_APART 20 /* times as long as one takes */
#define PAUSE 20       /* ms, until they are watched again */

struct process {
	pid_t pid, parent, group;
	unsigned long long started; /* tells it from a later one of its pid */
	bool alive, ours;
};

struct processes {
	struct process *list;
	size_t count, size;
};

/* Whether token is in the process's environment. */
static bool carries(pid_t pid, const char *token)
{
	char path[32], chunk[8192];
	size_t length = strlen(token), kept = 0, total = 0;
	bool found = false;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%ld/environ", (long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (!found && total < ENVIRONMENT_LONGEST &&
	       (got = read(fd, chunk + kept, sizeof(chunk) - kept)) > 0) {
		size_t size = kept + (size_t)got;

		found = memmem(chunk, size, token, length) != NULL;
		kept = size < length ? size : length;
		memmove(chunk, chunk + size - kept, kept);
		total += (size_t)got;
	}
	close(fd);
	return found;
}

/* "PID (NAME) STATE PPID PGRP ... STARTTIME ..." (the 22nd); a NAME may hold
 * anything, also ") ". */
static bool read_process(struct process *process, pid_t pid)
{
	char path[32], text[512];
	unsigned long long started;
	long parent, group;
	const char *end;
	ssize_t size;
	int fd, found;
	char state;

	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	size = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (size <= 0)
		return false;
	text[size] = '\0';
	end = strrchr(text, ')');
	if (end == NULL)
		return false;
	/* NOLINTNEXTLINE(cert-err34-c): the kernel wrote these numbers */
	found = sscanf(end + 1,
		       " %c %ld %ld %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u "
		       "%*d %*d %*d %*d %*d %*d %llu",
		       &state, &parent, &group, &started);
	if (found != 4)
		return false;
	*process = (struct process){
		.pid = pid,
		.parent = (pid_t)parent,
		.group = (pid_t)group,
		.started = started,
		.alive = state != 'Z' && state != 'X',
	};
	return true;
}

/* False where that was not done by then. */
static bool read_all(struct processes *all, struct deadline until)
{
	DIR *directory = opendir("/proc");
	struct dirent *entry = NULL;

	while (directory != NULL && (entry = readdir(directory)) != NULL &&
	       !deadline_passed(until)) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid <= 0 || pid == getpid())
			continue;
		if (all->count == all->size) {
			size_t size = all->size * 2 + 256;
			struct process *grown =
				reallocarray(all->list, size, sizeof(*grown));

			if (grown == NULL)
				break;
			all->list = grown;
			all->size = size;
		}
		all->count += read_process(&all->list[all->count], pid);
	}
	if (directory != NULL)
		closedir(directory);
	return entry == NULL;
}

static bool is_known(const struct tree *tree, const struct process *process)
{
	for (size_t i = 0; i < tree->known_count; i++)
		if (tree->known[i].pid == process->pid &&
		    tree->known[i].started == process->started)
			return true;
	return false;
}

static bool is_root(const struct tree *tree, const struct process *process,
		    pid_t shared)
{
	if (process->pid == tree->command || is_known(tree, process))
		return true;
	if (tree->group != 0)
		return process->group == tree->group;
	return process->group == shared && carries(process->pid, tree->token);
}

/* Whether process belongs to one that is known to be ours: its child, or a
 * member of the group that it leads. */
static bool is_kin(const struct processes *all, const struct process *process)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->list[i].ours && (all->list[i].pid == process->parent ||
					  all->list[i].pid == process->group))
			return true;
	return false;
}

static void find_ours(const struct tree *tree, struct processes *all)
{
	pid_t shared = tree->group != 0 ? 0 : getpgid(tree->command);
	bool more = true;

	for (size_t i = 0; i < all->count; i++)
		all->list[i].ours = is_root(tree, &all->list[i], shared);
	while (more) {
		more = false;
		for (size_t i = 0; i < all->count; i++) {
			struct process *process = &all->list[i];

			if (process->ours || !is_kin(all, process))
				continue;
			process->ours = true;
			more = true;
		}
	}
}

/* Keeps of all processes those that are ours and alive. */
static void remember(struct tree *tree, struct processes *all)
{
	size_t count = 0;

	for (size_t i = 0; i < all->count; i++)
		if (all->list[i].ours && all->list[i].alive)
			all->list[count++] = all->list[i];
	free(tree->known);
	tree->known = all->list;
	tree->known_count = count;
}

void tree_look(struct tree *tree, struct deadline until)
{
	struct processes all = {0};
	int64_t began = clock_ms();

	if (!read_all(&all, until)) {
		free(all.list);
		return;
	}
	find_ours(tree, &all);
	remember(tree, &all);
	tree->cost = clock_ms() - began;
	tree->looked = began;
}

/* Forgets who has ended; who has not is sent number. */
static void signal_known(struct tree *tree, int number)
{
	size_t count = 0;

	for (size_t i = 0; i < tree->known_count; i++) {
		struct process now;

		if (!read_process(&now, tree->known[i].pid) || !now.alive ||
		    now.started != tree->known[i].started)
			continue;
		tree->known[count++] = now;
		kill(now.pid, number);
	}
	tree->known_count = count;
}

static void signal_group(struct tree *tree, int number)
{
	if (tree->group != 0)
		kill(-tree->group, number);
	else
		signal_known(tree, number);
}

void tree_signal(struct tree *tree, int number)
{
	signal_group(tree, number);
	signal_group(tree, SIGCONT);
}

static void hit(struct tree *tree, int number)
{
	signal_group(tree, number);
	signal_known(tree, number);
}

/* When they are stopped; in time, so that there is some for a look. */
static struct deadline freeze_at(const struct tree *tree, struct deadline kill)
{
	return deadline_at(kill.at - (tree->in_time ? 2 * tree->cost : 0));
}

void tree_watch(struct tree *tree, struct deadline kill)
{
	bool due = deadline_passed(freeze_at(tree, kill));

	hit(tree, due ? SIGSTOP : 0);
	if (tree->known_count == 0 || due != tree->killing ||
	    clock_ms() - tree->looked >= LOOKS_APART * tree->cost)
		tree_look(tree, tree->in_time && tree->known_count > 0
					? kill
					: deadline_never());
	tree->killing = due;
	if (due)
		hit(tree, SIGKILL);
}

struct deadline tree_next(const struct tree *tree, struct deadline kill)
{
	struct deadline soon = deadline_in(PAUSE);

	return tree->killing ? soon
			     : deadline_earlier(soon, freeze_at(tree, kill));
}

void tree_release(struct tree *tree)
{
	free(tree->known);
	tree->known = NULL;
	tree->known_count = 0;
}
