#include "base/descriptors.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST 65536 /* if there may be any number */

int descriptors_nowhere(int access)
{
	int fd = open("/dev/null", access | O_CLOEXEC), ends[2];

	if (fd >= 0)
		return fd;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -1;
	close(ends[1]);
	return ends[0];
}

void descriptors_close_from(int first)
{
	struct rlimit limit;

	if (close_range((unsigned int)first, UINT_MAX, 0) == 0)
		return;
	if (access("/proc/self/fd", R_OK) == 0) {
		closefrom(first);
		return;
	}
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_max > MOST)
		limit.rlim_max = MOST;
	for (int fd = first; fd < (int)limit.rlim_max; fd++)
		close(fd);
}
