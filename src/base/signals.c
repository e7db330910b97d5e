#include "base/signals.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <unistd.h>

/* Those that by default do not end a process, those that cannot be blocked, and
 * those that signals_init ignores. */
static const int harmless[] = {SIGCHLD, SIGWINCH, SIGCONT, SIGTSTP,
			       SIGTTIN, SIGTTOU,  SIGURG,  SIGKILL,
			       SIGSTOP, SIGPIPE,  SIGXFSZ};
static const int others[] = {SIGCHLD, SIGWINCH, SIGCONT, SIGTSTP};
/* Those that one process sends to another to end it, or that a limit of time sends. Not
 * all that would: each costs the start three system calls. */
static const int ends[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGUSR1,
			   SIGUSR2, SIGALRM, SIGTERM, SIGXCPU};

static sigset_t inherited_mask;
static struct sigaction inherited_pipe, inherited_size, inherited_child;
static sigset_t watched;
static int descriptor = -1;
static void (*before_end)(int number);

void signals_init(void)
{
	struct sigaction action = {.sa_handler = SIG_IGN};

	sigprocmask(SIG_SETMASK, NULL, &inherited_mask);
	sigaction(SIGPIPE, &action, &inherited_pipe);
	sigaction(SIGXFSZ, &action, &inherited_size);
	action.sa_handler = SIG_DFL;
	sigaction(SIGCHLD, &action, &inherited_child);
}

static void call_and_die(int number)
{
	before_end(number);
	signals_die(number);
}

/* In all of `ends` that have the first one, the second. */
static void change_handlers(void (*from)(int number), void (*to)(int number))
{
	struct sigaction action = {.sa_handler = to}, current;

	sigfillset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (sigaction(ends[i], NULL, &current) == 0 &&
		    current.sa_handler == from)
			sigaction(ends[i], &action, NULL);
}

void signals_call_before_end(void (*act)(int number))
{
	before_end = act;
	change_handlers(SIG_DFL, call_and_die);
}

/* Blocks and watches these. */
static int watch(const sigset_t *numbers)
{
	int fd;

	sigorset(&watched, &watched, numbers);
	sigprocmask(SIG_BLOCK, &watched, NULL);
	fd = signalfd(descriptor, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd >= 0)
		descriptor = fd;
	return fd;
}

int signals_open(void)
{
	struct sigaction action = {.sa_handler = SIG_IGN};
	sigset_t ending;
	int fd;

	if (getpid() == 1)
		sigaction(SIGCHLD, &action, NULL);

	sigfillset(&ending);
	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
		sigdelset(&ending, harmless[i]);
	sigemptyset(&watched);
	fd = watch(&ending);
	if (before_end != NULL)
		change_handlers(call_and_die, SIG_DFL);
	return fd;
}

int signals_open_all(void)
{
	struct sigaction action = {.sa_handler = SIG_DFL};
	sigset_t set;

	sigaction(SIGCHLD, &action, NULL);

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		sigaddset(&set, others[i]);
	return watch(&set);
}

/* Linux keeps a blocked signal even if it is to be ignored. */
static bool is_ignored(int number)
{
	struct sigaction current;

	return sigaction(number, NULL, &current) == 0 &&
	       current.sa_handler == SIG_IGN;
}

int signals_next(void)
{
	pid_t sender;

	return signals_next_from(&sender);
}

int signals_next_from(pid_t *sender)
{
	struct signalfd_siginfo info;

	do
		if (read(descriptor, &info, sizeof(info)) !=
		    (ssize_t)sizeof(info))
			return 0;
	while (is_ignored((int)info.ssi_signo));
	*sender = info.ssi_code == SI_USER ? (pid_t)info.ssi_pid : 0;
	return (int)info.ssi_signo;
}

uint64_t signals_pending(void)
{
	uint64_t result = 0;
	sigset_t pending;

	sigpending(&pending);
	for (int number = 1; number < NSIG; number++)
		if (sigismember(&pending, number) == 1)
			result |= signals_bit(number);
	return result;
}

bool signals_tell_to_end(void)
{
	uint64_t pending = signals_pending();

	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
		pending &= ~signals_bit(harmless[i]);
	for (int number = 1; number < NSIG; number++)
		if ((pending & signals_bit(number)) != 0 && !is_ignored(number))
			return true;
	return false;
}

