#include "base/title.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/output.h"

#define TITLE_LONGEST 240 /* bytes; libbsd keeps 255 */
#define TITLE_TAIL 120    /* of them after what is left out */

static int title_argc;
static char **title_argv, **title_environment;
static char *title_mark; /* the end of argv[0] */
static char *title_end;  /* of argv's bytes */
static const char *title_prefix = "redlock:";
static bool title_set_once;
static atomic_int title_readers; /* of the environment, elsewhere */

void title_init(int argc, char **argv)
{
	title_argc = argc;
	title_argv = argv;
	title_environment = environ;
	if (argc == 0)
		return;
	title_mark = argv[0] + strlen(argv[0]);
	title_end = argv[argc - 1] + strlen(argv[argc - 1]);
}

bool title_is_set(void)
{
	return title_set_once;
}

void title_defer(void)
{
	atomic_fetch_add(&title_readers, 1);
}

void title_allow(void)
{
	atomic_fetch_sub(&title_readers, 1);
}

/* Every entry as it is, even if setenv(3) would not make it. */
static bool move_environment(void)
{
	static char *nothing[] = {NULL};
	char **old = environ != NULL ? environ : nothing;
	size_t count = 0, bytes = 0;
	char **moved, *text;

	for (; old[count] != NULL; count++)
		bytes += strlen(old[count]) + 1;
	moved = malloc((count + 1) * sizeof(*moved) + bytes);
	if (moved == NULL)
		return false;
	text = (char *)(moved + count + 1);
	for (size_t i = 0; i < count; i++) {
		moved[i] = text;
		text = stpcpy(text, old[i]) + 1;
	}
	moved[count] = NULL;
	environ = moved;
	return true;
}

/* A secret that was hidden has left a gap, at which the room for the title
 * would end. */
static void close_gaps(void)
{
	for (int i = 0; i < title_argc; i++) {
		char *next =
			i + 1 < title_argc ? title_argv[i + 1] : title_end + 1;

		for (char *end = title_argv[i] + strlen(title_argv[i]);
		     end + 1 < next; end++)
			*end = ' ';
	}
}

static bool take_over(void)
{
	if (title_set_once)
		return true;
	if (title_argc == 0 || atomic_load(&title_readers) > 0 ||
	    !move_environment())
		return false;
	close_gaps();
	setproctitle_init(title_argc, title_argv, title_environment);
	title_set_once = true;
	return true;
}

/* libbsd marks the end of argv[0] if a title is no longer than that. No kernel of today
 * needs the mark, and ps(1) shows it. */
static void write_title(const struct buffer *text)
{
	setproctitle("-%s", text->data);
	if (text->length <= (size_t)(title_mark - title_argv[0]))
		*title_mark = '\0';
}

void title_name(const char *name)
{
	atomic_store(&title_readers, 0);
	prctl(PR_SET_NAME, name);
	title_prefix = name;
}

void title_replace(const char *name)
{
	size_t room;

	prctl(PR_SET_NAME, name);
	if (title_argc == 0)
		return;
	room = (size_t)(title_end - title_argv[0]);
	/* a last byte other than 0 would say that the text goes on after it */
	memset(title_argv[0], 0, room + 1);
	for (size_t i = 0; i < room && name[i] != '\0'; i++)
		title_argv[0][i] = name[i];
}

static bool is_continued(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

static void leave_out_middle(struct buffer *text)
{
	size_t head = TITLE_LONGEST - TITLE_TAIL - strlen("...");
	size_t tail = text->length - TITLE_TAIL;
	struct buffer cut = {0};

	while (head > 0 && is_continued(text->data[head]))
		head--;
	while (is_continued(text->data[tail]))
		tail++;
	buffer_print(&cut, "%.*s...%s", (int)head, text->data,
		     text->data + tail);
	buffer_release(text);
	*text = cut;
}

void title_set(const char *format, ...)
{
	char text[8192];
	struct buffer shown = {0};
	va_list arguments;

	if (!take_over())
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	buffer_print(&shown, "%s ", title_prefix);
	output_visible(&shown, text, strlen(text), log_utf8());
	if (shown.length > TITLE_LONGEST)
		leave_out_middle(&shown);
	write_title(&shown);
	buffer_release(&shown);
}
