#include "run/tree.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/number.h"
#include "base/signals.h"
#include "run/process.h"

#define LOOKS_APART 20 /* times as long as one takes */
#define PAUSE 20       /* ms, until they are watched again */
#define FREEZE 10      /* ms, for looks at what is new */
#define QUIET 3        /* of these in a row that find nobody, nor miss any */
#define IN_VAIN 20     /* of these in a row that find none of ours */
#define UNSURE 10      /* times as many, while somebody is undecided */
#define DYING 100      /* ms, if it cannot be seen that they are dead */
#define NAMED_MOST 8

struct processes {
	struct process *list; /* by pid */
	size_t count, size;
	bool news;    /* the last look found some of ours, or some had gone */
	bool found;   /* it found some of ours */
	bool unsure;  /* of some it could not be told yet */
	int64_t cost; /* ms, to list them */
};

/* A moment as /proc tells when a process has started. */
static unsigned long long ticks(int64_t ms)
{
	return (unsigned long long)ms *
	       (unsigned long long)sysconf(_SC_CLK_TCK) / 1000;
}

/* --- COMMAND and its group ----------------------------------------------- */

static bool is_command(const struct tree *tree, const struct process *process)
{
	return process->pid == tree->command &&
	       process->started <= ticks(tree->since);
}

struct tree tree_of(pid_t command, pid_t group, pid_t session, int64_t since,
		    const char *badge)
{
	struct tree tree = {
		.command = command,
		.group = group,
		.session = session,
		.since = since,
		.badge = badge,
		.shared = group == 0 ? getpgid(command) : -1,
		.pidfd = process_pidfd(command),
	};

	tree.gone = tree.pidfd < 0 && errno == ESRCH;
	return tree;
}

/* Before the first use, not at each start of a guard: if the pidfd was opened late,
 * it may be another process's. */
static void check_command(struct tree *tree)
{
	struct process now;

	if (tree->checked)
		return;
	tree->checked = true;
	if (tree->pidfd < 0 || !process_proc_is_ours() ||
	    !process_read(&now, tree->command) || is_command(tree, &now))
		return;
	close(tree->pidfd);
	tree->pidfd = -1;
	tree->gone = true;
}

/* Before anybody is looked for, or hit. */
static void begin(struct tree *tree)
{
	check_command(tree);
	if (tree->begun == 0)
		tree->begun = clock_ms();
}

static bool exists(pid_t target)
{
	return kill(target, 0) == 0 || errno != ESRCH;
}

/* Not reaped: its pid is nobody else's. */
static bool command_is_there(const struct tree *tree)
{
	struct process now;

	if (tree->gone)
		return false;
	if (tree->pidfd >= 0)
		return process_send(tree->pidfd, 0) == 0 || errno != ESRCH;
	if (tree->blind)
		return exists(tree->command);
	return process_read(&now, tree->command) && is_command(tree, &now);
}

static bool command_runs(const struct tree *tree)
{
	struct pollfd polled = {.fd = tree->pidfd, .events = POLLIN};

	if (tree->pidfd >= 0)
		return poll(&polled, 1, 0) == 0;
	return tree->blind && command_is_there(tree);
}

static bool command_is_in_group(const struct tree *tree)
{
	return command_is_there(tree) && getpgid(tree->command) == tree->group;
}

/* Before the group's number is used: forgets it if another group may have it. */
static void check_group(struct tree *tree)
{
	if (tree->group == 0 || command_is_in_group(tree))
		return;
	if (!exists(-tree->group) ||
	    (exists(tree->group) &&
	     !(tree->group == tree->command && command_is_there(tree))))
		tree->group = 0;
}

/* --- a look at all ------------------------------------------------------- */

static int by_pid(const void *a, const void *b)
{
	const struct process *first = a, *second = b;

	return (first->pid > second->pid) - (first->pid < second->pid);
}

static struct process *find(struct process *list, size_t count, pid_t pid)
{
	struct process key = {.pid = pid};

	return count == 0 ? NULL
			  : bsearch(&key, list, count, sizeof(key), by_pid);
}

static bool is_known(const struct tree *tree, const struct process *process)
{
	const struct process *known =
		find(tree->known, tree->known_count, process->pid);

	return known != NULL && known->started == process->started;
}

/* Whether pid carries our badge; for process, which is undecided if that cannot be told
 * yet. */