uint64_t signals_take(uint64_t which)
{
	const struct timespec at_once = {0};
	uint64_t taken = 0;
	sigset_t set;
	int number;

	sigemptyset(&set);
	for (number = 1; number < NSIG; number++)
		if ((which & signals_bit(number)) != 0)
			sigaddset(&set, number);
	while ((number = sigtimedwait(&set, NULL, &at_once)) > 0)
		taken |= signals_bit(number);
	return taken;
}

bool signals_have_come(int fd)
{
	struct pollfd polled = {.fd = fd, .events = POLLIN};
	uint64_t ignored = 0;

	for (int number = 1; number < NSIG; number++)
		if (sigismember(&watched, number) == 1 && is_ignored(number))
			ignored |= signals_bit(number);
	if (ignored != 0)
		signals_take(ignored);
	return poll(&polled, 1, 0) > 0;
}

void signals_heed(int number)
{
	struct sigaction action = {.sa_handler = SIG_DFL};

	sigaction(number, &action, NULL);
}

void signals_stop(int number)
{
	sigset_t only, before;

	sigemptyset(&only);
	sigaddset(&only, number);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &only, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

void signals_block_all(struct signals_mask *before)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before->set);
}

void signals_unblock(const struct signals_mask *before)
{
	pthread_sigmask(SIG_SETMASK, &before->set, NULL);
}

void signals_reset(void)
{
	sigaction(SIGPIPE, &inherited_pipe, NULL);
	sigaction(SIGXFSZ, &inherited_size, NULL);
	sigaction(SIGCHLD, &inherited_child, NULL);
	sigprocmask(SIG_SETMASK, &inherited_mask, NULL);
}

void signals_set_default(void)
{
	struct sigaction action = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		if (number != SIGXFSZ)
			sigaction(number, &action, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

void signals_end_by_pipe(void)
{
	if (inherited_pipe.sa_handler != SIG_IGN)
		signals_die(SIGPIPE);
}

static void end(int number)
{
	(void)number;
	_exit(0);
}

void signals_end_after(int64_t ms)
{
	const struct sigaction action = {.sa_handler = end};
	const struct itimerval time = {
		.it_value = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000},
	};
	sigset_t only;

	sigemptyset(&only);
	sigaddset(&only, SIGALRM);
	sigaction(SIGALRM, &action, NULL);
	sigprocmask(SIG_UNBLOCK, &only, NULL);
	setitimer(ITIMER_REAL, &time, NULL);
}

void signals_die(int number)
{
	struct rlimit none = {0, 0};
	struct sigaction action = {.sa_handler = SIG_DFL};
	sigset_t only;

	/* the limit does not count if cores are piped to a program */
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
	sigaction(number, &action, NULL);
	sigemptyset(&only);
	sigaddset(&only, number);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &only, NULL);
	/* its default was not to end us */
	_exit(128 + number);
}

static const struct {
	const char *name;
	int number;
} names[] = {
	{"HUP", SIGHUP},       {"INT", SIGINT},   {"QUIT", SIGQUIT},
	{"ILL", SIGILL},       {"TRAP", SIGTRAP}, {"ABRT", SIGABRT},
	{"BUS", SIGBUS},       {"FPE", SIGFPE},   {"KILL", SIGKILL},
	{"USR1", SIGUSR1},     {"SEGV", SIGSEGV}, {"USR2", SIGUSR2},
	{"PIPE", SIGPIPE},     {"ALRM", SIGALRM}, {"TERM", SIGTERM},
	{"CHLD", SIGCHLD},     {"CONT", SIGCONT}, {"STOP", SIGSTOP},
	{"TSTP", SIGTSTP},     {"TTIN", SIGTTIN}, {"TTOU", SIGTTOU},
	{"URG", SIGURG},       {"XCPU", SIGXCPU}, {"XFSZ", SIGXFSZ},
	{"VTALRM", SIGVTALRM}, {"PROF", SIGPROF}, {"WINCH", SIGWINCH},
	{"IO", SIGIO},         {"PWR", SIGPWR},   {"SYS", SIGSYS},
};

const char *signals_name(size_t n)
{
	return n < sizeof(names) / sizeof(names[0]) ? names[n].name : NULL;
}

int signals_parse(const char *name)
{
	if (strncasecmp(name, "SIG", 3) == 0)
		name += 3;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char digits[12];

		snprintf(digits, sizeof(digits), "%d", names[i].number);
		if (strcasecmp(names[i].name, name) == 0 ||
		    strcmp(digits, name) == 0)
			return names[i].number;
	}
	return 0;
}
