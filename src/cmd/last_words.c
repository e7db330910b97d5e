#include "cmd/last_words.h"

#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/output.h"
#include "base/signals.h"
#include "cmd/run.h"

static struct buffer words;
static char *status; /* its three digits in the words, or NULL */
static int reader;

/* In a signal's handler. Of all that this calls, only snprintf(3) may not be called there,
 * by POSIX; for a number it takes no lock and no memory. */
static void say(int number)
{
	int rest = 128 + number;

	for (int i = 2; status != NULL && i >= 0; i--, rest /= 10)
		status[i] = (char)('0' + rest % 10);
	(void)output_write_until_told(reader, words.data, words.length, true);
}

void last_words_prepare(const struct settings *settings)
{
	if (settings->format == FORMAT_SHELL) {
		reader = STDOUT_FILENO;
		buffer_print(&words, "(exit 128)\n");
		status = words.data + strlen("(exit ");
	} else if (settings->status_fd >= 0) {
		reader = settings->status_fd;
		run_print_unasked(&words, settings, "interrupted");
	} else {
		return;
	}
	signals_call_before_end(say);
}
