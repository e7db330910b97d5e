#include "signals.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int ending[] = {SIGINT,  SIGTERM, SIGHUP,
			     SIGQUIT, SIGUSR1, SIGUSR2};
static const int others[] = {SIGCHLD, SIGWINCH, SIGCONT, SIGTSTP};

static sigset_t inherited_mask;
static struct sigaction inherited_pipe, inherited_child;
static sigset_t watched;
static int descriptor = -1;

void signals_init(void)
{
	struct sigaction action = {.sa_handler = SIG_IGN};

	sigprocmask(SIG_SETMASK, NULL, &inherited_mask);
	sigaction(SIGPIPE, &action, &inherited_pipe);
	action.sa_handler = SIG_DFL;
	sigaction(SIGCHLD, &action, &inherited_child);
}

/* Blocks and watches these, but for those that we were told to ignore. */
static int watch(const int *numbers, size_t count)
{
	int fd;

	for (size_t i = 0; i < count; i++) {
		struct sigaction current;

		if (sigaction(numbers[i], NULL, &current) == 0 &&
		    current.sa_handler != SIG_IGN)
			sigaddset(&watched, numbers[i]);
	}
	sigprocmask(SIG_BLOCK, &watched, NULL);
	fd = signalfd(descriptor, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd >= 0)
		descriptor = fd;
	return fd;
}

int signals_open(void)
{
	sigemptyset(&watched);
	return watch(ending, sizeof(ending) / sizeof(ending[0]));
}

int signals_open_all(void)
{
	return watch(others, sizeof(others) / sizeof(others[0]));
}

bool signals_next(struct signals_event *event)
{
	struct signalfd_siginfo info;

	if (read(descriptor, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return false;
	event->number = (int)info.ssi_signo;
	event->by_terminal = info.ssi_code == SI_KERNEL;
	return true;
}

int signals_ending(void)
{
	struct signals_event event;

	return signals_next(&event) ? event.number : 0;
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
	sigaction(SIGCHLD, &inherited_child, NULL);
	sigprocmask(SIG_SETMASK, &inherited_mask, NULL);
}

void signals_set_default(void)
{
	struct sigaction action = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		sigaction(number, &action, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

void signals_ignore_all(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
}

void signals_die(int number)
{
	struct rlimit none = {0, 0};
	struct sigaction action = {.sa_handler = SIG_DFL};
	sigset_t only;

	/* the limit does not count where cores are piped to a program */
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
	sigaction(number, &action, NULL);
	sigemptyset(&only);
	sigaddset(&only, number);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &only, NULL);
	/* one whose default is not to end us */
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
