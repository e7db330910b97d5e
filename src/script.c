#include "script.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "scripts.h" /* made from lua/ */

struct script {
	const char *text;
	size_t length;
};

#define SCRIPT(text) ((struct script){text, sizeof(text) - 1})

struct argument script_record_name(struct argument key)
{
	const char *end = key.data + key.length;
	const char *open = memchr(key.data, '{', key.length);
	const char *shut =
		open == NULL ? NULL
			     : memchr(open + 1, '}', (size_t)(end - open - 1));
	bool tagged = shut != NULL && shut > open + 1;
	struct buffer name = {0};

	buffer_append(&name, "{", tagged ? 0 : 1);
	buffer_append(&name, key.data, key.length);
	buffer_append(&name, "}", tagged ? 0 : 1);
	buffer_print(&name, ":redlock");
	return (struct argument){name.data, name.length};
}

/* Behind the token come count arguments more. */
static void ask(struct lock *lock, size_t i, struct script script, bool sticky,
		const char *const *more, size_t count)
{
	char db[12];
	int digits = snprintf(db, sizeof(db), "%" PRIu32,
			      lock->quorum->servers[i].url.db);
	struct argument arguments[ARGUMENTS_MAX] = {
		{"EVAL", 4},
		{script.text, script.length},
		{"2", 1},
		lock->key,
		lock->record,
		{db, (size_t)digits},
		{lock->token, strlen(lock->token)},
	};

	for (size_t k = 0; k < count; k++)
		arguments[7 + k] = (struct argument){more[k], strlen(more[k])};
	quorum_ask(lock->quorum, i, sticky, arguments, 7 + count);
}

static const char *number(char text[24], int64_t value)
{
	snprintf(text, 24, "%" PRId64, value);
	return text;
}

void script_acquire(struct lock *lock, size_t i, int64_t kept_fence)
{
	char ttl[24], clock[24], kept[24];

	ask(lock, i, SCRIPT(acquire_lua), true,
	    (const char *[]){number(ttl, lock->ttl), number(clock, lock->clock),
			     lock->description.data, number(kept, kept_fence)},
	    4);
}

void script_extend(struct lock *lock, size_t i)
{
	char ttl[24];

	ask(lock, i, SCRIPT(extend_lua), false,
	    (const char *[]){number(ttl, lock->ttl)}, 1);
}

void script_release(struct lock *lock, size_t i)
{
	server_withdraw(&lock->quorum->servers[i]);
	ask(lock, i, SCRIPT(release_lua), false, NULL, 0);
}

void script_raise(struct lock *lock, size_t i)
{
	char fence[24];

	ask(lock, i, SCRIPT(raise_lua), false,
	    (const char *[]){number(fence, lock->fence)}, 1);
}
