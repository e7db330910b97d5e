#include "run/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/lease.h"
#include "base/number.h"
#include "base/signals.h"
#include "base/threads.h"
#include "base/title.h"
#include "net/runtime.h"
#include "run/watchdogs.h"

#define LOOK_AGAIN 20    /* ms, whether a process has ended */
#define LOOK_WITHOUT 500 /* ms, the same if the kernel has no pidfd */

/* --- PID ---------------------------------------------------------------- */

static int refuse_pid(struct error *error, pid_t pid, const char *why)
{
	error_set(error, EXIT_USAGE, "--pid %ld: %s", (long)pid, why);
	return -1;
}

static bool is_signalled(const struct keeper *keeper)
{
	return keeper->signal != 0 || keeper->max_hold > 0;
}

static bool may_signal(const struct keeper *keeper)
{
	return kill(keeper->process.pid, 0) == 0 || errno != EPERM;
}

/* Where the note is to be. */
static int check_directory(pid_t pid, struct error *error)
{
	char directory[URL_PATH_SIZE];

	if (runtime_directory(directory, error) == 0)
		return 0;
	error_prepend(error, "--pid %ld: ", (long)pid);
	return -1;
}

int keeper_follow(struct keeper *keeper, pid_t pid, struct error *error)
{
	bool shown;

	/* a shell may exec the last command of $() */
	if (pid == getpid())
		return refuse_pid(
			error, pid,
			"it is redlock acquire itself, which ends at once: take "
			"the number before the $(): pid=$BASHPID; "
			"token=$(redlock acquire --pid \"$pid\" ...)");
	keeper->pidfd = process_pidfd(pid);
	shown = process_proc_is_ours() && process_read(&keeper->process, pid);
	if (!shown && process_exists(pid))
		return refuse_pid(error, pid, "/proc does not show it");
	if (keeper->process.pid == 0 || !keeper->process.alive)
		return refuse_pid(error, pid, "there is no such process");
	/* its end would give the lock back while its process lives */
	if (process_is_thread(pid))
		return refuse_pid(error, pid,
				  "it is a thread, and not a process");
	/* such as 3, if -P was meant */
	if (keeper->process.kernel)
		return refuse_pid(error, pid,
				  "it is a thread of the kernel, which does "
				  "not end");
	/* the first process of a namespace gets no SIGKILL from within, and its
	 * group, -1, would be all processes */
	if (pid == 1 && (keeper->kill || keeper->max_hold > 0))
		return refuse_pid(error, pid,
				  "the first process of a container, or of a "
				  "machine, cannot be stopped from within: use "
				  "redlock run, or --on-lost warn without "
				  "--max-hold");
	if (is_signalled(keeper) && !may_signal(keeper))
		return refuse_pid(error, pid,
				  "it is another user's, and could not be "
				  "stopped: use --on-lost warn without "
				  "--max-hold");
	keeper->group = keeper->group && keeper->process.group == pid;
	return check_directory(pid, error);
}

bool keeper_is_over(const struct keeper *keeper)
{
	struct pollfd polled = {.fd = keeper->pidfd, .events = POLLIN};
	struct process now;

	if (keeper->pidfd >= 0)
		return poll(&polled, 1, 0) > 0;
	return !process_read(&now, keeper->process.pid) || !now.alive ||
	       now.started != keeper->process.started;
}

void keeper_explain_end(const struct keeper *keeper, struct error *error)
{
	refuse_pid(error, keeper->process.pid,
		   "the process has ended, so no lock is kept for it");
}

/* Readable once a signal has come, or, if that is asked for, PID has ended. -1 with
 * errno. */
static int open_interrupt(const struct keeper *keeper, bool process)
{
	struct epoll_event event = {.events = EPOLLIN};
	int events = epoll_create1(EPOLL_CLOEXEC);

	if (events < 0)
		return -1;
	if (epoll_ctl(events, EPOLL_CTL_ADD, keeper->signals, &event) == 0 &&
	    (keeper->pidfd < 0 || !process ||
	     epoll_ctl(events, EPOLL_CTL_ADD, keeper->pidfd, &event) == 0))
		return events;
	close(events);
	return -1;
}

int keeper_interrupt(const struct keeper *keeper, struct error *error)
{
	int events = open_interrupt(keeper, true);

	if (events < 0)
		error_system(error, "cannot watch the process");
	return events;
}

static void send_one(const struct keeper *keeper, int number)
{
	if (keeper->group)
		kill(-keeper->process.pid, number);
	else if (keeper->pidfd >= 0)
		process_send(keeper->pidfd, number);
	else
		process_signal(&keeper->process, number);
}

