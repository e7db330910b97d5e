/*
 * What users write (command lines, durations, URLs, lists of them, patterns,
 * signal names, variables, REDLOCK_HELD, REDLOCK_SERVERS), what is read out of
 * replies (messages, refusals, INFO, nodes), names of records, suggestions,
 * passwords in labels, and every byte string made fit for a terminal, JSON and a
 * shell. The first byte is the part, the rest its text. Built with
 * -fsanitize=fuzzer.
 */
#include <ctype.h>
#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "settings/arguments.h"
#include "settings/config.h"
#include "base/duration.h"
#include "settings/environment.h"
#include "run/ancestry.h"
#include "settings/options.h"
#include "base/output.h"
#include "lock/record.h"
#include "lock/run.h"
#include "wait/requests.h"
#include "lock/names.h"
#include "base/signals.h"
#include "server/cluster.h"
#include "server/hash_slot.h"
#include "settings/suggest.h"
#include "net/url.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *nothing[] = {NULL}; /* in the environment */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return setlocale(LC_CTYPE, "C.UTF-8") == NULL;
}

static void fuzz_duration(const char *text)
{
	char formatted[DURATION_TEXT];
	int64_t ms = -1, shown = -1;

	if (duration_parse(text, &ms) != DURATION_OK) {
		if (ms != -1)
			abort();
		return;
	}
	if (ms < 0 || ms > DURATION_MAX)
		abort();
	/* what is shown of it can be written, and is not more */
	duration_format(formatted, ms);
	if (duration_parse(formatted, &shown) != DURATION_OK || shown > ms)
		abort();
}

/* Scheme and path, or host: nothing of what is before an '@'. */
static void check_quote(const char *text)
{
	char shown[URL_QUOTED];
	const char *at = strrchr(text, '@'), *host;
	size_t length;

	url_quote(text, shown);
	length = strlen(shown);
	if (length >= 3 && strcmp(shown + length - 3, "...") == 0)
		shown[length - 3] = '\0';
	for (const char *c = shown; *c != '\0'; c++)
		if (!isalnum((unsigned char)*c) &&
		    strchr("+:/[]._-%~", *c) == NULL)
			abort();
	host = strstr(shown, "://");
	if (at != NULL && host != NULL && strncmp(text, "unix:", 5) != 0 &&
	    strncmp(at + 1, host + 3, strlen(host + 3)) != 0)
		abort();
}

static void fuzz_url(const char *text)
{
	struct error error;
	struct url url;

	check_quote(text);
	if (url_parse(&url, text, &error) < 0)
		return;
	/* what is shown of it can be read again and is the same */
	if (url.kind != URL_LOCAL) {
		struct url again;

		if (url_parse(&again, url.name, &error) < 0 ||
		    strcmp(url.name, again.name) != 0 || url.db != again.db ||
		    url.tls != again.tls || !url_is_same(&url, &again) ||
		    again.password != NULL || again.seed_password != NULL)
			abort();
		url_release(&again);
	}
	url_release(&url);
}

static void fuzz_servers(const char *text)
{
	struct settings settings;
	struct error error;
	char *list = strdup(text);

	settings_init(&settings);
	settings_add_servers(&settings, list, &error);
	settings_release(&settings);
	free(list);
}

/* One string, whole UTF-8 (or mbstowcs would not take it), no control. */
static void check_json(const struct buffer *buffer)
{
	struct buffer visible = {0};

	for (size_t i = 0; i < buffer->length; i++) {
		unsigned char byte = (unsigned char)buffer->data[i];
		bool ends = i == 0 || i == buffer->length - 1;

		if (byte < ' ' || byte == 0x7f || (byte == '"') != ends)
			abort();
		if (byte == '\\')
			i++;
	}
	if (mbstowcs(NULL, buffer->data, 0) == (size_t)-1)
		abort();
	/* people would see the same */
	output_visible(&visible, buffer->data, buffer->length, 1);
	if (strcmp(visible.data, buffer->data) != 0)
		abort();
	buffer_release(&visible);
}

static void fuzz_output(const char *text, size_t size)
{
	struct past_run run;
	struct buffer buffer = {0};
	struct holder holder;
	struct busy busy = {
		.has_reply = true, .has_description = true, .held = -1};

	output_visible(&buffer, text, size, 0);
	for (size_t i = 0; i < buffer.length; i++)
		if (buffer.data[i] < ' ' || buffer.data[i] > '~')
			abort();
	output_visible(&buffer, text, size, 1);
	buffer.length = 0;
	output_json(&buffer, text, size);
	check_json(&buffer);
	buffer.length = 0;
	output_shell(&buffer, text);
	if (output_fit(text, size, 7) > size)
		abort();
	record_parse(&holder, text, size);
	if (run_read(&run, text, size, 1) == 0) {
		run_print(&buffer, &run);
		run_print_success(&buffer, &run, 1);
	}
	busy.holder = holder;
	record_print_busy(&buffer, &busy);
	buffer_release(&buffer);
}

