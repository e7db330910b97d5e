#include "run/job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/deadline.h"
#include "run/process.h"
#include "base/descriptors.h"
#include "base/signals.h"
#include "base/title.h"

#define BYSTANDER "lease-bystander"
#define ANSWER 1000   /* ms, for its answer: it may have been stopped */
#define REST 500      /* ms, for a process that sends a signal twice */
#define LOOK_AGAIN 50 /* ms, whether COMMAND is still stopped */

/* --- the bystander ------------------------------------------------------ */

/* What redlock says to it. No gaps between the fields: they would be sent, too. */
struct question {
	int64_t command; /* 0: what has come? Else watch it, without an answer */
	struct deadline until;
};

/* What has come since the last answer. */
struct answer {
	uint64_t come;
	uint64_t continued; /* whether redlock has been */
};

/* Redlock has stopped, or is about to, as this command has: continues redlock when
 * the command is no longer stopped. Watches until redlock says something, which it
 * does as soon as it runs. */
static bool watch(const struct question *watched)
{
	struct pollfd polled = {.fd = 0, .events = POLLIN};
	bool continued = false;

	while (poll(&polled, 1, LOOK_AGAIN) == 0) {
		char state = process_state((pid_t)watched->command);

		/* the state is looked at before the clock: later, the guard may
		 * have continued the command in order to kill it */
		if (deadline_passed(watched->until))
			break;
		if (state == 0 || strchr("TtD", state) != NULL)
			continue;
		continued = true;
		kill(getppid(), SIGCONT);
	}
	return continued;
}

