#include "net/system_log.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/output.h"

/* False if the log is of the other type. */
static bool send_as(int type, const struct buffer *text)
{
	const struct sockaddr_un log = {AF_UNIX, "/dev/log"};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* on a stream a NUL ends the line */
	size_t length = text->length + (type == SOCK_STREAM);
	bool sent;

	if (fd < 0)
		return false;
	sent = connect(fd, (const struct sockaddr *)&log, sizeof(log)) == 0 &&
	       send(fd, text->data, length, MSG_NOSIGNAL) > 0;
	close(fd);
	return sent;
}

void system_log_send(int severity, const struct buffer *line)
{
	struct buffer text = {0};
	time_t now = time(NULL);
	struct tm local;
	char date[16] = "";

	/* RFC 3164: the names of months are English, as nobody calls setlocale(3) */
	if (localtime_r(&now, &local) != NULL)
		strftime(date, sizeof(date), "%h %e %T", &local);
	buffer_print(&text, "<%d>%s redlock[%ld]: ", LOG_CRON | severity, date,
		     (long)getpid());
	output_visible(&text, line->data, line->length, true);
	if (!send_as(SOCK_DGRAM, &text))
		send_as(SOCK_STREAM, &text);
	buffer_release(&text);
}