/* A stopped process takes no SIGTERM. */
static void send_signal(const struct keeper *keeper, int number)
{
	send_one(keeper, number);
	if (!signals_is_stop(number))
		send_one(keeper, SIGCONT);
}

/* Whether what gets the signals is gone. */
static bool is_gone(const struct keeper *keeper)
{
	return keeper_is_over(keeper) &&
	       (!keeper->group || kill(-keeper->process.pid, 0) < 0 ||
		!process_group_lives(keeper->process.pid));
}

/* --- its own process ---------------------------------------------------- */

/* All that was inherited: redlock's own are close-on-exec from birth. */
static void close_inherited(void)
{
	int null = descriptors_nowhere(O_RDWR);
	struct dirent *entry;
	int64_t fd;
	DIR *all;

	for (int i = STDIN_FILENO; null >= 0 && i <= STDERR_FILENO; i++)
		dup2(null, i);
	all = opendir("/proc/self/fd");
	while (all != NULL && (entry = readdir(all)) != NULL)
		if (number_parse(entry->d_name, STDERR_FILENO + 1, INT32_MAX,
				 &fd) == 0 &&
		    !(fcntl((int)fd, F_GETFD) & FD_CLOEXEC))
			close((int)fd);
	if (all != NULL)
		closedir(all);
	if (null > STDERR_FILENO)
		close(null);
}

static void detach(const struct keeper *keeper, struct lock *const *locks,
		   size_t count)
{
	struct buffer keys = {0};

	setsid();
	/* what has come so far was for the group that our parent is in */
	signals_take(UINT64_MAX);
	/* a script may ignore them, but they are how a keeper is told to end */
	signals_heed(SIGTERM);
	signals_heed(SIGUSR1);
	signals_heed(SIGUSR2);
	(void)!chdir("/");
	close_inherited();
	title_name("redlock-keeper");
	for (size_t i = 0; i < count; i++)
		buffer_print(&keys, "%s%s", i > 0 ? ", " : "",
			     locks[i]->names.key.data);
	title_set("%s for %ld", keys.data, (long)keeper->process.pid);
	buffer_release(&keys);
}

/* The child says over the pipe that it is there, or errno. */
static void report(int fd, int cause)
{
	ssize_t written = write(fd, &cause, sizeof(cause));

	(void)written; /* the parent sees end-of-file */
	close(fd);
}

static int await(int fd)
{
	int cause;
	ssize_t got;

	do
		got = read(fd, &cause, sizeof(cause));
	while (got < 0 && errno == EINTR);
	return got == (ssize_t)sizeof(cause) ? cause : ECHILD;
}

/* The connections are the child's from now on. */
static void leave_connections(struct lock *const *locks, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct quorum *quorum = locks[i]->ballot.quorum;

		for (size_t k = 0; k < quorum->count; k++)
			server_before_fork(&quorum->servers[k]);
	}
}

pid_t keeper_fork(struct keeper *keeper, struct lock *const *locks,
		  size_t count, struct error *error)
{
	int ends[2], failed;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) < 0) {
		error_system(error, "cannot make the keeper");
		return -1;
	}
	leave_connections(locks, count);
	child = fork();
	if (child == 0) {
		bool noted;

		close(ends[0]);
		deadline_after_fork();
		detach(keeper, locks, count);
		/* all that may fail for want of descriptors comes first */
		keeper->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
		noted = keeper->timer >= 0 &&
			note_write(&keeper->notes, keeper->process.pid, locks,
				   count) == 0;
		report(ends[1], noted ? 0 : errno != 0 ? errno : EIO);
		if (!noted)
			_exit(EXIT_SYSTEM);
		return 0;
	}
	failed = child < 0 ? errno : 0;
	close(ends[1]);
	if (child > 0)
		failed = await(ends[0]);
	close(ends[0]);
	if (failed == 0)
		return child;
	errno = failed;
	error_system(error, "cannot make the keeper");
	return -1;
}

void keeper_recall(pid_t child)
{
	kill(child, SIGTERM);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

/* --- keeping ------------------------------------------------------------- */

struct keeping {
	struct keeper *keeper;
	struct lock *const *locks;
	size_t count;
	struct watchdogs watchdogs;
	struct deadline stop;    /* when to send the next signal of max_hold */
	struct deadline refresh; /* the notes */
	bool overdue;
	struct deadline part[LOCKS_MOST]; /* with those that are lost */
	size_t parted;                    /* how many */
};

/* The ends of the other locks that are not lost. */
static int add_watchdogs(const struct keeping *keeping, int events)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct pollfd polled[LOCKS_MOST];

	watchdogs_poll(&keeping->watchdogs, polled);
	for (size_t i = 1; i < keeping->count; i++)
		if (!keeping->keeper->is_lost[i] &&
		    epoll_ctl(events, EPOLL_CTL_ADD, polled[i].fd, &event) < 0)
			return -1;
	return 0;
}

