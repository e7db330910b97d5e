#include "server/drain.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/signals.h"

#define DRAIN_TIME 100 /* ms */

static bool is_connection(const struct quorum *quorum, int fd)
{
	for (size_t i = 0; i < quorum->count; i++)
		if (server_fd(&quorum->servers[i]) == fd)
			return true;
	return false;
}

static void keep_connections_only(const struct quorum *quorum)
{
	int nowhere = descriptors_nowhere(O_RDWR), last = 2;

	for (size_t i = 0; i < quorum->count; i++)
		if (server_fd(&quorum->servers[i]) > last)
			last = server_fd(&quorum->servers[i]);
	for (int fd = 0; fd <= 2; fd++)
		dup2(nowhere, fd);
	for (int fd = 3; fd < last; fd++)
		if (!is_connection(quorum, fd))
			close(fd);
	descriptors_close_from(last + 1);
}

static int64_t longest(const struct quorum *quorum)
{
	return DRAIN_TIME + (quorum->replicas > 0 ? quorum->timeout : 0);
}

void drain_connections(struct quorum *quorum)
{
	struct signals_mask before;
	pid_t pid;

	quorum_drain(quorum, 0);
	if (!quorum_may_lose(quorum))
		return;
	quorum_close_done(quorum, false);
	signals_block_all(&before);
	pid = fork();
	if (pid != 0)
		signals_unblock(&before);
	if (pid > 0) {
		quorum_leave(quorum);
		return;
	}
	if (pid == 0) {
		setsid();
		(void)!chdir("/");
		keep_connections_only(quorum);
		deadline_after_fork();
	}
	/* without a child it is done here, and not for long */
	if (pid < 0)
		quorum_close_done(quorum, true);
	quorum_drain(quorum, longest(quorum));
	if (pid == 0) {
		quorum_release(quorum);
		_exit(0);
	}
}
