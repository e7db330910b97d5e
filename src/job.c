#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "deadline.h"
#include "signals.h"
#include "title.h"

#define BYSTANDER "lease-bystander"
#define BIT(number) ((uint64_t)1 << ((number)-1))
#define PATIENCE 1000 /* ms, for its answer: it may have been stopped */

/* --- the bystander ------------------------------------------------------ */

/* To each question: what has come since the last one. Ends with redlock. */
static void stand_by(int redlock)
{
	char question;

	title_replace(BYSTANDER);
	if (dup2(redlock, 0) < 0)
		return; /* 0 may be the terminal */
	closefrom(1);
	if (chdir("/") < 0)
		return;
	while (read(0, &question, sizeof(question)) > 0) {
		uint64_t come = signals_take(UINT64_MAX);

		if (send(0, &come, sizeof(come), MSG_NOSIGNAL) < 0)
			return;
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
	job_end(job);
	errno = why;
	return -1;
}

/* --- in redlock --------------------------------------------------------- */

int job_start(struct job *job)
{
	int terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	*job = (struct job){0};
	if (terminal < 0)
		return 0;
	job->terminal = terminal;
	return start_bystander(job);
}

bool job_has_terminal(const struct job *job)
{
	return job->terminal > 0;
}

uint64_t job_look(struct job *job)
{
	struct pollfd polled = {.fd = job->bystander, .events = POLLIN};
	uint64_t come;

	if (send(job->bystander, "", 1, MSG_NOSIGNAL) == 1)
		job->owed++;
	while (job->owed > 0 && poll(&polled, 1, PATIENCE) > 0) {
		if (recv(job->bystander, &come, sizeof(come), 0) !=
		    (ssize_t)sizeof(come))
			break;
		job->shared |= come;
		job->owed--;
	}
	return job->shared;
}

bool job_has_got(struct job *job, int number)
{
	uint64_t bit = BIT(number), signs = bit;
	bool result;

	if (!job_has_terminal(job))
		return false;
	/* SIGCONT takes back a signal to stop that is pending, and is taken back
	 * by one */
	if (number == SIGTSTP)
		signs |= BIT(SIGCONT);
	else if (number == SIGCONT)
		signs |= BIT(SIGTSTP) | BIT(SIGTTIN) | BIT(SIGTTOU);
	result = (job_look(job) & signs) != 0;
	job->shared &= ~bit;
	return result;
}

void job_check(struct job *job)
{
	if (job->pid > 0 && waitpid(job->pid, NULL, WNOHANG) > 0)
		job->pid = 0;
}

void job_stop(const struct job *job, int number, pid_t command)
{
	pid_t own = getpgrp(), its = getpgid(command);
	bool had_it = its > 0 && its != own && tcgetpgrp(job->terminal) == its;

	signals_stop(number);
	if (had_it && tcgetpgrp(job->terminal) == own)
		tcsetpgrp(job->terminal, its);
}

void job_end(struct job *job)
{
	if (job->pid > 0) {
		kill(job->pid, SIGKILL); /* it may have been stopped */
		while (waitpid(job->pid, NULL, 0) < 0 && errno == EINTR)
			continue;
	}
	if (job->bystander > 0)
		close(job->bystander);
	if (job->terminal > 0)
		close(job->terminal);
	*job = (struct job){0};
}