/* Readable once PID has ended, a signal has come, another lock than the first is lost, or
 * `at` has passed. -1 with errno. */
static int open_events(const struct keeping *keeping, struct deadline at)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct itimerspec end = {0};
	const struct keeper *keeper = keeping->keeper;
	/* after --max-hold its group, at which next_look looks, may outlive PID, which would
	 * stay readable */
	bool survived =
		keeping->overdue && keeper->group && keeper_is_over(keeper);
	int timer = keeping->keeper->timer;
	int events = open_interrupt(keeper, !survived);

	if (at.at != INT64_MAX) {
		end.it_value.tv_sec = at.at / 1000;
		end.it_value.tv_nsec = (long)(at.at % 1000 * 1000000);
	}
	if (events < 0)
		return -1;
	/* a time that has passed makes it readable at once */
	if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &end, NULL) == 0 &&
	    epoll_ctl(events, EPOLL_CTL_ADD, timer, &event) == 0 &&
	    add_watchdogs(keeping, events) == 0)
		return events;
	close(events);
	return -1;
}

static struct deadline next_look(const struct keeping *keeping)
{
	struct deadline next = deadline_never();

	if (keeping->overdue && keeping->keeper->group)
		next = deadline_in(LOOK_AGAIN);
	else if (keeping->keeper->pidfd < 0)
		next = deadline_in(LOOK_WITHOUT);
	for (size_t i = 0; i < keeping->count; i++)
		if (keeping->part[i].at < next.at)
			next = keeping->part[i];
	next = deadline_earlier(next, keeping->refresh);
	return deadline_earlier(next, keeping->stop);
}

static void refresh_notes(struct keeping *keeping)
{
	if (!deadline_passed(keeping->refresh))
		return;
	note_refresh(&keeping->keeper->notes);
	keeping->refresh = deadline_in(keeping->locks[0]->wish.ttl);
}

/* The lock is held and renewed until all of it is gone. */
static void heed_max_hold(struct keeping *keeping)
{
	if (!deadline_passed(keeping->stop))
		return;
	if (!keeping->overdue)
		keeping->keeper->tell(keeping->keeper, KEPT_OVERDUE, NULL);
	send_signal(keeping->keeper, keeping->overdue ? SIGKILL : SIGTERM);
	keeping->stop = keeping->overdue
				? deadline_never()
				: deadline_in(keeping->keeper->kill_after);
	keeping->overdue = true;
}

static void send_loss(struct keeper *keeper)
{
	if (keeper->signal != 0 && !keeper->told)
		send_signal(keeper, keeper->signal);
	keeper->told = true;
}

/* A release that comes now is not kept waiting (keeper.h). */
static void heed_release(struct keeper *keeper)
{
	int number;

	if (!signals_have_come(keeper->signals))
		return;
	number = signals_next();
	if (keeper->left || (number != SIGUSR1 && number != SIGUSR2))
		return;
	note_leave(&keeper->notes);
	keeper->left = true;
}

/* False: something was left then. */
static bool await_end(struct keeper *keeper, struct deadline until)
{
	while (!is_gone(keeper)) {
		if (deadline_passed(until))
			return false;
		heed_release(keeper);
		deadline_poll(NULL, 0,
			      deadline_earlier(until, deadline_in(LOOK_AGAIN)));
	}
	return true;
}

/* Before validity of the first lock ends. */
static void stop_in_time(const struct keeping *keeping)
{
	struct keeper *keeper = keeping->keeper;
	struct lease_times times =
		watchdog_plan(keeping->locks[0], keeper->kill_after);

	for (size_t i = 1; i < keeping->count; i++)
		times = lease_times_earlier(
			times,
			watchdog_plan(keeping->locks[i], keeper->kill_after));
	send_loss(keeper);
	if (!keeper->kill)
		return;
	if (await_end(keeper,
		      deadline_earlier(times.kill,
				       deadline_in(keeper->kill_after))))
		return;
	send_signal(keeper, SIGKILL);
	await_end(keeper, times.end);
}

/* False: PID is to be stopped. Or else it has the others. What was broken is still held,
 * until PID ends. */
