#include "server/identity.h"

#include <string.h>

#include "base/deadline.h"
#include "base/lease.h"
#include "base/number.h"

#define UPTIME_MOST INT64_C(9999999999) /* s */

const char *identity_find(const char *text, const char *name, size_t *length)
{
	const char *at = strstr(text, name);

	if (at == NULL)
		return NULL;
	at += strlen(name);
	*length = strcspn(at, "\r\n");
	return at;
}

/* Redis 6 was the first to have users. */
static bool has_users(const char *info)
{
	size_t unused;
	const char *version = identity_find(info, "\nredis_version:", &unused);
	int64_t major;

	return version == NULL || number_read(&version, 0, 999, &major) < 0 ||
	       major >= 6;
}

int identity_read_info(struct identity *identity, const struct reply *reply)
{
	const char *text = reply->count == 1 ? reply->value[0].text : NULL;
	const char *run_id, *uptime;
	size_t length = 0, unused;
	int64_t seconds;

	if (text == NULL)
		return -1;
	run_id = identity_find(text, "\nrun_id:", &length);
	uptime = identity_find(text, "\nuptime_in_seconds:", &unused);
	if (run_id == NULL || length != sizeof(identity->run_id) - 1 ||
	    uptime == NULL ||
	    number_read(&uptime, -UPTIME_MOST, UPTIME_MOST, &seconds) < 0)
		return -1;
	memcpy(identity->run_id, run_id, length);
	identity->run_id[length] = '\0';
	identity->set_back = seconds < 0;
	if (identity->set_back)
		seconds = 0;
	/*
	 * A difference of two clock readings in whole seconds can be nearly a
	 * second more than what has passed.
	 */
	identity->started = clock_ms() - (seconds - 1) * 1000;
	identity->has_users = has_users(text);
	identity->appends = identity->durable = false;
	identity->claim.appends = identity->claim.durable = false;
	identity->known = true;
	return 0;
}

static bool is_word(const char *text, size_t length, const char *word)
{
	return length == strlen(word) && memcmp(text, word, length) == 0;
}

/* Valkey may call it server_mode. */
bool identity_is_alone(const struct reply *info)
{
	const char *text = info->count == 1 ? info->value[0].text : NULL;
	const char *mode = NULL;
	size_t length = 0;

	if (text != NULL)
		mode = identity_find(text, "\nredis_mode:", &length);
	if (text != NULL && mode == NULL)
		mode = identity_find(text, "\nserver_mode:", &length);
	return mode != NULL && (is_word(mode, length, "standalone") ||
				is_word(mode, length, "sentinel"));
}

static bool is_text(const struct value *value, const char *text)
{
	return value->text != NULL && strcmp(value->text, text) == 0;
}

static void believe(struct identity *identity)
{
	identity->appends = identity->claim.appends;
	identity->durable = identity->claim.durable;
}

void identity_read_config(struct identity *identity, const struct reply *reply)
{
	bool appends = false, always = false;

	for (size_t i = 0; i + 1 < reply->count; i += 2) {
		const struct value *name = &reply->value[i];

		if (is_text(name, "appendonly"))
			appends = is_text(name + 1, "yes");
		else if (is_text(name, "appendfsync"))
			always = is_text(name + 1, "always");
	}
	identity->claim.appends = appends;
	identity->claim.durable = appends && always;
	if (!identity_is_doubtful(identity))
		believe(identity);
}

/* --- what it has read when it started ------------------------------------ */

bool identity_is_doubtful(const struct identity *identity)
{
	return identity->claim.appends && !identity->appends &&
	       identity->has_users &&
	       clock_ms() - identity->started < LEASE_LONGEST;
}

/* Redis 6 has lists of patterns, and says in the flags what is not limited. */
static bool has_flag(const struct reply *reply, const char *flag)
{
	size_t at = 0;

	while (at + 1 < reply->count && !is_text(&reply->value[at], "flags"))
		at += 2;
	for (size_t n = 0; n < reply_item_count(reply, at + 1); n++) {
		struct value item = reply_item(reply, at + 1, n);

		if (is_text(&item, flag))
			return true;
	}
	return false;
}

bool identity_may_do_all(const struct reply *reply)
{
	struct value commands = reply_pair(reply, "commands"),
		     keys = reply_pair(reply, "keys"),
		     channels = reply_pair(reply, "channels");

	return is_text(&commands, "+@all") &&
	       (is_text(&keys, "~*") || has_flag(reply, "allkeys")) &&
	       (is_text(&channels, "&*") || has_flag(reply, "allchannels") ||
		channels.text == NULL); /* Redis 6.0 does not limit them */
}

void identity_read_user(struct identity *identity, const struct reply *reply)
{
	if (identity_may_do_all(reply))
		believe(identity);
}
