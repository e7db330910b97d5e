#include "lock/script.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "scripts.h" /* made from lua/ */

#define RECORD_SUFFIX "redlock"

/* What a script is put together from, in this order. */
#define PARTS_MAX 5

struct script {
	const char *parts[PARTS_MAX + 1];
};

#define SCRIPT(...) ((struct script){{__VA_ARGS__}})

static const char *const kind_names[] = {
	[KIND_EXCLUSIVE] = "string", [KIND_REENTRANT] = "hash",
	[KIND_SHARED] = "zset",      [KIND_PERMITS] = "zset",
	[KIND_NONE] = "none",
};

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

struct argument script_record_name(struct argument key)
{
	bool tagged = is_tagged(key);
	struct buffer name = {0};

	buffer_append(&name, "{", tagged ? 0 : 1);
	buffer_append(&name, key.data, key.length);
	buffer_append(&name, "}", tagged ? 0 : 1);
	buffer_print(&name,
		     is_in_braces(key) ? RECORD_SUFFIX : ":" RECORD_SUFFIX);
	return (struct argument){name.data, name.length};
}

bool script_is_reserved(struct argument key)
{
	const char *at = key.data, *end = key.data + key.length;
	size_t suffix = sizeof(RECORD_SUFFIX) - 1;

	while ((at = memmem(at, (size_t)(end - at), RECORD_SUFFIX, suffix)) !=
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

struct argument script_name(struct argument record, const char *suffix)
{
	struct buffer name = {0};

	buffer_append(&name, record.data, record.length);
	buffer_print(&name, "%s", suffix);
	return (struct argument){name.data, name.length};
}

struct argument script_channel(const struct lock *lock)
{
	const char *hold = lock->hold[0] == '-' ? "" : lock->hold;
	struct buffer name = {0};

	buffer_append(&name, lock->record.data, lock->record.length);
	buffer_print(&name, ":%s%s%s", hold, *hold != '\0' ? ":" : "",
		     lock->token);
	return (struct argument){name.data, name.length};
}

/* About these keys; behind the token come count arguments more. */
static void ask_about(struct lock *lock, size_t i, struct script script,
		      bool sticky, const struct argument *keys,
		      size_t key_count, const char *const *more, size_t count)
{
	char db[12], number_of_keys[12];
	struct buffer globals = {0};
	struct argument arguments[ARGUMENTS_MAX] = {{"EVAL", 4}};
	struct argument *next = arguments + 3, *text = arguments + 1;
	struct server *server = &lock->quorum->servers[i];

	if (key_count > 0)
		server_aim(server, keys[0]);
	buffer_print(&globals, "local afterlife,clustered=%" PRId64 "%s\n",
		     lock->afterlife,
		     server->url.kind == URL_CLUSTER ? ",true" : "");
	text[1] = (struct argument){globals.data, globals.length};
	for (const char **part = script.parts; *part != NULL; part++)
		*next++ = (struct argument){*part, strlen(*part)};
	text->length = (size_t)(next - text - 1);
	next->length = (size_t)snprintf(number_of_keys, sizeof(number_of_keys),
					"%zu", key_count);
	next++->data = number_of_keys;
	for (size_t k = 0; k < key_count; k++)
		*next++ = keys[k];
	next->length =
		(size_t)snprintf(db, sizeof(db), "%" PRIu32, server->url.db);
	next++->data = db;
	*next++ = (struct argument){lock->token, strlen(lock->token)};
	for (size_t k = 0; k < count; k++)
		*next++ = (struct argument){more[k], strlen(more[k])};
	quorum_ask(lock->quorum, i, sticky, arguments,
		   (size_t)(next - arguments));
	buffer_release(&globals);
}

static void ask(struct lock *lock, size_t i, struct script script, bool sticky,
		const char *const *more, size_t count)
{
	const struct argument keys[] = {lock->key, lock->record, lock->queue,
					lock->wishes, lock->waits};

	ask_about(lock, i, script, sticky, keys, 5, more, count);
}

static const char *number(char text[24], int64_t value)
{
	snprintf(text, 24, "%" PRId64, value);
	return text;
}

/* request: 0 for one that does not queue. */
static void acquire(struct lock *lock, size_t i, int64_t kept_fence,
		    uint64_t request, int64_t waited)
{
	char ttl[24], clock[24], kept[24], permits[24], nth[24], since[24];
	const char *more[] = {
		number(ttl, lock->ttl),
		number(clock, lock->clock),
		lock->description.data,
		number(kept, kept_fence),
		kind_names[lock->kind],
		number(permits, lock->permits),
		lock->hold,
		number(nth, (int64_t)request),
		request > 0 ? "1" : "0",
		number(since, waited),
		lock->ancestor != NULL ? lock->ancestor : "",
	};

	lock->told[i].asked = clock_ms();
	ask(lock, i, SCRIPT(common_lua, settle_lua, data_lua, acquire_lua),
	    true, more, sizeof(more) / sizeof(more[0]));
}

void script_acquire(struct lock *lock, size_t i)
{
	acquire(lock, i, 0, 0, 0);
}

void script_queue(struct lock *lock, size_t i, uint64_t request, int64_t waited)
{
	acquire(lock, i, 0, request, waited);
}

void script_put_back(struct lock *lock, size_t i)
{
	acquire(lock, i, lock->seen > lock->fence ? lock->seen : lock->fence, 0,
		0);
}

void script_extend(struct lock *lock, size_t i)
{
	char ttl[24];
	const char *as_taken = lock->as_taken ? "1" : "0";
	/* whoever has only the token knows no hold of its own */
	const char *hold = lock->hold[0] == '*' ? "-" : lock->hold;

	ask(lock, i, SCRIPT(common_lua, extend_lua), false,
	    (const char *[]){number(ttl, lock->ttl), hold, as_taken}, 3);
}

void script_release(struct lock *lock, size_t i, int64_t linger)
{
	char ms[24];

	server_withdraw(&lock->quorum->servers[i]);
	ask(lock, i, SCRIPT(common_lua, settle_lua, release_lua), false,
	    (const char *[]){lock->hold, number(ms, linger)}, 2);
}

void script_raise(struct lock *lock, size_t i)
{
	char fence[24];

	ask(lock, i, SCRIPT(raise_lua), false,
	    (const char *[]){number(fence, lock->fence)}, 1);
}

void script_inspect(struct lock *lock, size_t i, size_t holders, size_t waiters)
{
	char from[24], behind[24];

	ask(lock, i, SCRIPT(common_lua, view_lua, inspect_lua), false,
	    (const char *[]){number(from, (int64_t)holders),
			     number(behind, (int64_t)waiters)},
	    2);
}

void script_break(struct lock *lock, size_t i, const char *mark, bool foreign)
{
	ask(lock, i,
	    SCRIPT(common_lua, settle_lua, view_lua, data_lua, break_lua), true,
	    (const char *[]){mark, foreign ? "1" : "0"}, 2);
}

void script_scan(struct lock *lock, size_t i, const char *cursor,
		 const char *pattern)
{
	ask_about(lock, i, SCRIPT(common_lua, scan_lua), false, NULL, 0,
		  (const char *[]){cursor, pattern}, 2);
}

void script_rights(struct lock *lock, size_t i)
{
	ask_about(lock, i, SCRIPT(rights_lua), false, NULL, 0,
		  (const char *[]){lock->key.data, lock->record.data,
				   lock->queue.data, lock->wishes.data,
				   lock->waits.data},
		  5);
}

void script_look(struct lock *lock, size_t i, const struct argument *pairs,
		 size_t count)
{
	ask_about(lock, i, SCRIPT(common_lua, view_lua, look_lua), false, pairs,
		  2 * count, NULL, 0);
}
