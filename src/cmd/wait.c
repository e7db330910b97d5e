#include <unistd.h>

#include "cmd/session.h"
#include "cmd/take.h"
#include "settings/command.h"
#include "base/signals.h"

int cmd_wait(struct settings *settings)
{
	struct session session;
	struct taken taken;
	int status;

	status = cmd_open(&session, settings);
	if (status != 0)
		return status;
	session.lock.wish.kind = KIND_NONE;
	status = cmd_heed_signals(&session);
	if (status != 0)
		return status;
	taken = cmd_take(&session, getpid(), "wait");
	cmd_close(&session);
	if (taken.signal != 0)
		signals_die(taken.signal);
	return taken.held ? EXIT_DONE : taken.status;
}
