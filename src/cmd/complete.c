#include "cmd/complete.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/output.h"
#include "base/signals.h"
#include "cmd/print.h"
#include "cmd/session.h"
#include "settings/arguments.h"
#include "settings/completion.h"
#include "settings/config.h"
#include "settings/sources.h"
#include "show/scan.h"

#define ANSWER_TIME 200 /* ms, for whoever has pressed Tab */
#define SERVER_TIMEOUT \
	90 /* ms: a server that is silent leaves time for the others */

/* A shell would show it beside the line that is being typed. */
static void say_nothing(void)
{
	int null = descriptors_nowhere(O_WRONLY);

	if (null >= 0)
		dup2(null, STDERR_FILENO);
}

static int write_text(const struct buffer *text)
{
	return output_write(STDOUT_FILENO, text->data, text->length);
}

/* --- keys and server sets ------------------------------------------------- */

static const struct command *find_list(const struct completion *completion)
{
	const struct command *command = completion->commands;

	while (command->id != COMMAND_LIST)
		command++;
	return command;
}

/* One that the user could not type back is left out. So is one that would be an
 * option there: a key "-Sredis://..." would have the password sent there at the next Tab. */
static bool on_found(void *context, const struct listed *listed)
{
	const struct completion *completion = context;
	struct buffer visible = {0}, line = {0};
	const struct argument *key = &listed->key;
	bool goes_on = true;

	if (key->length > 0 && key->data[0] == '-' && !completion->literal)
		return true;
	output_visible(&visible, key->data, key->length, 1);
	if (visible.length == key->length &&
	    memcmp(visible.data, key->data, key->length) == 0) {
		buffer_append(&line, key->data, key->length);
		buffer_append(&line, "\n", 1);
		goes_on = write_text(&line) == 0;
	}
	buffer_release(&visible);
	buffer_release(&line);
	return goes_on;
}

/* Up to a character that the shell may have been told to take as it is. */
static void make_pattern(struct buffer *pattern, const char *word)
{
	size_t length = strcspn(word, "\\'\"$");

	for (size_t i = 0; i < length; i++)
		buffer_print(pattern, "%s%c",
			     strchr("*?[", word[i]) != NULL ? "\\" : "",
			     word[i]);
	buffer_append(pattern, "*", 1);
}

/* `local:` would be started, as if its user had asked for it. */
static bool may_ask(const struct settings *settings)
{
	for (size_t i = 0; i < settings->server_count; i++)
		if (settings->servers[i].kind == URL_LOCAL)
			return false;
	return true;
}

static void list_keys(struct completion *completion, struct settings *settings,
		      const char *word)
{
	const struct lister lister = {.found = on_found, .context = completion};
	struct buffer pattern = {0};
	struct quorum quorum;
	struct error error;

	signals_end_after(ANSWER_TIME);
	if (sources_read(settings, find_list(completion), &error) < 0 ||
	    config_finish(settings, &error) < 0 || !may_ask(settings))
		return;
	settings->server_timeout = SERVER_TIMEOUT;
	if (cmd_open_quorum(&quorum, settings) != 0)
		return;
	make_pattern(&pattern, word);
	scan_locks(&quorum, pattern.data, &lister, &error);
	buffer_release(&pattern);
	quorum_release(&quorum);
}

static void list_sets(struct settings *settings, const char *prefix)
{
	struct buffer names = {0}, text = {0};
	char *rest, *name;

	sources_list_sets(settings, &names);
	rest = names.data;
	while (rest != NULL && (name = strsep(&rest, "\n")) && *name != '\0')
		buffer_print(&text, "%s%s\n", prefix, name);
	write_text(&text);
	buffer_release(&names);
	buffer_release(&text);
}

/* What only the settings or the servers know. */
static void list_found(struct completion *completion, const char *word,
		       const char *prefix)
{
	struct settings settings;
	struct error error;

	settings_init(&settings);
	if (arguments_parse(&settings, find_list(completion),
			    completion->common, &error) == 0) {
		if (completion->expected == EXPECT_KEY)
			list_keys(completion, &settings, word);
		else
			list_sets(&settings, prefix);
	}
	settings_release(&settings);
}

/* --- the answer ----------------------------------------------------------- */

static void print_head(struct buffer *text, const struct completion *completion,
		       const char *prefix)
{
	const char *value = completion_value(completion);

	if (completion->expected == EXPECT_COMMAND)
		buffer_print(text, "command %zu\n", completion->at);
	else if (completion->expected == EXPECT_FILE ||
		 strcmp(value, "FILE") == 0)
		buffer_print(text, "files %s\n", prefix);
	else if (strcmp(value, "PID") == 0)
		buffer_print(text, "pids %s\n", prefix);
	else
		buffer_print(text,
			     strcmp(value, "URL") == 0 ? "stems\n" : "words\n");
}

int cmd_complete(const struct command *table, char **words)
{
	struct completion completion;
	struct buffer prefix = {0}, text = {0};
	size_t count = 0;
	const char *word;

	say_nothing();
	while (words[count] != NULL)
		count++;
	word = count > 0 ? words[count - 1] : "";
	completion_find(&completion, table, words, count);
	buffer_append(&prefix, word, completion.prefix);
	print_head(&text, &completion, prefix.data);
	completion_list(&completion, prefix.data, &text);
	if (write_text(&text) == 0 &&
	    (completion.expected == EXPECT_KEY ||
	     (completion.expected == EXPECT_VALUE &&
	      strcmp(completion.option->name, "set") == 0)))
		list_found(&completion, word, prefix.data);
	completion_release(&completion);
	buffer_release(&prefix);
	buffer_release(&text);
	return EXIT_DONE;
}
