/*
 * What users write (durations, URLs, signal names, REDLOCK_HELD), what servers
 * publish, and every byte string made
 * fit for a terminal, JSON and a shell. Built with -fsanitize=fuzzer.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "duration.h"
#include "held.h"
#include "output.h"
#include "record.h"
#include "requests.h"
#include "signals.h"
#include "suggest.h"
#include "url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_duration(const char *text)
{
	char formatted[DURATION_TEXT];
	int64_t ms = -1;

	if (duration_parse(text, &ms) == 0 && (ms < 0 || ms > DURATION_MAX))
		abort();
	if (ms >= 0)
		duration_format(formatted, ms);
}

static void fuzz_url(const char *text)
{
	struct error error;
	struct url url;

	if (url_parse(&url, text, &error) < 0)
		return;
	/* what is shown of it can be read again and is the same */
	if (url.kind != URL_LOCAL) {
		struct url again;

		if (url_parse(&again, url.name, &error) < 0 ||
		    strcmp(url.name, again.name) != 0 || url.db != again.db ||
		    again.password != NULL)
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

	config_init(&settings);
	config_add_servers(&settings, list, &error);
	config_release(&settings);
	free(list);
}

static void fuzz_output(const char *text, size_t size)
{
	struct buffer buffer = {0};
	struct holder holder;
	struct busy busy = {.told = true, .known = true, .held = -1};

	output_visible(&buffer, text, size, 0);
	for (size_t i = 0; i < buffer.length; i++)
		if (buffer.data[i] < ' ' || buffer.data[i] > '~')
			abort();
	output_visible(&buffer, text, size, 1);
	output_json(&buffer, text, size);
	output_shell(&buffer, text);
	record_parse(&holder, text, size);
	busy.holder = holder;
	record_print_busy(&buffer, &busy);
	buffer_release(&buffer);
}

/* REDLOCK_HELD: what is put in is found again, whatever stands before it. */
static void fuzz_held(const char *text)
{
	struct buffer held = {0};
	char token[TOKEN_SIZE];

	held_find(text, "key", token, sizeof(token));
	buffer_print(&held, "%s", text);
	held_append(&held, text, "0123456789abcdef");
	if (!held_find(held.data, text, token, sizeof(token)) ||
	    strcmp(token, "0123456789abcdef") != 0)
		abort();
	buffer_release(&held);
}

/* What is published: a vote is for a request that was made, within its time. */
static void fuzz_message(const char *text, size_t size)
{
	struct url url = {.name = (char *)"server"};
	struct server server = {.url = url};
	struct quorum quorum = {.servers = &server, .count = 1, .permits = 1};
	struct lock lock = {.quorum = &quorum, .ttl = 30000, .hold = "-"};
	struct requests requests = {.lock = &lock};
	int64_t now = clock_ms();

	requests.at[0] = (struct standing){.sent = 3, .oldest = 2};
	requests.at[0].sent_at[2] = requests.at[0].sent_at[3] = now;
	requests_message(&requests, 0, text, size);
	if (lock.vote[0] == VOTE_YES &&
	    (lock.fences[0] <= 0 || requests.at[0].oldest <= 2 ||
	     requests.at[0].valid.at > now + lock.ttl))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"acquire", "release", "run"};
	char *text = malloc(size + 1);

	memcpy(text, data, size);
	text[size] = '\0';
	fuzz_duration(text);
	fuzz_url(text);
	fuzz_servers(text);
	fuzz_output(text, size);
	fuzz_held(text);
	fuzz_message(text, size);
	signals_parse(text);
	suggest_nearest(text, names, 3);
	free(text);
	return 0;
}