static bool carries(const struct tree *tree, pid_t pid, struct process *process)
{
	bool unsure;
	bool result = process_carries(pid, tree->badge, &unsure);

	if (unsure && process->alive && !process->kernel)
		process->undecided = true;
	return result;
}

static bool is_in_group(const struct tree *tree, struct process *process)
{
	if (tree->group != 0)
		return process->group == tree->group &&
		       process->session == tree->session;
	return tree->shared >= 0 && process->group == tree->shared &&
	       carries(tree, process->pid, process);
}

/* It has begun since they were first looked for. A process has its start time, in
 * ticks, before it can be seen: so there is one tick more. */
static bool is_new(const struct tree *tree, const struct process *process)
{
	return process->started + 1 >= ticks(tree->begun);
}

/* It has lost its parent, which was one of ours: a daemon's child has a daemon for a
 * parent. */
static bool is_orphan(const struct tree *tree, struct process *process)
{
	return is_new(tree, process) && carries(tree, process->pid, process) &&
	       !carries(tree, process->parent, process) && !process->undecided;
}

static bool is_root(const struct tree *tree, struct process *process)
{
	return is_command(tree, process) || is_known(tree, process) ||
	       is_in_group(tree, process) || is_orphan(tree, process);
}

/* Its parent, or the leader of its group or session, is ours: one of the first
 * count of list. */
static bool is_kin(struct process *list, size_t count,
		   const struct process *process)
{
	const pid_t kin[] = {process->parent, process->group, process->session};

	for (size_t i = 0; i < sizeof(kin) / sizeof(kin[0]); i++) {
		const struct process *found = find(list, count, kin[i]);

		if (found != NULL && found->ours)
			return true;
	}
	return false;
}

static bool make_room(struct processes *all)
{
	size_t size = all->size * 2 + 256;
	struct process *grown;

	if (all->count < all->size)
		return true;
	grown = reallocarray(all->list, size, sizeof(*grown));
	if (grown == NULL)
		return false;
	all->list = grown;
	all->size = size;
	return true;
}

/* Adds to all, by pid alone, those that are not among its first old. */
static bool list_new(struct processes *all, size_t old)
{
	DIR *directory = opendir("/proc");
	struct dirent *entry = NULL;
	pid_t self = getpid();

	if (directory == NULL)
		return false;
	while ((entry = readdir(directory)) != NULL) {
		int64_t pid;

		if (number_parse(entry->d_name, 1, INT32_MAX, &pid) < 0 ||
		    pid == self || find(all->list, old, (pid_t)pid))
			continue;
		if (!make_room(all))
			break;
		all->list[all->count++] = (struct process){.pid = (pid_t)pid};
	}
	closedir(directory);
	return entry == NULL;
}

static void note_ours(const struct tree *tree, struct processes *all,
		      const struct process *process, bool stop)
{
	if (!process->ours || !process->alive)
		return;
	all->news = all->found = true;
	if (stop && !is_known(tree, process)) /* they have been stopped */
		process_signal(process, SIGSTOP);
}

/* What is undecided, or new and not ours, is to be read again: it may have lost its parent
 * since. */
static void forget_new(const struct tree *tree, struct processes *all)
{
	size_t count = 0;

	for (size_t i = 0; i < all->count; i++)
		if (all->list[i].ours ||
		    (!all->list[i].undecided && !is_new(tree, &all->list[i])))
			all->list[count++] = all->list[i];
	all->count = count;
}

/* The first old of all's are those of earlier looks. */
static void read_new(const struct tree *tree, struct processes *all, size_t old,
		     struct process *process, bool stop)
{
	if (!process_read(process, process->pid)) {
		all->news = true;
		return;
	}
	process->ours =
		is_root(tree, process) || is_kin(all->list, old, process);
	all->unsure |= process->undecided;
	note_ours(tree, all, process, stop);
}

/* Marks the kin of those that are marked, also if it was read before them. */
static void find_kin(const struct tree *tree, struct processes *all, bool stop)
{
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < all->count; i++) {
			struct process *process = &all->list[i];

			if (process->ours ||
			    !is_kin(all->list, all->count, process))
				continue;
			process->ours = more = true;
			note_ours(tree, all, process, stop);
		}
	}
}

/* Adds those to all that are not in it, and stops them if they are ours. The
 * youngest first: they may not live long. False if that could not be done, or not
 * before until. */
static bool look(const struct tree *tree, struct processes *all,
		 struct deadline until, bool stop)
{
	int64_t began = clock_ms();
	size_t old, i;
	bool listed;