/* Answers each question. Ends with redlock. */
static void stand_by(int redlock)
{
	struct question question;
	struct answer answer = {0};

	title_replace(BYSTANDER);
	if (dup2(redlock, 0) < 0)
		return; /* 0 may be the terminal */
	descriptors_close_from(1);
	(void)!chdir("/");
	while (read(0, &question, sizeof(question)) > 0) {
		if (question.command != 0) {
			answer.continued = watch(&question);
			continue;
		}
		answer.come = signals_take(UINT64_MAX);
		if (send(0, &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
			return;
		answer.continued = false;
	}
}

static int start_bystander(struct job *job)
{
	struct signals_mask before;
	int ends[2], why;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -1;
	signals_block_all(&before);
	job->pid = fork();
	if (job->pid == 0) {
		stand_by(ends[1]);
		_exit(0);
	}
	why = errno;
	signals_unblock(&before);
	close(ends[1]);
	job->bystander = ends[0];
	if (job->pid > 0)
		return 0;
	job_end(job, false);
	errno = why;
	return -1;
}

/* --- in redlock --------------------------------------------------------- */

/* 0: there is none; -1 with errno: we cannot know. Without a /dev/tty that we may open, as
 * in a chroot, one of descriptors 0 to 2 may be the terminal of our session. */
static int open_terminal(void)
{
	int terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
	int why = errno;

	if (terminal >= 0 || why == EMFILE || why == ENFILE || why == ENOMEM)
		return terminal;
	for (int fd = 0; why != ENXIO && fd <= 2; fd++)
		if (tcgetsid(fd) == getsid(0))
			return fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return 0;
}

int job_start(struct job *job)
{
	int terminal = open_terminal();

	*job = (struct job){0};
	if (terminal <= 0)
		return terminal;
	job->terminal = terminal;
	job->foreground = tcgetpgrp(terminal) == getpgrp();
	job->known =
		job->foreground && tcgetattr(terminal, &job->settings) == 0;
	return start_bystander(job);
}

bool job_has_terminal(const struct job *job)
{
	return job->terminal > 0;
}

uint64_t job_look(struct job *job)
{
	struct pollfd polled = {.fd = job->bystander, .events = POLLIN};
	const struct question question = {0};
	struct answer answer;

	if (send(job->bystander, &question, sizeof(question), MSG_NOSIGNAL) > 0)
		job->owed++;
	while (job->owed > 0 && poll(&polled, 1, ANSWER) > 0) {
		if (recv(job->bystander, &answer, sizeof(answer), 0) !=
		    (ssize_t)sizeof(answer))
			break;
		job->shared |= answer.come;
		job->continued |= answer.continued != 0;
		job->owed--;
	}
	return job->shared;
}

static bool is_of_our_group(pid_t sender)
{
	return sender > 0 && getpgid(sender) == getpgrp();
}

/* Waits until the sender has sent all that it will. */
static void wait_for_rest(pid_t sender, struct deadline due)
{
	struct deadline end = deadline_earlier(due, deadline_in(REST));

	while (!deadline_passed(end)) {
		char state = process_state(sender);

		if (state != 'R' && state != 'D')
			return;
		poll(NULL, 0, 1);
	}
}

bool job_has_got(struct job *job, int number, pid_t sender, struct deadline due)
{
	uint64_t bit = signals_bit(number), signs = bit;
	bool result;

	if (is_of_our_group(sender)) {
		wait_for_rest(sender, due);
		if (!job_has_terminal(job))
			signals_take(bit);
	}
	if (!job_has_terminal(job))
		return false;
	/* SIGCONT takes back a signal to stop that is pending, and is taken back
	 * by one */
	if (number == SIGTSTP)
		signs |= signals_bit(SIGCONT);
	else if (number == SIGCONT)
		signs |= signals_bit(SIGTSTP) | signals_bit(SIGTTIN) |
			 signals_bit(SIGTTOU);
	result = (job_look(job) & signs) != 0;
	if (result)
		signals_take(bit);
	job->shared &= ~bit;
	return result;
}

void job_check(struct job *job)
{
	if (job->pid > 0 && waitpid(job->pid, NULL, WNOHANG) > 0)
		job->pid = 0;
}

/* The bystander's SIGCONT was for us: COMMAND goes on already. */
static void take_back_continue(struct job *job)
{
	job->continued = false;
	job_look(job);
	if (job->continued)
		signals_take(signals_bit(SIGCONT));
}

/* Whether no process of this session, outside the group, is there to continue it: its
 * parent's shell, mostly. */
static bool is_orphaned(void)
{
	struct process process = {.parent = getppid()};

	do {
		pid_t above = process.parent;

		/* the parent is of another pid namespace, or has ended */
		if (above == 0 || getpgid(above) < 0)
			return true;
		if (getpgid(above) != getpgrp())
			return getsid(above) != getsid(0);
	} while (process_read(&process, process.parent));
	return false; /* as most are not */
}

void job_stop(struct job *job, int number, pid_t command, struct deadline until)
{
	pid_t own = getpgrp(), its = getpgid(command);
	bool had_it = its > 0 && its != own && tcgetpgrp(job->terminal) == its;
	const struct question watched = {command, until};

	if (number == SIGSTOP && is_orphaned())
		return;
	send(job->bystander, &watched, sizeof(watched), MSG_NOSIGNAL);
	signals_stop(number);
	take_back_continue(job);
	job->foreground = tcgetpgrp(job->terminal) == own;
	if (had_it && job->foreground)
		tcsetpgrp(job->terminal, its);
}

/* TCSADRAIN may wait for ever, after ^S. */
static void take_back(const struct job *job, bool killed)
{
	pid_t own = getpgrp(), front = tcgetpgrp(job->terminal);
	struct signals_mask before;

	if (!job->foreground || front <= 0 ||
	    (front != own && process_group_lives(front)))
		return;
	signals_block_all(&before); /* or else SIGTTOU stops us */
	if (front != own)
		tcsetpgrp(job->terminal, own);
	if (killed && job->known && !process_has_peers())
		tcsetattr(job->terminal, TCSANOW, &job->settings);
	signals_unblock(&before);
}

void job_end(struct job *job, bool killed)
{
	if (job->pid > 0) {
		kill(job->pid, SIGKILL); /* it may have been stopped */
		while (waitpid(job->pid, NULL, 0) < 0 && errno == EINTR)
			continue;
	}
	if (job->bystander > 0)
		close(job->bystander);
	if (job->terminal > 0) {
		take_back(job, killed);
		close(job->terminal);
	}
	*job = (struct job){0};
}
