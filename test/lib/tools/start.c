/*
 * start: executes COMMAND as what tests have in the background:
 *
 *	start -s COMMAND ...	in a session of its own, and with INT, QUIT and PIPE as a login
 *				shell has them
 *	start -k COMMAND ...	it is killed when its parent ends
 */
#include <sys/prctl.h>

#include <err.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc < 3 ||
	    (strcmp(argv[1], "-s") != 0 && strcmp(argv[1], "-k") != 0))
		errx(64, "usage: start -s|-k COMMAND [ARGUMENT ...]");
	if (argv[1][1] == 'k') {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL))
			err(71, "prctl");
	} else {
		if (setsid() < 0)
			err(71, "setsid");
		signal(SIGINT, SIG_DFL);
		signal(SIGQUIT, SIG_DFL);
		signal(SIGPIPE, SIG_DFL);
	}
	execvp(argv[2], argv + 2);
	err(errno == ENOENT ? 127 : 126, "%s", argv[2]);
}