	forget_new(tree, all);
	old = all->count;
	listed = list_new(all, old);
	all->news = all->found = all->unsure = false;
	all->cost = clock_ms() - began;
	if (!listed)
		return false;
	for (i = all->count; i > old && !deadline_passed(until); i--)
		read_new(tree, all, old, &all->list[i - 1], stop);
	if (all->count > 1)
		qsort(all->list, all->count, sizeof(*all->list), by_pid);
	find_kin(tree, all, stop);
	return i == old;
}

/* What the group's members, also the dead ones, say about it: it is not COMMAND's,
 * or it has members that are not shown. */
static void judge_group(struct tree *tree, const struct processes *all)
{
	size_t ours = 0, others = 0;

	check_group(tree);
	tree->hidden = false;
	if (tree->group == 0)
		return;
	for (size_t i = 0; i < all->count; i++) {
		if (all->list[i].group != tree->group)
			continue;
		if (all->list[i].session == tree->session)
			ours++;
		else
			others++;
	}
	if (others > 0 && ours == 0 && !command_is_in_group(tree))
		tree->group = 0;
	else
		tree->hidden = ours == 0 && exists(-tree->group);
}

/* Keeps of all processes those that are ours and alive. */
static void remember(struct tree *tree, struct processes *all)
{
	size_t count = 0;

	judge_group(tree, all);
	for (size_t i = 0; i < all->count; i++)
		if (all->list[i].ours && all->list[i].alive)
			all->list[count++] = all->list[i];
	free(tree->known);
	tree->known = all->list;
	tree->known_count = count;
}

/* Of a look that was given up, those that it has found. */
static void remember_some(struct tree *tree, struct processes *all)
{
	struct processes known = {.list = tree->known,
				  .count = tree->known_count,
				  .size = tree->known_count};

	for (size_t i = 0; i < all->count; i++)
		if (all->list[i].ours && all->list[i].alive &&
		    find(known.list, tree->known_count, all->list[i].pid) ==
			    NULL &&
		    make_room(&known))
			known.list[known.count++] = all->list[i];
	if (known.count > 1)
		qsort(known.list, known.count, sizeof(*known.list), by_pid);
	tree->known = known.list;
	tree->known_count = known.count;
	free(all->list);
}

/* The first look of a series. */
static bool look_at_all(struct tree *tree, struct processes *all,
			struct deadline until, bool stop)
{
	int64_t began = clock_ms();

	begin(tree);
	check_group(tree);
	tree->blind = !process_proc_is_ours();
	if (tree->blind || !look(tree, all, until, stop))
		return false;
	tree->cost = clock_ms() - began;
	tree->looked = began;
	return true;
}

static bool has_alive(const struct processes *all)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->list[i].ours && all->list[i].alive)
			return true;
	return false;
}

/* There is time for a look at what is new: before until, or a little after began. */
static bool has_time(const struct processes *all, int64_t began,
		     struct deadline until)
{
	int64_t end = began + FREEZE;

	if (until.at != INT64_MAX && until.at > end)
		end = until.at;
	return clock_ms() + 2 * all->cost < end;
}

/* stop: stops them, until looks find nobody new, or it is time to kill. If nobody
 * is found, more looks than one say so. first: for the first look. */
static void search(struct tree *tree, struct deadline first,
		   struct deadline kill, bool stop)
{
	struct processes all = {0};
	int64_t began;
	int quiet = 0;

	tree->sure = false;
	if (!look_at_all(tree, &all, first, stop)) {
		remember_some(tree, &all);
		return;
	}
	began = clock_ms();
	do {
		quiet = all.news || all.unsure ? 0 : quiet + 1;
		tree->in_vain = all.found ? 0 : tree->in_vain + 1;
		tree->sure =
			quiet >= QUIET ||
			tree->in_vain >= (all.unsure ? UNSURE : 1) * IN_VAIN;
	} while (!tree->sure && (stop || !has_alive(&all)) &&
		 has_time(&all, began, kill) &&
		 look(tree, &all, deadline_never(), stop));
	remember(tree, &all);
}

void tree_look(struct tree *tree, struct deadline until)
{
	search(tree, until, deadline_at(0), false);
}

