#include "settings/completion.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/signals.h"
#include "base/warning.h"

/* --- reading the line ----------------------------------------------------- */

static const struct command *find_command(const struct command *table,
					  const char *name)
{
	for (const struct command *each = table; each->name; each++)
		if (strcmp(each->name, name) == 0)
			return each;
	return NULL;
}

static bool takes(const struct completion *completion,
		  const struct option *option)
{
	return option->commands & completion->command->id;
}

/* Also if it is abbreviated. */
static const struct option *find_long(const struct completion *completion,
				      const char *name)
{
	size_t length = strcspn(name, "="), found = 0;
	const struct option *option =
		options_find(name, length, completion->command->id);

	if (option != NULL)
		return takes(completion, option) ? option : NULL;
	for (size_t i = 0; i < option_count; i++) {
		if (!takes(completion, &options[i]) || options[i].in_full ||
		    strncmp(options[i].name, name, length) != 0)
			continue;
		option = &options[i];
		found++;
	}
	return found == 1 ? option : NULL;
}

static const struct option *find_letter(const struct completion *completion,
					char letter)
{
	for (size_t i = 0; i < option_count; i++)
		if (takes(completion, &options[i]) &&
		    (options[i].letter == letter ||
		     options[i].other_letter == letter))
			return &options[i];
	return NULL;
}

/* The option whose value the word has or wants, or NULL. *prefix: where the value begins
 * in the word, 0: it is the next word. */
static const struct option *read_option(struct completion *completion,
					const char *word, size_t *prefix)
{
	const struct option *option;

	*prefix = 0;
	if (word[1] == '-') {
		option = find_long(completion, word + 2);
		if (option == NULL)
			return NULL;
		completion->given |= options_bit(option);
		if (strchr(word, '=') != NULL)
			*prefix = strcspn(word, "=") + 1;
		return option->takes == TAKES_VALUE || *prefix > 0 ? option
								   : NULL;
	}
	for (size_t i = 1; word[i] != '\0'; i++) {
		option = find_letter(completion, word[i]);
		if (option == NULL)
			return NULL;
		completion->given |= options_bit(option);
		if (option->takes != TAKES_VALUE)
			continue;
		*prefix = word[i + 1] != '\0' ? i + 1 : 0;
		return option;
	}
	return NULL;
}

/* Those that `list` takes as well, but for what it prints. */
static bool is_common(const struct option *option)
{
	return option != NULL && (option->commands & COMMAND_LIST) &&
	       strcmp(option->value, "json") != 0 &&
	       strcmp(option->name, "output") != 0;
}

static void keep(struct completion *completion, char *word)
{
	completion->common[completion->common_count++] = word;
}

/* Without the letters before it, which `list` may not take: -S of -yS. prefix: as of
 * read_option. */
static char *cut_letters(char *word, size_t prefix)
{
	size_t letter = prefix > 0 ? prefix - 1 : strlen(word) - 1;

	if (word[1] == '-')
		return word;
	word[letter - 1] = '-';
	return word + letter - 1;
}

static bool is_given(const struct completion *completion, const char *name)
{
	const struct option *option =
		options_find(name, strlen(name), completion->command->id);

	return completion->given & options_bit(option);
}

/* The last word, as an option or an operand. */
static void expect(struct completion *completion, const char *word,
		   size_t operands)
{
	static const unsigned keys = COMMAND_RELEASE | COMMAND_EXTEND |
				     COMMAND_BREAK | COMMAND_WAIT |
				     COMMAND_HISTORY | COMMAND_CHECK;
	enum command_id id = completion->command->id;

	if (!completion->literal && word[0] == '-') {
		uint64_t before = completion->given;

		completion->option =
			read_option(completion, word, &completion->prefix);
		completion->given = before;
		completion->expected =
			completion->prefix > 0 ? EXPECT_VALUE : EXPECT_OPTION;
	} else if ((operands == 0 && (id & keys)) ||
		   (id == COMMAND_STATUS &&
		    (operands == 0 || !is_given(completion, "quiet")))) {
		completion->expected = EXPECT_KEY;
	} else if (operands == 0 && id == COMMAND_FENCE) {
		completion->expected = EXPECT_FILE;
	}
}

/* KEY of `run` is the word before `at`. */
static void expect_command(struct completion *completion, char **words,
			   size_t at, size_t count)
{
	if (is_given(completion, "command"))
		return;
	if (at + 1 < count && strcmp(words[at], "--") == 0)
		at++;
	completion->expected = EXPECT_COMMAND;
	completion->at = at;
}

