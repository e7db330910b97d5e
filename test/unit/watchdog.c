/* What the watchdog leaves alone. */
#include "run/watchdog.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "check.h"

/* As if its thread could not be started. */
static void check_stopped_twice(void)
{
	struct watchdog watchdog = {
		.stop = eventfd(0, EFD_CLOEXEC),
		.lost_event = eventfd(0, EFD_CLOEXEC),
	};
	int others[2];

	watchdog_stop(&watchdog);
	CHECK(pipe2(others, O_CLOEXEC) == 0, "no pipe");
	watchdog_stop(&watchdog);
	for (size_t i = 0; i < COUNT(others); i++)
		CHECK(close(others[i]) == 0, "closed by the second stop");
}

int main(void)
{
	check_stopped_twice();
	return check_result();
}
