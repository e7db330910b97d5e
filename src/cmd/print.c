#include "cmd/print.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/output.h"
#include "base/signals.h"

#define COLUMNS 80 /* if the terminal does not say */
#define INDENT 4   /* of the lines that a long line goes on in */

void cmd_add_line(struct buffer *text, const struct buffer *line, int fd,
		  const char *end)
{
	struct buffer visible = {0};

	output_visible(&visible, line->data, line->length, output_utf8());
	output_wrap(text, visible.data, visible.length,
		    output_columns(fd, COLUMNS), INDENT);
	buffer_print(text, "%s", end);
	buffer_release(&visible);
}

static int complain_of_output(void)
{
	log_error("standard output: %s", strerror(errno));
	return EXIT_SYSTEM;
}

int cmd_print(const char *text, size_t length)
{
	if (output_write(STDOUT_FILENO, text, length) == 0)
		return 0;
	return complain_of_output();
}

int cmd_show(const char *text, size_t length)
{
	if (output_write(STDOUT_FILENO, text, length) == 0)
		return 0;
	if (errno == EPIPE)
		signals_end_by_pipe();
	return complain_of_output();
}

void cmd_print_failure(const struct settings *settings, int status, bool told)
{
	struct buffer text = {0};

	if (settings->format != FORMAT_SHELL)
		return;
	if (status == 0)
		buffer_print(&text, "exit 0\n");
	else
		buffer_print(&text, "(exit %d)\n", status);
	/* if nobody reads it, there is no eval */
	(void)output_write_until_told(STDOUT_FILENO, text.data, text.length,
				      told);
	buffer_release(&text);
}