/* REDLOCK_HELD: what is put in is found again, whatever stands before it. */
static void fuzz_held(const char *text)
{
	struct buffer held = {0};
	char token[TOKEN_SIZE];

	ancestry_find(text, "key", token, sizeof(token));
	buffer_print(&held, "%s", text);
	ancestry_append(&held, text, "0123456789abcdef");
	if (!ancestry_find(held.data, text, token, sizeof(token)) ||
	    strcmp(token, "0123456789abcdef") != 0)
		abort();
	buffer_release(&held);
}

/* What is published: a vote is for a request that was made, within its time. */
static void fuzz_message(const char *text, size_t size)
{
	struct url url = {.name = (char *)"server"};
	struct server server = {.url = url};
	struct quorum quorum = {.servers = &server, .count = 1};
	struct lock lock = {
		.ballot.quorum = &quorum, .wish.ttl = 30000, .grant.hold = "-"};
	struct requests requests = {.lock = &lock};
	int64_t now = clock_ms();

	requests.at[0] = (struct contact){.sent = 3, .oldest = 2};
	requests.at[0].sent_at[2] = requests.at[0].sent_at[3] = now;
	requests_message(&requests, 0, text, size);
	if (lock.ballot.vote[0] == VOTE_YES &&
	    (lock.ballot.fence[0] <= 0 || requests.at[0].oldest <= 2 ||
	     requests.at[0].valid.at > now + lock.wish.ttl))
		abort();
}

static void check_endpoint(const struct endpoint *endpoint)
{
	if (endpoint->host[0] == '\0' || endpoint->port == 0)
		abort();
}

/* CLUSTER NODES: places that could be connected to, or none. */
static void fuzz_nodes(const char *text, size_t size)
{
	struct endpoint name = {0};
	struct nodes nodes;

	if (hash_slot(text, size) >= 16384)
		abort();
	for (int by_name = 0; by_name < 2; by_name++) {
		if (nodes_read(&nodes, text, "self", by_name) == 0 &&
		    nodes.count == 0)
			abort();
		for (size_t i = 0; i < nodes.count; i++)
			check_endpoint(&nodes.list[i]);
		if (nodes.count > 0 &&
		    nodes_find_name(text, &nodes.list[0], &name) == 0)
			check_endpoint(&name);
		nodes_release(&nodes);
	}
	if (nodes_find_name(text, NULL, &name) == 0)
		check_endpoint(&name);
	else if (name.host != NULL)
		abort();
	endpoint_release(&name);
}

static void fuzz_refusal(const char *text)
{
	struct error_reply refusal = cause_of(text);

	if (refusal.text < text ||
	    refusal.text + refusal.length > text + strlen(text))
		abort();
	refusal = cause_of_login(text);
	if (refusal.cause < CAUSE_OTHER)
		abort();
}

/* Columns, indent, and text: broken at blanks, and nothing else is changed. */
static void fuzz_wrap(const char *text, size_t size)
{
	struct buffer visible = {0}, wrapped = {0};
	size_t at = 0;

	if (size < 3)
		return;
	output_visible(&visible, text + 2, size - 2, 1);
	output_wrap(&wrapped, visible.data, visible.length,
		    (unsigned char)text[0], (unsigned char)text[1] % 40);
	for (size_t i = 0; i < visible.length; i++) {
		if (visible.data[i] == ' ')
			continue;
		at += strspn(wrapped.data + at, " \n");
		if (wrapped.data[at++] != visible.data[i])
			abort();
	}
	buffer_release(&visible);
	buffer_release(&wrapped);
}

/* A password, a newline, and a label. */
static void fuzz_label(char *text)
{
	char *label = strchr(text, '\n');

	if (label == NULL)
		return;
	*label++ = '\0';
	url_hide_logins(label);
	url_hide_password(label, text);
	if (*text != '\0' && strchr(text, '*') == NULL &&
	    strstr(label, text) != NULL)
		abort();
}

/* What others call it is an option that there is. */
static void fuzz_synonym(const char *text)
{
	const struct synonym *synonym = suggest_option(text);

	if (synonym == NULL)
		return;
	if (synonym->option[0] == '\0'
		    ? suggest_text(synonym) == NULL
		    : options_find(synonym->option, strlen(synonym->option),
				   ~0U) == NULL)
		abort();
}