static void read_words(struct completion *completion, char **words,
		       size_t count)
{
	size_t operands = 0, prefix, last = count - 1;

	for (size_t i = 1; i < last; i++) {
		const struct option *option = NULL;
		char *word = words[i];

		if (!completion->literal && strcmp(word, "--") == 0) {
			completion->literal = true;
		} else if (completion->literal || word[0] != '-' ||
			   word[1] == '\0') {
			operands++;
			if (completion->command->id == COMMAND_RUN) {
				expect_command(completion, words, i + 1, count);
				return;
			}
		} else if ((option = read_option(completion, word, &prefix))) {
			bool next = prefix == 0;

			if (next && ++i == last) {
				completion->expected = EXPECT_VALUE;
				completion->option = option;
				return;
			}
			if (!is_common(option))
				continue;
			keep(completion, cut_letters(word, prefix));
			if (next)
				keep(completion, words[i]);
		} else if (strcmp(word, "--insecure") == 0) {
			keep(completion, word);
		}
	}
	expect(completion, words[last], operands);
}

void completion_find(struct completion *completion, const struct command *table,
		     char **words, size_t count)
{
	*completion = (struct completion){.expected = EXPECT_NOTHING,
					  .commands = table};
	completion->common = xcalloc(count + 1, sizeof(*completion->common));
	if (count == 0)
		return;
	completion->command = find_command(table, words[0]);
	if (count == 1)
		completion->expected = EXPECT_SUBCOMMAND;
	else if (count == 2 && strcmp(words[0], "help") == 0)
		completion->expected = EXPECT_TOPIC;
	else if (completion->command != NULL)
		read_words(completion, words, count);
}

void completion_release(struct completion *completion)
{
	free(completion->common);
}

/* --- what may be there ---------------------------------------------------- */

static void list_commands(const struct completion *completion,
			  struct buffer *text, bool also_options)
{
	for (const struct command *each = completion->commands; each->name;
	     each++)
		buffer_print(text, "%s\t%s\n", each->name, each->summary);
	if (also_options)
		buffer_print(text, "help\topen the manual of a command\n"
				   "--help\tlist the commands\n"
				   "--version\tshow the version\n");
}

static void list_options(const struct completion *completion,
			 struct buffer *text)
{
	for (size_t i = 0; i < option_count; i++) {
		const struct option *option = &options[i];
		const char *help =
			options_help(option, completion->command->id);

		if (!takes(completion, option) ||
		    (!option->repeats &&
		     (completion->given & options_bit(option))))
			continue;
		buffer_print(text, "--%s\t%s\n", option->name, help);
		if (option->other[0] != '\0')
			buffer_print(text, "--%s\t%s\n", option->other, help);
		if (option->letter != 0)
			buffer_print(text, "-%c\t%s\n", option->letter, help);
		if (option->other_letter != 0)
			buffer_print(text, "-%c\t%s\n", option->other_letter,
				     help);
	}
}

/* The words of a list. */
static void list_words(struct buffer *text, const char *prefix,
		       const char *words, const char *separators)
{
	for (words += strspn(words, separators); *words != '\0';
	     words += strspn(words, separators)) {
		size_t length = strcspn(words, separators);

		buffer_print(text, "%s%.*s\n", prefix, (int)length, words);
		words += length;
	}
}

static void list_values(const struct option *option, const char *prefix,
			struct buffer *text)
{
	static const char signal[] = "SIGNAL";
	const char *value = option->value, *at = strstr(value, signal), *name;

	if (strcmp(value, "URL") == 0) {
		list_words(text, prefix,
			   "redis:// rediss:// redis+sentinel:// "
			   "rediss+sentinel:// redis+cluster:// "
			   "rediss+cluster:// unix:/// local:",
			   " ");
	} else if (strcmp(value, "DURATION") == 0) {
		list_words(text, prefix, "500ms 5s 30s 1m 5m", " ");
	} else if (strcmp(option->name, "accept") == 0) {
		list_words(text, prefix, WARNING_NAMES, ", ");
	} else if (at != NULL) {
		char words[sizeof(option->value)] = "";

		memcpy(words, value, (size_t)(at - value));
		list_words(text, prefix, words, "|");
		for (size_t n = 0; (name = signals_name(n)) != NULL; n++)
			buffer_print(text, "%s%s\n", prefix, name);
	} else if (strpbrk(value, "abcdefghijklmnopqrstuvwxyz") != NULL) {
		list_words(text, prefix, value, "|");
	}
}

void completion_list(const struct completion *completion, const char *prefix,
		     struct buffer *text)
{
	switch (completion->expected) {
	case EXPECT_SUBCOMMAND:
	case EXPECT_TOPIC:
		list_commands(completion, text,
			      completion->expected == EXPECT_SUBCOMMAND);
		break;
	case EXPECT_OPTION:
		list_options(completion, text);
		break;
	case EXPECT_VALUE:
		list_values(completion->option, prefix, text);
		break;
	default:
		break;
	}
}

const char *completion_value(const struct completion *completion)
{
	return completion->expected == EXPECT_VALUE ? completion->option->value
						    : "";
}
