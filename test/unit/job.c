/* What has come to a whole job, and what only to redlock. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "run/job.h"
#include "base/signals.h"

/* A session of our own, which a terminal is given to. */
static void take_terminal(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY);

	grantpt(master);
	unlockpt(master);
	setsid();
	open(ptsname(master), O_RDWR);
}

/* We read the first of two signals to the group after both have come. */
static void try_both(int first, int second)
{
	const struct deadline never = deadline_never();
	struct job job;

	CHECK(job_start(&job) == 0 && job_has_terminal(&job), "no job");
	job_look(&job);
	kill(0, first);
	kill(0, second);
	CHECK(job_has_got(&job, first, 0, never), "%d before %d", first,
	      second);
	CHECK(job_has_got(&job, second, 0, never), "%d after %d", second,
	      first);
	CHECK(!job_has_got(&job, SIGUSR1, 0, never), "nobody has sent it");
	job_end(&job, false);
}

static int test(void)
{
	struct signals_mask before;

	signals_block_all(&before);
	take_terminal();
	try_both(SIGUSR1, SIGINT);
	try_both(SIGCONT, SIGTSTP);
	try_both(SIGCONT, SIGTTIN);
	try_both(SIGCONT, SIGTTOU);
	try_both(SIGTSTP, SIGCONT);
	return check_result();
}

int main(void)
{
	int status;
	pid_t pid;

	signals_init();
	pid = fork(); /* whoever leads a group can make no session */
	if (pid == 0)
		exit(test());
	waitpid(pid, &status, 0);
	return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}
