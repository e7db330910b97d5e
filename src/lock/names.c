#include "lock/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

static bool is_tagged(struct argument key)
{
	const char *end = key.data + key.length;
	const char *open = memchr(key.data, '{', key.length);
	const char *shut =
		open == NULL ? NULL
			     : memchr(open + 1, '}', (size_t)(end - open - 1));

	return shut != NULL && shut > open + 1;
}

static bool ends_in_brace(struct argument key)
{
	return key.length > 0 && key.data[key.length - 1] == '}';
}

/* Its name may be that of another KEY, without a tag, in braces: "{x}" is "x"
 * so, and "{a}b}" is "a}b". */
static bool is_in_braces(struct argument key)
{
	return is_tagged(key) && key.data[0] == '{' && ends_in_brace(key);
}

struct argument names_record(struct argument key)
{
	bool tagged = is_tagged(key);
	struct buffer name = {0};

	buffer_append(&name, "{", tagged ? 0 : 1);
	buffer_append(&name, key.data, key.length);
	buffer_append(&name, "}", tagged ? 0 : 1);
	buffer_print(&name,
		     is_in_braces(key) ? NAMES_SUFFIX : ":" NAMES_SUFFIX);
	return (struct argument){name.data, name.length};
}

bool names_are_reserved(struct argument key)
{
	const char *at = key.data, *end = key.data + key.length;
	size_t suffix = sizeof(NAMES_SUFFIX) - 1;

	while ((at = memmem(at, (size_t)(end - at), NAMES_SUFFIX, suffix)) !=
	       NULL) {
		struct argument base = {key.data, (size_t)(at - key.data)};

		at += suffix;
		if (at < end && *at != ':')
			continue;
		if (is_in_braces(base))
			return true;
		if (base.length == 0 || base.data[--base.length] != ':')
			continue;
		if (is_tagged(base) || ends_in_brace(base))
			return true;
	}
	return false;
}

static struct argument below(struct argument record, const char *suffix)
{
	struct buffer name = {0};

	buffer_append(&name, record.data, record.length);
	buffer_print(&name, "%s", suffix);
	return (struct argument){name.data, name.length};
}

void names_init_bytes(struct names *names, struct argument key)
{
	*names = (struct names){.key = key};
	names->record = names_record(key);
	names->queue = below(names->record, ":queue");
	names->wishes = below(names->record, ":wishes");
	names->waits = below(names->record, ":waits");
}

void names_init(struct names *names, const char *key)
{
	names_init_bytes(names, (struct argument){key, strlen(key)});
}

void names_release(struct names *names)
{
	free((char *)names->record.data);
	free((char *)names->queue.data);
	free((char *)names->wishes.data);
	free((char *)names->waits.data);
	*names = (struct names){0};
}

struct argument names_channel(const struct names *names, const char *hold,
			      const char *token)
{
	struct buffer name = {0};

	buffer_append(&name, names->record.data, names->record.length);
	if (hold[0] != '-')
		buffer_print(&name, ":%s", hold);
	buffer_print(&name, ":%s", token);
	return (struct argument){name.data, name.length};
}

struct argument names_redisson(const struct names *names)
{
	const struct argument *key = &names->key;
	bool tagged = memchr(key->data, '{', key->length) != NULL;
	struct buffer name = {0};

	buffer_print(&name, "redisson_lock__channel:%s", tagged ? "" : "{");
	buffer_append(&name, key->data, key->length);
	if (!tagged)
		buffer_print(&name, "}");
	return (struct argument){name.data, name.length};
}
