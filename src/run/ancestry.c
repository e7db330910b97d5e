#include "run/ancestry.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARKED_MOST 16384 /* bytes of entries */

static void encode(struct buffer *held, const char *text)
{
	for (; *text; text++)
		if (strchr(" %=", *text) != NULL ||
		    (unsigned char)*text < 0x20 || *text == 0x7f)
			buffer_print(held, "%%%02X", (unsigned char)*text);
		else
			buffer_append(held, text, 1);
}

void ancestry_append(struct buffer *held, const char *key, const char *token)
{
	if (held->length > 0)
		buffer_append(held, " ", 1);
	encode(held, key);
	buffer_append(held, "=", 1);
	buffer_append(held, token, strlen(token));
}

void ancestry_extend(struct buffer *held, struct lock *const *locks,
		     size_t count)
{
	const char *outer = getenv("REDLOCK_HELD");

	if (outer != NULL)
		buffer_print(held, "%s", outer);
	for (size_t i = 0; i < count; i++)
		ancestry_append(held, locks[i]->names.key.data,
				locks[i]->grant.token);
	if (count == 0)
		ancestry_append(held, "", locks[0]->grant.token);
}

/* An entry of what was inherited. */
struct entry {
	const char *text;
	size_t length;
	bool marked;
};

/* False after the last. *rest moves past it; rest is within `held`. */
static bool next_entry(const char *held, const char **rest, struct entry *entry)
{
	size_t blanks = strspn(*rest, " ");

	entry->text = *rest + blanks;
	entry->length = strcspn(entry->text, " ");
	entry->marked = blanks > (*rest > held ? 1 : 0);
	*rest = entry->text + entry->length;
	return entry->length > 0;
}

static bool is_of(const struct entry *entry, const struct lock *lock)
{
	struct buffer wanted = {0};
	bool result;

	encode(&wanted, lock->names.key.data);
	buffer_append(&wanted, "=", 1);
	result = entry->length > wanted.length &&
		 memcmp(entry->text, wanted.data, wanted.length) == 0;
	buffer_release(&wanted);
	return result;
}

static bool is_replaced(const struct entry *entry, struct lock *const *locks,
			size_t count)
{
	for (size_t i = 0; entry->marked && i < count; i++)
		if (is_of(entry, locks[i]))
			return true;
	return false;
}

static void append_entry(struct buffer *held, const struct entry *entry)
{
	if (held->length > 0)
		buffer_append(held, " ", 1);
	if (entry->marked)
		buffer_append(held, " ", 1);
	buffer_append(held, entry->text, entry->length);
}

void ancestry_extend_shell(struct buffer *held, struct lock *const *locks,
			   size_t count)
{
	const char *outer = getenv("REDLOCK_HELD"), *rest;
	size_t marked = 0; /* bytes */
	struct entry entry;

	if (outer == NULL)
		outer = "";
	for (rest = outer; next_entry(outer, &rest, &entry);)
		if (entry.marked && !is_replaced(&entry, locks, count))
			marked += entry.length;
	for (rest = outer; next_entry(outer, &rest, &entry);) {
		if (is_replaced(&entry, locks, count))
			continue;
		if (!entry.marked || marked <= MARKED_MOST)
			append_entry(held, &entry);
		if (entry.marked && marked > MARKED_MOST)
			marked -= entry.length;
	}
	for (size_t i = 0; i < count; i++) {
		struct buffer text = {0};

		ancestry_append(&text, locks[i]->names.key.data,
				locks[i]->grant.token);
		append_entry(held,
			     &(struct entry){text.data, text.length, true});
		buffer_release(&text);
	}
}

void ancestry_print_fences(struct buffer *text, struct lock *const *locks,
			   size_t count)
{
	char fence[24];

	for (size_t i = 0; i < count; i++) {
		snprintf(fence, sizeof(fence), "%" PRId64,
			 locks[i]->grant.fence);
		ancestry_append(text, locks[i]->names.key.data, fence);
	}
}

void ancestry_badge(char badge[ANCESTRY_BADGE], const char *key,
		    const char *token)
{
	struct buffer entry = {0};

	ancestry_append(&entry, key, token);
	strlcpy(badge,
		entry.length < ANCESTRY_BADGE
			? entry.data
			: entry.data + entry.length - ANCESTRY_BADGE + 1,
		ANCESTRY_BADGE);
	buffer_release(&entry);
}

bool ancestry_find(const char *held, const char *key, char *token, size_t size)
{
	struct buffer wanted = {0};
	bool found = false;

	encode(&wanted, key);
	buffer_append(&wanted, "=", 1);
	while (held != NULL && *held != '\0') {
		size_t length = strcspn(held, " ");
		const char *value = held + wanted.length;

		if (length > wanted.length && length - wanted.length < size &&
		    memcmp(held, wanted.data, wanted.length) == 0) {
			memcpy(token, value, length - wanted.length);
			token[length - wanted.length] = '\0';
			found = true;
		}
		held += length + strspn(held + length, " ");
	}
	buffer_release(&wanted);
	return found;
}