static bool lose(struct keeping *keeping, const struct error *why)
{
	struct keeper *keeper = keeping->keeper;
	const struct lock *lost = keeper->lost;
	size_t index = watchdogs_part(&keeping->watchdogs, lost);

	keeper->is_lost[index] = true;
	if (keeper->kill)
		return false;
	keeper->tell(keeper, KEPT_LOST, why);
	send_loss(keeper);
	keeping->part[index] =
		lost->broken && keeper->signal != 0
			? watchdog_plan(lost, keeper->kill_after).end
			: deadline_at(0);
	return true;
}

static void part(struct keeping *keeping)
{
	struct keeper *keeper = keeping->keeper;

	for (size_t i = 0; i < keeping->count; i++) {
		if (!deadline_passed(keeping->part[i]))
			continue;
		keeper->part(keeper, i);
		keeper->is_parted[i] = true;
		keeping->part[i] = deadline_never();
		keeping->parted++;
	}
}

/* Renews the first lock meanwhile. */
static void await_event(struct keeping *keeping, int events)
{
	struct pollfd polled = {.fd = events, .events = POLLIN};

	if (keeping->keeper->is_lost[0])
		poll(&polled, 1, -1);
	else
		watchdog_watch(&keeping->watchdogs.first, events);
}

/* False: it is over, and *kept says how. */
static bool keep_on(struct keeping *keeping, enum keeper_result *kept,
		    struct error *why)
{
	struct keeper *keeper = keeping->keeper;
	int events = open_events(keeping, next_look(keeping));
	int number = 0;

	if (events < 0) {
		error_system(why, "cannot watch the process");
		keeper->lost = NULL;
		*kept = KEPT_LOST;
		return false;
	}
	await_event(keeping, events);
	close(events);
	*kept = keeping->overdue ? KEPT_OVERDUE : KEPT_TO_THE_END;
	if (keeping->overdue ? is_gone(keeper) : keeper_is_over(keeper))
		return false;
	if (signals_have_come(keeper->signals))
		number = signals_next();
	/* whoever gives it back may have done so during a long round */
	*kept = number == SIGUSR1 ? KEPT_GIVEN_BACK : KEPT_CALLED_BACK;
	if (number == SIGUSR1 || number == SIGUSR2)
		return false;
	*kept = KEPT_LOST;
	keeper->lost = watchdogs_lost(&keeping->watchdogs, why);
	if (keeper->lost != NULL && !lose(keeping, why))
		return false;
	part(keeping);
	if (keeping->parted == keeping->count)
		return false;
	*kept = KEPT_UNTIL_TOLD;
	if (number != 0)
		return false;
	heed_max_hold(keeping);
	refresh_notes(keeping);
	return true;
}

/* Has the record say who keeps the lock, by a renewal that says so. Whether it succeeds
 * is found out by the next one. */
static void introduce(void *context, size_t i)
{
	const struct keeping *keeping = context;
	struct lock *lock = keeping->locks[i];
	const struct wait wait = {deadline_in(lock->ballot.quorum->timeout),
				  open_interrupt(keeping->keeper, true)};
	struct error ignored;

	lock->wish.keeper = getpid();
	lock_extend(lock, wait, &ignored);
	if (wait.interrupt >= 0)
		close(wait.interrupt);
}

/* The first lock is renewed by this thread. False with *why: no other can be. */
static bool start_watchdogs(struct keeping *keeping, struct error *why)
{
	int cause;

	watchdogs_init(&keeping->watchdogs, keeping->locks, keeping->count,
		       NULL, keeping->keeper->kill_after);
	cause = watchdogs_start(&keeping->watchdogs, 1);
	if (cause == 0)
		return true;
	errno = cause;
	error_system(why, "no thread to renew the locks");
	return false;
}

enum keeper_result keeper_keep(struct keeper *keeper, struct lock *const *locks,
			       size_t count, struct error *why)
{
	struct keeping keeping = {
		.keeper = keeper,
		.locks = locks,
		.count = count,
		.stop = deadline_never(),
		.refresh = deadline_in(locks[0]->wish.ttl),
	};
	enum keeper_result kept = KEPT_LOST;
	int64_t acquired = 0;

	for (size_t i = 0; i < count; i++) {
		keeping.part[i] = deadline_never();
		if (locks[i]->grant.acquired > acquired)
			acquired = locks[i]->grant.acquired;
	}
	if (keeper->max_hold > 0)
		keeping.stop = deadline_at(acquired + keeper->max_hold);
	threads_each(count, introduce, &keeping);
	if (start_watchdogs(&keeping, why))
		while (keep_on(&keeping, &kept, why))
			;
	watchdogs_stop(&keeping.watchdogs);
	if (kept == KEPT_LOST && keeping.parted < count) {
		keeper->tell(keeper, kept, why);
		stop_in_time(&keeping);
	}
	watchdogs_release(&keeping.watchdogs);
	return kept;
}
