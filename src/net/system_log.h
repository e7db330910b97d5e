/*
 * A line for the system's log, /dev/log, beside the lines of cron (LOG_CRON). syslog(3)
 * waits for a log that is stuck; here the line is lost instead, as a holder of a lock
 * must not wait.
 */
#ifndef NET_SYSTEM_LOG_H
#define NET_SYSTEM_LOG_H

#include "base/buffer.h"

/* severity: of syslog.h. The line's bytes are made visible. */
void system_log_send(int severity, const struct buffer *line);

#endif
