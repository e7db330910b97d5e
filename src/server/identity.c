#include "server/identity.h"

#include <stdlib.h>
#include <string.h>

#include "base/deadline.h"

const char *identity_find(const char *text, const char *name, size_t *length)
{
	const char *at = strstr(text, name);

	if (at == NULL)
		return NULL;
	at += strlen(name);
	*length = strcspn(at, "\r\n");
	return at;
}

int identity_read_info(struct identity *identity, const struct reply *reply)
{
	const char *text = reply->count == 1 ? reply->value[0].text : NULL;
	const char *run_id, *uptime;
	size_t length, digits;

	if (text == NULL)
		return -1;
	run_id = identity_find(text, "\nrun_id:", &length);
	uptime = identity_find(text, "\nuptime_in_seconds:", &digits);
	if (run_id == NULL || length != sizeof(identity->run_id) - 1 ||
	    uptime == NULL || digits < 1 || digits > 10)
		return -1;
	memcpy(identity->run_id, run_id, length);
	identity->run_id[length] = '\0';
	/*
	 * A difference of two clock readings in whole seconds can be nearly a
	 * second more than what has passed.
	 */
	identity->started = clock_ms() - (strtoll(uptime, NULL, 10) - 1) * 1000;
	identity->appends = identity->durable = false;
	identity->known = true;
	return 0;
}

static bool is_text(const struct value *value, const char *text)
{
	return value->text != NULL && strcmp(value->text, text) == 0;
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
	identity->appends = appends;
	identity->durable = appends && always;
}