bool tree_lives(struct tree *tree)
{
	check_command(tree);
	if (tree->known_count > 0 || tree->hidden || command_runs(tree))
		return true;
	if (tree->looked != 0 && !tree->blind)
		return false;
	check_group(tree);
	return (tree->pidfd < 0 && command_is_there(tree)) ||
	       (tree->group != 0 && process_group_lives(tree->group));
}

/* --- signals ------------------------------------------------------------- */

/* Sends number to each, and forgets those that have ended. */
static void signal_known(struct tree *tree, int number)
{
	size_t count = 0;

	for (size_t i = 0; i < tree->known_count; i++)
		if (process_signal(&tree->known[i], number))
			tree->known[count++] = tree->known[i];
	tree->known_count = count;
}

/* COMMAND by itself, or with a group that it leads, if it is not in the first. */
static void signal_command(const struct tree *tree, int number)
{
	pid_t group = command_is_there(tree) ? getpgid(tree->command) : -1;

	if (group < 0 || (group == tree->group && tree->group != 0))
		return;
	if (group == tree->command)
		kill(-group, number);
	else if (tree->pidfd >= 0)
		process_send(tree->pidfd, number);
	else
		kill(tree->command, number);
}

static void signal_group(struct tree *tree, int number)
{
	bool shared = tree->shared >= 0;

	check_group(tree);
	if (tree->group != 0)
		kill(-tree->group, number);
	if (shared && !tree->blind && tree->known_count > 0)
		signal_known(tree, number);
	else
		signal_command(tree, number);
}

void tree_signal(struct tree *tree, int number)
{
	begin(tree);
	signal_group(tree, number);
	if (!signals_is_stop(number))
		signal_group(tree, SIGCONT);
}

static void hit(struct tree *tree, int number)
{
	int64_t began = clock_ms();

	signal_group(tree, number);
	signal_known(tree, number);
	tree->effort = clock_ms() - began;
}

/* When they are stopped; in time, so that there is some for looks. */
static struct deadline freeze_at(const struct tree *tree, struct deadline kill)
{
	return deadline_at(kill.at -
			   (tree->in_time
				    ? 2 * tree->cost + 2 * tree->effort + FREEZE
				    : 0));
}

static void stop_and_kill(struct tree *tree, struct deadline kill,
			  bool look_due)
{
	hit(tree, SIGSTOP);
	if (look_due || tree->known_count == 0)
		search(tree,
		       tree->in_time && tree->known_count > 0
			       ? kill
			       : deadline_never(),
		       tree->in_time ? kill : deadline_at(0), true);
	if (tree->killed == 0)
		tree->killed = clock_ms();
	hit(tree, SIGKILL);
}

void tree_watch(struct tree *tree, struct deadline kill)
{
	bool due = deadline_passed(freeze_at(tree, kill));
	bool look_due = (due && tree->killed == 0) ||
			clock_ms() - tree->looked >= LOOKS_APART * tree->cost;

	begin(tree);
	if (due) {
		stop_and_kill(tree, kill, look_due);
		return;
	}
	hit(tree, 0);
	if (look_due || (tree->known_count == 0 && !tree->hidden))
		tree_look(tree, tree->in_time && tree->known_count > 0
					? kill
					: deadline_never());
}

struct deadline tree_next(const struct tree *tree, struct deadline kill)
{
	struct deadline soon = deadline_in(PAUSE);

	return tree->killed != 0
		       ? soon
		       : deadline_earlier(soon, freeze_at(tree, kill));
}

bool tree_is_over(const struct tree *tree)
{
	if (tree->known_count > 0 || command_runs(tree))
		return false;
	if (!tree->blind && !tree->hidden)
		return tree->sure;
	return tree->group == 0 || !exists(-tree->group) ||
	       (tree->killed != 0 && clock_ms() - tree->killed >= DYING);
}

/* --- what is left -------------------------------------------------------- */

bool tree_left(struct tree *tree, struct buffer *text)
{
	size_t named = 0;

	tree_look(tree, deadline_never());
	for (; named < tree->known_count && named < NAMED_MOST; named++)
		process_name(tree->known[named].pid, text);
	if (tree->known_count > named)
		buffer_print(text, " and %zu more", tree->known_count - named);
	if (named == 0 && command_runs(tree)) {
		process_name(tree->command, text);
		named++;
	}
	return named > 0;
}

void tree_release(struct tree *tree)
{
	if (tree->command != 0 && tree->pidfd >= 0)
		close(tree->pidfd);
	free(tree->known);
	*tree = (struct tree){0};
}
