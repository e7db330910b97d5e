#include <string.h>

#include "base/tokens.h"
#include "cmd/json.h"
#include "cmd/print.h"
#include "cmd/session.h"
#include "cmd/text.h"
#include "settings/command.h"
#include "show/inspect.h"

static const char *state_of(const struct holders *holders, bool answered)
{
	int held = holders_is_held(holders);

	if (!answered)
		return "unknown";
	if (held > 0)
		return "held";
	if (holders_misused(holders) >= quorum_size(holders->ballot.quorum))
		return "misused";
	if (held < 0)
		return "unknown";
	return holders_servers(holders, STANDING_HELD) > 0 ? "partial" : "free";
}

/* KEY looks like a pattern, and nobody has ever held it. */
static void hint_at_list(const char *key, const struct holders *holders)
{
	if (strpbrk(key, "*?[") != NULL && holders_fence(holders) == 0 &&
	    holders_speaker(holders) == holders->ballot.quorum->count)
		log_notice("%s: status takes no patterns: redlock list '%s' "
			   "lists the locks that match",
			   key, key);
}

/* Of a lock that nobody holds; for programs, of any. What the servers do not tell is not
 * worth an error. */
static const struct past_run *last_run(struct history *history,
				       const struct settings *settings,
				       const char *state, bool answered)
{
	bool wanted = strcmp(state, "free") == 0 ||
		      (settings->format == FORMAT_JSON && answered);
	struct error ignored;

	if (!wanted || history_read(history, &ignored) < 0)
		return NULL;
	return history_last(history);
}

static int show(struct quorum *quorum, const struct settings *settings,
		const char *key)
{
	struct buffer text = {0};
	struct holders holders;
	struct history history;
	struct error error;
	const struct past_run *last;
	const char *state;
	bool answered;
	int status;

	quorum_turn(quorum);
	holders_init(&holders, quorum, key);
	history_init(&history, quorum, key);
	holders.ballot.quarantine = settings->quarantine;
	answered = inspect_lock(&holders, &error) == 0;
	state = state_of(&holders, answered);
	last = last_run(&history, settings, state, answered);
	if (settings->format == FORMAT_JSON)
		json_holders(&text, &holders, state, last);
	else
		text_holders(&text, &holders, state, last);
	status = cmd_show(text.data, text.length);
	if (!answered) {
		log_error("%s: %s", key, error.text);
		status = error.code;
	} else if (settings->format == FORMAT_PEOPLE) {
		hint_at_list(key, &holders);
	}
	buffer_release(&text);
	history_release(&history);
	holders_release(&holders);
	return status;
}

static int ask_about(struct quorum *quorum, const struct settings *settings,
		     const char *key)
{
	char token[TOKEN_LONGEST + 1];
	bool has_token =
		settings->token != NULL &&
		tokens_pick(settings->token, settings_key_count(settings),
			    settings_key_index(settings, key), token);
	struct holders holders;
	struct error error;
	int held;

	quorum_turn(quorum);
	holders_init(&holders, quorum, key);
	held = inspect_is_held(&holders, has_token ? token : NULL, &error);
	if (held < 0)
		log_error("%s: %s", key, error.text);
	holders_release(&holders);
	return held < 0 ? error.code : held ? EXIT_DONE : EXIT_NOT_HELD;
}

/* The worst of all keys. */
static int ask_quietly(struct quorum *quorum, const struct settings *settings)
{
	int worst = EXIT_DONE;

	for (size_t i = 0; i < settings_key_count(settings); i++) {
		int status =
			ask_about(quorum, settings, settings_key(settings, i));

		if (status > worst)
			worst = status;
	}
	return worst;
}

int cmd_status(struct settings *settings)
{
	struct quorum quorum;
	int status = cmd_open_quorum(&quorum, settings);

	if (status != 0)
		return status;
	if (settings->quiet)
		status = ask_quietly(&quorum, settings);
	for (size_t k = 0; k < settings->key_count && !settings->quiet; k++) {
		int shown = show(&quorum, settings, settings->keys[k]);

		if (status == EXIT_DONE)
			status = shown;
	}
	quorum_release(&quorum);
	return status;
}