/* NAME=VALUE, after the prefix: known, or told once. */
static void fuzz_variable(const char *text, size_t size)
{
	struct buffer told = {0};
	char *entry = malloc(size + sizeof("REDLOCK_"));
	size_t at = 0;

	strcpy(entry, "REDLOCK_");
	strcat(entry, text);
	environ = nothing;
	putenv(entry);
	if (environment_next_unknown(&at, &told) &&
	    (told.length == 0 || environment_next_unknown(&at, &told)))
		abort();
	environ = nothing;
	free(entry);
	buffer_release(&told);
}

/* The command, and a word a line: all of it is understood, or it is said why. */
static void fuzz_arguments(char *text)
{
	struct command command = {.name = "command"};
	struct settings settings;
	struct error error = {0};
	char *words[32], *word;
	size_t count = 0;

	command.id = 1U << (unsigned char)*text % 9;
	for (text += *text != '\0'; count < 31 && (word = strsep(&text, "\n"));)
		words[count++] = word;
	words[count] = NULL;
	environ = nothing;
	settings_init(&settings);
	if (arguments_parse(&settings, &command, words, &error) < 0) {
		if (error.text[0] == '\0' || error.code == 0)
			abort();
	} else if (!settings.help && settings.key == NULL &&
		   !(command.id & (COMMAND_LIST | COMMAND_DOCTOR))) {
		abort();
	}
	settings_release(&settings);
}

/* A record's name tells its KEY from all others. */
static void fuzz_names(const char *text, size_t size)
{
	struct argument key = {text, size}, shorter = {text, size - 1};
	struct argument one = names_record(key);
	struct argument other = names_record(shorter);

	if (one.length == other.length &&
	    memcmp(one.data, other.data, one.length) == 0)
		abort();
	if (!names_are_reserved(one))
		abort();
	free((char *)one.data);
	free((char *)other.data);
}

/* INFO's text, and that of what CONFIG says beside it. */
static void fuzz_identity(char *text, size_t size)
{
	struct identity identity = {0};
	struct reply reply = {.count = 1, .value = {{text, size, 0}}};

	if (identity_read_info(&identity, &reply) == 0 &&
	    (strlen(identity.run_id) != sizeof(identity.run_id) - 1 ||
	     identity.started > clock_ms() + 1000))
		abort();
}

static void fuzz_token(const char *text)
{
	if (bounds_allow_token(text) && strpbrk(text, " %=\n\t\033") != NULL)
		abort();
}

/* The environment, as a program would find it. */
static void fuzz_environment(const char *text)
{
	struct settings settings;
	struct error error;

	setenv("REDLOCK_SERVERS", text, 1);
	settings_init(&settings);
	settings.key = "key";
	config_finish(&settings, &error);
	settings_release(&settings);
	unsetenv("REDLOCK_SERVERS");
}

/* The word, a newline, and a name: what is near is not much longer. */
static void fuzz_suggestion(char *text)
{
	const char *name, *nearest;
	char *end = strchr(text, '\n');

	if (end == NULL)
		return;
	*end = '\0';
	name = end + 1;
	nearest = suggest_nearest(text, &name, 1);
	if (nearest != NULL && (nearest != name || strlen(text) < 1 ||
				strlen(name) > strlen(text) + 2 ||
				strlen(text) > strlen(name) + 2))
		abort();
}

static void fuzz(char part, char *text, size_t size)
{
	static const char *const names[] = {"acquire", "release", "run"};

	switch (part) {
	case 'd':
		fuzz_duration(text);
		break;
	case 'u':
		fuzz_url(text);
		break;
	case 'l':
		fuzz_servers(text);
		break;
	case 'e':
		fuzz_environment(text);
		break;
	case 'o':
		fuzz_output(text, size);
		break;
	case 'h':
		fuzz_held(text);
		break;
	case 'm':
		fuzz_message(text, size);
		break;
	case 'r':
		fuzz_refusal(text);
		break;
	case 'n':
		fuzz_names(text, size);
		break;
	case 'c':
		fuzz_nodes(text, size);
		break;
	case 's':
		fuzz_suggestion(text);
		break;
	case 'i':
		fuzz_identity(text, size);
		break;
	case 'w':
		fuzz_wrap(text, size);
		break;
	case 'b':
		fuzz_label(text);
		break;
	case 'y':
		fuzz_synonym(text);
		break;
	case 'v':
		fuzz_variable(text, size);
		break;
	case 'a':
		fuzz_arguments(text);
		break;
	default:
		fuzz_token(text);
		signals_parse(text);
		suggest_nearest(text, names, 3);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (size < 2)
		return -1;
	text = malloc(size);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	fuzz((char)*data, text, size - 1);
	free(text);
	return 0;
}
