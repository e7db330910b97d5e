#include "store.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"

enum type { TYPE_STRING, TYPE_HASH, TYPE_ZSET, TYPE_LIST };

static const char *const type_names[] = {"string", "hash", "zset", "list"};

/* A field and its value, a member and its score, or an element. */
struct item {
	struct word name, value;
	double score;
};

struct key {
	struct word name;
	enum type type;
	struct item *items; /* a string is the value of one */
	size_t count, capacity;
	int64_t expires; /* ms since 1970, or -1 */
};

struct store {
	struct store_host host;
	struct key **keys;
	size_t count, capacity;
	int64_t now; /* us since 1970, of the command */
	uint64_t executed;
	bool scripts[SCRIPTS_MOST];
};

/* --- words ----------------------------------------------------------------- */

bool word_is(struct word word, const char *text)
{
	/* mostly it is another word, by its first letter */
	if (word.length > 0 && (word.data[0] | ' ') != (text[0] | ' '))
		return false;
	return word.length == strlen(text) &&
	       strncasecmp(word.data, text, word.length) == 0;
}

static bool is_same(struct word a, struct word b)
{
	return a.length == b.length && memcmp(a.data, b.data, a.length) == 0;
}

static int compare(struct word a, struct word b)
{
	size_t shorter = a.length < b.length ? a.length : b.length;
	int order = memcmp(a.data, b.data, shorter);

	return order != 0 ? order
			  : (a.length > b.length) - (a.length < b.length);
}

static struct word keep(struct word word)
{
	char *copy = xcalloc(1, word.length + 1);

	memcpy(copy, word.data, word.length);
	return (struct word){copy, word.length};
}

static void drop(struct word *word)
{
	free((char *)word->data);
	*word = (struct word){0};
}

static bool read_integer(struct word word, int64_t *number)
{
	char text[32], *end;

	if (word.length == 0 || word.length > 20)
		return false;
	memcpy(text, word.data, word.length);
	text[word.length] = '\0';
	if (text[0] != '-' && (text[0] < '0' || text[0] > '9'))
		return false;
	errno = 0;
	*number = strtoll(text, &end, 10);
	return *end == '\0' && errno == 0;
}

static bool read_score(struct word word, double *number)
{
	char text[64], *end;

	if (word.length == 0 || word.length >= sizeof(text))
		return false;
	memcpy(text, word.data, word.length);
	text[word.length] = '\0';
	*number = strtod(text, &end);
	return *end == '\0' && !isnan(*number);
}

/* --- answers --------------------------------------------------------------- */

/* printf(3) would take a tenth of a run. */
char *write_integer(char *end, int64_t number)
{
	uint64_t left = number < 0 ? -(uint64_t)number : (uint64_t)number;

	do {
		*--end = (char)('0' + left % 10);
		left /= 10;
	} while (left > 0);
	if (number < 0)
		*--end = '-';
	return end;
}

void answer_number(struct buffer *answer, char sign, int64_t number)
{
	char text[32] = {[30] = '\r', [31] = '\n'};
	char *at = write_integer(text + 30, number);

	*--at = sign;
	buffer_append(answer, at, (size_t)(text + sizeof(text) - at));
}

static void answer_integer(struct buffer *answer, int64_t number)
{
	answer_number(answer, ':', number);
}

static void answer_status(struct buffer *answer, const char *text)
{
	buffer_print(answer, "+%s\r\n", text);
}

void answer_error(struct buffer *answer, const char *text)
{
	buffer_print(answer, "-%s\r\n", text);
}

void answer_word(struct buffer *answer, struct word word)
{
	answer_number(answer, '$', (int64_t)word.length);
	buffer_append(answer, word.data, word.length);
	buffer_append(answer, "\r\n", 2);
}

static void answer_nothing(struct buffer *answer)
{
	buffer_append(answer, "$-1\r\n", 5);
}

static void answer_count(struct buffer *answer, size_t count)
{
	answer_number(answer, '*', (int64_t)count);
}

static void answer_score(struct buffer *answer, double score)
{
	char text[64];
	int length = snprintf(text, sizeof(text), "%.17g", score);

	answer_word(answer, (struct word){text, (size_t)length});
}

static void answer_not_integer(struct buffer *answer)
{
	answer_error(answer, "ERR value is not an integer or out of range");
}

static void answer_syntax(struct buffer *answer)
{
	answer_error(answer, "ERR syntax error");
}

/* --- keys ------------------------------------------------------------------ */

static void free_key(struct key *key)
{
	for (size_t i = 0; i < key->count; i++) {
		drop(&key->items[i].name);
		drop(&key->items[i].value);
	}
	free(key->items);
	drop(&key->name);
	free(key);
}

static void remove_at(struct store *store, size_t i)
{
	free_key(store->keys[i]);
	store->keys[i] = store->keys[--store->count];
}

static void drop_expired(struct store *store)
{
	for (size_t i = store->count; i-- > 0;)
		if (store->keys[i]->expires >= 0 &&
		    store->now / 1000 > store->keys[i]->expires)
			remove_at(store, i);
}

static struct key *find(struct store *store, struct word name)
{
	for (size_t i = 0; i < store->count; i++)
		if (is_same(store->keys[i]->name, name))
			return store->keys[i];
	return NULL;
}

static void remove_key(struct store *store, const struct key *key)
{
	for (size_t i = 0; i < store->count; i++)
		if (store->keys[i] == key) {
			remove_at(store, i);
			return;
		}
}

static struct key *add_key(struct store *store, struct word name,
			   enum type type)
{
	struct key *key = xcalloc(1, sizeof(*key));

	*key = (struct key){.name = keep(name), .type = type, .expires = -1};
	if (store->count == store->capacity) {
		store->capacity = 2 * store->capacity + 8;
		store->keys = realloc(store->keys,
				      store->capacity * sizeof(*store->keys));
	}
	store->keys[store->count++] = key;
	return key;
}

/* False if it is of another type: that was answered. */
static bool open_key(struct store *store, struct word name, enum type type,
		     struct key **key, struct buffer *answer)
{
	*key = find(store, name);
	if (*key == NULL || (*key)->type == type)
		return true;
	answer_error(answer, "WRONGTYPE Operation against a key holding the "
			     "wrong kind of value");
	return false;
}

static struct key *open_or_add(struct store *store, struct key *key,
			       struct word name, enum type type)
{
	return key != NULL ? key : add_key(store, name, type);
}

static struct item *insert_item(struct key *key, size_t at, struct word name,
				struct word value, double score)
{
	if (key->count == key->capacity) {
		key->capacity = 2 * key->capacity + 4;
		key->items = realloc(key->items,
				     key->capacity * sizeof(*key->items));
	}
	memmove(key->items + at + 1, key->items + at,
		(key->count++ - at) * sizeof(*key->items));
	key->items[at] = (struct item){keep(name), keep(value), score};
	return &key->items[at];
}

static void remove_item(struct key *key, size_t at)
{
	drop(&key->items[at].name);
	drop(&key->items[at].value);
	memmove(key->items + at, key->items + at + 1,
		(--key->count - at) * sizeof(*key->items));
}

/* Its place among the items, or count. */
static size_t find_item(const struct key *key, struct word name)
{
	size_t i = 0;

	if (key == NULL)
		return 0;
	while (i < key->count && !is_same(key->items[i].name, name))
		i++;
	return i;
}

static bool has_item(const struct key *key, struct word name)
{
	return key != NULL && find_item(key, name) < key->count;
}

static void set_value(struct item *item, struct word value)
{
	struct word copy = keep(value);

	drop(&item->value);
	item->value = copy;
}

/* Indices of a range, which may be negative, made whole; false for none. */
static bool clip(int64_t *first, int64_t *last, size_t count)
{
	int64_t n = (int64_t)count;

	if (*first < 0)
		*first = *first + n < 0 ? 0 : *first + n;
	if (*last < 0)
		*last += n;
	if (*last >= n)
		*last = n - 1;
	return *first <= *last && *first < n;
}

/* --- commands -------------------------------------------------------------- */

struct call {
	struct store *store;
	const struct word *words; /* the first is the command */
	size_t count;
	struct buffer *answer;
};

static void do_select(struct call *call)
{
	if (!word_is(call->words[1], "0")) {
		fprintf(stderr, "simulate: the store has one database only\n");
		abort();
	}
	answer_status(call->answer, "OK");
}

static void do_time(struct call *call)
{
	const int64_t parts[] = {call->store->now / 1000000,
				 call->store->now % 1000000};

	answer_count(call->answer, 2);
	for (size_t i = 0; i < 2; i++) {
		char text[24], *end = text + sizeof(text);
		char *at = write_integer(end, parts[i]);

		answer_word(call->answer,
			    (struct word){at, (size_t)(end - at)});
	}
}

/* What redlock reads of the section replication. */
static void do_info(struct call *call)
{
	const char *text = "# Replication\r\nrole:master\r\n";

	answer_word(call->answer, (struct word){text, strlen(text)});
}

static void do_ping(struct call *call)
{
	answer_status(call->answer, "PONG");
}

static void do_type(struct call *call)
{
	const struct key *key = find(call->store, call->words[1]);

	answer_status(call->answer,
		      key != NULL ? type_names[key->type] : "none");
}

static void do_exists(struct call *call)
{
	int64_t count = 0;

	for (size_t i = 1; i < call->count; i++)
		count += find(call->store, call->words[i]) != NULL;
	answer_integer(call->answer, count);
}

static void do_del(struct call *call)
{
	int64_t count = 0;

	for (size_t i = 1; i < call->count; i++) {
		struct key *key = find(call->store, call->words[i]);

		if (key == NULL)
			continue;
		remove_key(call->store, key);
		count++;
	}
	answer_integer(call->answer, count);
}

static void do_dbsize(struct call *call)
{
	answer_integer(call->answer, (int64_t)call->store->count);
}

static void do_flushall(struct call *call)
{
	store_clear(call->store);
	answer_status(call->answer, "OK");
}

static void do_pttl(struct call *call)
{
	const struct key *key = find(call->store, call->words[1]);

	answer_integer(call->answer,
		       key == NULL ? -2
		       : key->expires < 0
			       ? -1
			       : key->expires - call->store->now / 1000);
}

static void expire(struct call *call, int64_t at)
{
	struct key *key = find(call->store, call->words[1]);

	answer_integer(call->answer, key != NULL);
	if (key == NULL)
		return;
	key->expires = at;
	if (at <= call->store->now / 1000)
		remove_key(call->store, key);
}

static void do_pexpire(struct call *call)
{
	int64_t ms;

	if (call->count > 3) {
		answer_error(call->answer, "ERR Unsupported option");
		abort();
	}
	if (!read_integer(call->words[2], &ms))
		answer_not_integer(call->answer);
	else
		expire(call, call->store->now / 1000 + ms);
}

static void do_pexpireat(struct call *call)
{
	int64_t at;

	if (!read_integer(call->words[2], &at))
		answer_not_integer(call->answer);
	else
		expire(call, at);
}

static void do_persist(struct call *call)
{
	struct key *key = find(call->store, call->words[1]);

	answer_integer(call->answer, key != NULL && key->expires >= 0);
	if (key != NULL)
		key->expires = -1;
}

/* --- strings --------------------------------------------------------------- */

static void do_get(struct call *call)
{
	struct key *key;

	if (!open_key(call->store, call->words[1], TYPE_STRING, &key,
		      call->answer))
		return;
	if (key == NULL)
		answer_nothing(call->answer);
	else
		answer_word(call->answer, key->items[0].value);
}

static void do_set(struct call *call)
{
	bool absent = false, present = false;
	int64_t lasts = -1;
	struct key *key = find(call->store, call->words[1]);

	for (size_t i = 3; i < call->count; i++) {
		if (word_is(call->words[i], "nx")) {
			absent = true;
		} else if (word_is(call->words[i], "xx")) {
			present = true;
		} else if (word_is(call->words[i], "px") &&
			   i + 1 < call->count) {
			if (!read_integer(call->words[++i], &lasts)) {
				answer_not_integer(call->answer);
				return;
			}
			if (lasts <= 0) {
				answer_error(call->answer,
					     "ERR invalid expire time in 'set' "
					     "command");
				return;
			}
		} else {
			answer_syntax(call->answer);
			return;
		}
	}
	if ((absent && key != NULL) || (present && key == NULL)) {
		answer_nothing(call->answer);
		return;
	}
	if (key != NULL)
		remove_key(call->store, key);
	key = add_key(call->store, call->words[1], TYPE_STRING);
	insert_item(key, 0, (struct word){"", 0}, call->words[2], 0);
	if (lasts > 0)
		key->expires = call->store->now / 1000 + lasts;
	answer_status(call->answer, "OK");
}

static void do_getrange(struct call *call)
{
	int64_t first, last;
	struct key *key;
	struct word value = {"", 0};

	if (!read_integer(call->words[2], &first) ||
	    !read_integer(call->words[3], &last)) {
		answer_not_integer(call->answer);
		return;
	}
	if (!open_key(call->store, call->words[1], TYPE_STRING, &key,
		      call->answer))
		return;
	if (key != NULL)
		value = key->items[0].value;
	if (first < 0 && last < 0 && first > last)
		value.length = 0;
	if (last < 0 && last + (int64_t)value.length < 0)
		last = -(int64_t)value.length; /* as Redis has it */
	if (clip(&first, &last, value.length))
		answer_word(call->answer,
			    (struct word){value.data + first,
					  (size_t)(last - first + 1)});
	else
		answer_word(call->answer, (struct word){"", 0});
}

/* --- hashes ---------------------------------------------------------------- */

static void do_hset(struct call *call)
{
	int64_t added = 0;
	struct key *key;

	if (call->count % 2 != 0) {
		answer_error(call->answer, "ERR wrong number of arguments for "
					   "'hset' command");
		return;
	}
	if (!open_key(call->store, call->words[1], TYPE_HASH, &key,
		      call->answer))
		return;
	key = open_or_add(call->store, key, call->words[1], TYPE_HASH);
	for (size_t i = 2; i < call->count; i += 2) {
		size_t at = find_item(key, call->words[i]);

		if (at < key->count) {
			set_value(&key->items[at], call->words[i + 1]);
			continue;
		}
		insert_item(key, key->count, call->words[i], call->words[i + 1],
			    0);
		added++;
	}
	answer_integer(call->answer, added);
}

static void do_hget(struct call *call)
{
	struct key *key;

	if (!open_key(call->store, call->words[1], TYPE_HASH, &key,
		      call->answer))
		return;
	if (has_item(key, call->words[2]))
		answer_word(call->answer,
			    key->items[find_item(key, call->words[2])].value);
	else
		answer_nothing(call->answer);
}

static void do_hmget(struct call *call)
{
	struct key *key;

	if (!open_key(call->store, call->words[1], TYPE_HASH, &key,
		      call->answer))
		return;
	answer_count(call->answer, call->count - 2);
	for (size_t i = 2; i < call->count; i++)
		if (has_item(key, call->words[i]))
			answer_word(call->answer,
				    key->items[find_item(key, call->words[i])]
					    .value);
		else
			answer_nothing(call->answer);
}

static void do_hexists(struct call *call)
{
	struct key *key;

	if (open_key(call->store, call->words[1], TYPE_HASH, &key,
		     call->answer))
		answer_integer(call->answer, has_item(key, call->words[2]));
}

/* Of any type with names. */
static void remove_items(struct call *call, enum type type)
{
	int64_t removed = 0;
	struct key *key;

	if (!open_key(call->store, call->words[1], type, &key, call->answer))
		return;
	for (size_t i = 2; key != NULL && i < call->count; i++) {
		size_t at = find_item(key, call->words[i]);

		if (at == key->count)
			continue;
		remove_item(key, at);
		removed++;
	}
	if (key != NULL && key->count == 0)
		remove_key(call->store, key);
	answer_integer(call->answer, removed);
}

static void do_hdel(struct call *call)
{
	remove_items(call, TYPE_HASH);
}

static void count_items(struct call *call, enum type type)
{
	struct key *key;

	if (open_key(call->store, call->words[1], type, &key, call->answer))
		answer_integer(call->answer,
			       key != NULL ? (int64_t)key->count : 0);
}

static void do_hlen(struct call *call)
{
	count_items(call, TYPE_HASH);
}

static void list_fields(struct call *call, bool names, bool values)
{
	struct key *key;
	size_t count;

	if (!open_key(call->store, call->words[1], TYPE_HASH, &key,
		      call->answer))
		return;
	count = key != NULL ? key->count : 0;
	answer_count(call->answer, names && values ? 2 * count : count);
	for (size_t i = 0; i < count; i++) {
		if (names)
			answer_word(call->answer, key->items[i].name);
		if (values)
			answer_word(call->answer, key->items[i].value);
	}
}

static void do_hkeys(struct call *call)
{
	list_fields(call, true, false);
}

static void do_hvals(struct call *call)
{
	list_fields(call, false, true);
}

static void do_hgetall(struct call *call)
{
	list_fields(call, true, true);
}

static void do_hincrby(struct call *call)
{
	int64_t by, value = 0;
	char text[24];
	struct key *key;
	struct word new = {text, 0};
	size_t at;

	if (!read_integer(call->words[3], &by)) {
		answer_not_integer(call->answer);
		return;
	}
	if (!open_key(call->store, call->words[1], TYPE_HASH, &key,
		      call->answer))
		return;
	if (has_item(key, call->words[2]) &&
	    !read_integer(key->items[find_item(key, call->words[2])].value,
			  &value)) {
		answer_error(call->answer, "ERR hash value is not an integer");
		return;
	}
	if (__builtin_add_overflow(value, by, &value)) {
		answer_error(call->answer,
			     "ERR increment or decrement would overflow");
		return;
	}
	key = open_or_add(call->store, key, call->words[1], TYPE_HASH);
	new.length = (size_t)snprintf(text, sizeof(text), "%" PRId64, value);
	at = find_item(key, call->words[2]);
	if (at < key->count)
		set_value(&key->items[at], new);
	else
		insert_item(key, key->count, call->words[2], new, 0);
	answer_integer(call->answer, value);
}

/* --- sorted sets ----------------------------------------------------------- */

static void put_member(struct key *key, struct word name, double score)
{
	size_t at = 0;

	while (at < key->count && (key->items[at].score < score ||
				   (key->items[at].score == score &&
				    compare(key->items[at].name, name) < 0)))
		at++;
	insert_item(key, at, name, (struct word){"", 0}, score);
}

static void do_zadd(struct call *call)
{
	bool absent = false, present = false;
	size_t first = 2;
	int64_t added = 0;
	double score;
	struct key *key;

	for (;; first++) {
		if (first < call->count && word_is(call->words[first], "nx"))
			absent = true;
		else if (first < call->count &&
			 word_is(call->words[first], "xx"))
			present = true;
		else
			break;
	}
	if (first == call->count || (call->count - first) % 2 != 0) {
		answer_syntax(call->answer);
		return;
	}
	if (absent && present) {
		answer_error(call->answer, "ERR XX and NX options at the same "
					   "time are not compatible");
		return;
	}
	for (size_t i = first; i < call->count; i += 2)
		if (!read_score(call->words[i], &score)) {
			answer_error(call->answer,
				     "ERR value is not a valid float");
			return;
		}
	if (!open_key(call->store, call->words[1], TYPE_ZSET, &key,
		      call->answer))
		return;
	if (key == NULL && present) {
		answer_integer(call->answer, 0);
		return;
	}
	key = open_or_add(call->store, key, call->words[1], TYPE_ZSET);
	for (size_t i = first; i < call->count; i += 2) {
		size_t at = find_item(key, call->words[i + 1]);
		bool known = at < key->count;

		if (known ? absent : present)
			continue;
		read_score(call->words[i], &score);
		if (known)
			remove_item(key, at);
		put_member(key, call->words[i + 1], score);
		added += !known;
	}
	answer_integer(call->answer, added);
}

static void do_zrem(struct call *call)
{
	remove_items(call, TYPE_ZSET);
}

static void do_zcard(struct call *call)
{
	count_items(call, TYPE_ZSET);
}

static void do_zscore(struct call *call)
{
	struct key *key;

	if (!open_key(call->store, call->words[1], TYPE_ZSET, &key,
		      call->answer))
		return;
	if (has_item(key, call->words[2]))
		answer_score(call->answer,
			     key->items[find_item(key, call->words[2])].score);
	else
		answer_nothing(call->answer);
}

static void do_zrank(struct call *call)
{
	struct key *key;

	if (!open_key(call->store, call->words[1], TYPE_ZSET, &key,
		      call->answer))
		return;
	if (has_item(key, call->words[2]))
		answer_integer(call->answer,
			       (int64_t)find_item(key, call->words[2]));
	else
		answer_nothing(call->answer);
}

static void answer_members(struct buffer *answer, const struct key *key,
			   size_t first, size_t end, bool scores)
{
	answer_count(answer, (end - first) * (scores ? 2 : 1));
	for (; first < end; first++) {
		answer_word(answer, key->items[first].name);
		if (scores)
			answer_score(answer, key->items[first].score);
	}
}

static void do_zrange(struct call *call)
{
	int64_t first, last;
	bool scores = call->count == 5;
	struct key *key;

	if (call->count > 5 ||
	    (scores && !word_is(call->words[4], "withscores"))) {
		answer_syntax(call->answer);
		return;
	}
	if (!read_integer(call->words[2], &first) ||
	    !read_integer(call->words[3], &last)) {
		answer_not_integer(call->answer);
		return;
	}
	if (!open_key(call->store, call->words[1], TYPE_ZSET, &key,
		      call->answer))
		return;
	if (key != NULL && clip(&first, &last, key->count))
		answer_members(call->answer, key, (size_t)first,
			       (size_t)last + 1, scores);
	else
		answer_count(call->answer, 0);
}

struct bounds {
	double least, most;
	bool above, below; /* the bound itself is left out */
};

static bool read_bound(struct word word, double *bound, bool *excluded)
{
	*excluded = word.length > 0 && word.data[0] == '(';
	if (*excluded)
		word = (struct word){word.data + 1, word.length - 1};
	return read_score(word, bound);
}

static bool read_bounds(struct call *call, struct bounds *bounds)
{
	if (read_bound(call->words[2], &bounds->least, &bounds->above) &&
	    read_bound(call->words[3], &bounds->most, &bounds->below))
		return true;
	answer_error(call->answer, "ERR min or max is not a float");
	return false;
}

static void find_range(const struct key *key, const struct bounds *bounds,
		       size_t *first, size_t *end)
{
	*first = 0;
	while (*first < key->count &&
	       (bounds->above ? key->items[*first].score <= bounds->least
			      : key->items[*first].score < bounds->least))
		++*first;
	*end = *first;
	while (*end < key->count &&
	       (bounds->below ? key->items[*end].score < bounds->most
			      : key->items[*end].score <= bounds->most))
		++*end;
}

static void do_zcount(struct call *call)
{
	struct bounds bounds;
	struct key *key;
	size_t first = 0, end = 0;

	if (!read_bounds(call, &bounds) ||
	    !open_key(call->store, call->words[1], TYPE_ZSET, &key,
		      call->answer))
		return;
	if (key != NULL)
		find_range(key, &bounds, &first, &end);
	answer_integer(call->answer, (int64_t)(end - first));
}

static void do_zrangebyscore(struct call *call)
{
	struct bounds bounds;
	bool scores = false;
	int64_t offset = 0, limit = -1;
	struct key *key;
	size_t first = 0, end = 0;

	for (size_t i = 4; i < call->count; i++) {
		if (word_is(call->words[i], "withscores")) {
			scores = true;
		} else if (word_is(call->words[i], "limit") &&
			   i + 2 < call->count) {
			if (!read_integer(call->words[i + 1], &offset) ||
			    !read_integer(call->words[i + 2], &limit)) {
				answer_not_integer(call->answer);
				return;
			}
			i += 2;
		} else {
			answer_syntax(call->answer);
			return;
		}
	}
	if (!read_bounds(call, &bounds) ||
	    !open_key(call->store, call->words[1], TYPE_ZSET, &key,
		      call->answer))
		return;
	if (key != NULL)
		find_range(key, &bounds, &first, &end);
	if (offset < 0 || (size_t)offset > end - first)
		first = end;
	else
		first += (size_t)offset;
	if (limit >= 0 && (size_t)limit < end - first)
		end = first + (size_t)limit;
	answer_members(call->answer, key, first, end, scores);
}

/* --- lists ----------------------------------------------------------------- */

static void push(struct call *call, bool left)
{
	struct key *key;

	if (!open_key(call->store, call->words[1], TYPE_LIST, &key,
		      call->answer))
		return;
	key = open_or_add(call->store, key, call->words[1], TYPE_LIST);
	for (size_t i = 2; i < call->count; i++)
		insert_item(key, left ? 0 : key->count, (struct word){"", 0},
			    call->words[i], 0);
	answer_integer(call->answer, (int64_t)key->count);
}

static void do_lpush(struct call *call)
{
	push(call, true);
}

static void do_rpush(struct call *call)
{
	push(call, false);
}

static void do_llen(struct call *call)
{
	count_items(call, TYPE_LIST);
}

static void do_lindex(struct call *call)
{
	int64_t at;
	struct key *key;

	if (!open_key(call->store, call->words[1], TYPE_LIST, &key,
		      call->answer))
		return;
	if (key == NULL) {
		answer_nothing(call->answer);
		return;
	}
	if (!read_integer(call->words[2], &at)) {
		answer_not_integer(call->answer);
		return;
	}
	if (at < 0)
		at += (int64_t)key->count;
	if (at >= 0 && at < (int64_t)key->count)
		answer_word(call->answer, key->items[at].value);
	else
		answer_nothing(call->answer);
}

static bool open_range(struct call *call, struct key **key, int64_t *first,
		       int64_t *last)
{
	if (!read_integer(call->words[2], first) ||
	    !read_integer(call->words[3], last)) {
		answer_not_integer(call->answer);
		return false;
	}
	return open_key(call->store, call->words[1], TYPE_LIST, key,
			call->answer);
}

static void do_lrange(struct call *call)
{
	int64_t first, last;
	struct key *key;

	if (!open_range(call, &key, &first, &last))
		return;
	if (key == NULL || !clip(&first, &last, key->count)) {
		answer_count(call->answer, 0);
		return;
	}
	answer_count(call->answer, (size_t)(last - first + 1));
	for (; first <= last; first++)
		answer_word(call->answer, key->items[first].value);
}

static void do_ltrim(struct call *call)
{
	int64_t first, last;
	struct key *key;

	if (!open_range(call, &key, &first, &last))
		return;
	answer_status(call->answer, "OK");
	if (key == NULL)
		return;
	if (!clip(&first, &last, key->count)) {
		remove_key(call->store, key);
		return;
	}
	while (key->count > (size_t)last + 1)
		remove_item(key, key->count - 1);
	while (first-- > 0)
		remove_item(key, 0);
}

static void do_lset(struct call *call)
{
	int64_t at;
	struct key *key;

	if (!open_key(call->store, call->words[1], TYPE_LIST, &key,
		      call->answer))
		return;
	if (key == NULL) {
		answer_error(call->answer, "ERR no such key");
		return;
	}
	if (!read_integer(call->words[2], &at)) {
		answer_not_integer(call->answer);
		return;
	}
	if (at < 0)
		at += (int64_t)key->count;
	if (at < 0 || at >= (int64_t)key->count) {
		answer_error(call->answer, "ERR index out of range");
		return;
	}
	set_value(&key->items[at], call->words[3]);
	answer_status(call->answer, "OK");
}

/* --- messages -------------------------------------------------------------- */

static void do_publish(struct call *call)
{
	const struct store_host *host = &call->store->host;

	answer_integer(call->answer,
		       (int64_t)host->publish(host->context, call->words[1],
					      call->words[2]));
}

static void do_pubsub(struct call *call)
{
	const struct store_host *host = &call->store->host;

	if (!word_is(call->words[1], "numsub") &&
	    !word_is(call->words[1], "shardnumsub")) {
		fprintf(stderr, "simulate: the store has no PUBSUB %s\n",
			call->words[1].data);
		abort();
	}
	answer_count(call->answer, 2 * (call->count - 2));
	for (size_t i = 2; i < call->count; i++) {
		answer_word(call->answer, call->words[i]);
		answer_integer(call->answer,
			       (int64_t)host->subscribers(host->context,
							  call->words[i]));
	}
}

/* --- which there are ------------------------------------------------------- */

static const struct command {
	const char *name;
	size_t least, most; /* words, with the name; 0: any number */
	void (*act)(struct call *call);
} commands[] = {
	{"select", 2, 2, do_select},
	{"time", 1, 1, do_time},
	{"ping", 1, 1, do_ping},
	{"info", 2, 2, do_info},
	{"type", 2, 2, do_type},
	{"exists", 2, 0, do_exists},
	{"del", 2, 0, do_del},
	{"dbsize", 1, 1, do_dbsize},
	{"flushall", 1, 1, do_flushall},
	{"pttl", 2, 2, do_pttl},
	{"pexpire", 3, 0, do_pexpire},
	{"pexpireat", 3, 3, do_pexpireat},
	{"persist", 2, 2, do_persist},
	{"get", 2, 2, do_get},
	{"set", 3, 0, do_set},
	{"getrange", 4, 4, do_getrange},
	{"hset", 4, 0, do_hset},
	{"hget", 3, 3, do_hget},
	{"hmget", 3, 0, do_hmget},
	{"hexists", 3, 3, do_hexists},
	{"hdel", 3, 0, do_hdel},
	{"hlen", 2, 2, do_hlen},
	{"hkeys", 2, 2, do_hkeys},
	{"hvals", 2, 2, do_hvals},
	{"hgetall", 2, 2, do_hgetall},
	{"hincrby", 4, 4, do_hincrby},
	{"zadd", 4, 0, do_zadd},
	{"zrem", 3, 0, do_zrem},
	{"zcard", 2, 2, do_zcard},
	{"zscore", 3, 3, do_zscore},
	{"zrank", 3, 3, do_zrank},
	{"zrange", 4, 0, do_zrange},
	{"zcount", 4, 4, do_zcount},
	{"zrangebyscore", 4, 0, do_zrangebyscore},
	{"lpush", 3, 0, do_lpush},
	{"rpush", 3, 0, do_rpush},
	{"llen", 2, 2, do_llen},
	{"lindex", 3, 3, do_lindex},
	{"lrange", 4, 4, do_lrange},
	{"ltrim", 4, 4, do_ltrim},
	{"lset", 4, 4, do_lset},
	{"publish", 3, 3, do_publish},
	{"spublish", 3, 3, do_publish},
	{"pubsub", 2, 0, do_pubsub},
};

static const struct command *find_command(struct word name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (word_is(name, commands[i].name))
			return &commands[i];
	fprintf(stderr,
		"simulate: the store has no command '%.*s': "
		"it belongs in test/lab/simulate/store.c\n",
		(int)name.length, name.data);
	abort();
}

static bool takes(const struct command *command, size_t count)
{
	return count >= command->least &&
	       (command->most == 0 || count <= command->most);
}

bool store_takes(struct word name, size_t count)
{
	if (word_is(name, "eval") || word_is(name, "evalsha"))
		return count >= 3;
	return takes(find_command(name), count);
}

void store_call(struct store *store, const struct word *words, size_t count,
		struct buffer *answer)
{
	struct call call = {store, words, count, answer};
	const struct command *command = find_command(words[0]);

	if (!takes(command, count))
		buffer_print(answer,
			     "-ERR wrong number of arguments for '%s' "
			     "command\r\n",
			     command->name);
	else
		command->act(&call);
}

void store_execute(struct store *store, int64_t now, const struct word *words,
		   size_t count, struct buffer *answer)
{
	store->now = now;
	store->executed++;
	drop_expired(store);
	if (word_is(words[0], "eval") || word_is(words[0], "evalsha"))
		store_eval(store, words, count, answer);
	else
		store_call(store, words, count, answer);
}

/* --- the store ------------------------------------------------------------- */

struct store *store_new(const struct store_host *host)
{
	struct store *store = xcalloc(1, sizeof(*store));

	store->host = *host;
	return store;
}

void store_clear(struct store *store)
{
	while (store->count > 0)
		remove_at(store, store->count - 1);
}

void store_free(struct store *store)
{
	store_clear(store);
	free(store->keys);
	free(store);
}

struct store *store_copy(const struct store *store)
{
	struct store *copy = store_new(&store->host);

	for (size_t i = 0; i < store->count; i++) {
		const struct key *from = store->keys[i];
		struct key *key = add_key(copy, from->name, from->type);

		key->expires = from->expires;
		for (size_t k = 0; k < from->count; k++)
			insert_item(key, k, from->items[k].name,
				    from->items[k].value, from->items[k].score);
	}
	return copy;
}

uint64_t store_executed(const struct store *store)
{
	return store->executed;
}

bool *store_scripts(struct store *store)
{
	return store->scripts;
}

static struct key *look(struct store *store, int64_t now, struct word key)
{
	store->now = now * 1000;
	drop_expired(store);
	return find(store, key);
}

const char *store_type(struct store *store, int64_t now, struct word name)
{
	const struct key *key = look(store, now, name);

	return key != NULL ? type_names[key->type] : NULL;
}

int64_t store_field(struct store *store, int64_t now, struct word name,
		    const char *field)
{
	const struct key *key = look(store, now, name);
	struct word word = {field, strlen(field)};
	int64_t number = 0;

	if (key != NULL && key->type == TYPE_HASH && has_item(key, word))
		read_integer(key->items[find_item(key, word)].value, &number);
	return number;
}

bool store_is_covered(struct store *store, int64_t now, struct word name,
		      struct store *other, int64_t others_now)
{
	const struct key *key = look(store, now, name);
	const struct key *copy = look(other, others_now, name);
	size_t i = 0, k;

	if (key == NULL)
		return true;
	if (copy == NULL || copy->type != key->type)
		return false;
	if (key->type == TYPE_STRING)
		return is_same(key->items[0].value, copy->items[0].value);
	for (; i < key->count; i++) {
		for (k = 0; k < copy->count; k++)
			if (is_same(key->items[i].name, copy->items[k].name))
				break;
		if (k == copy->count)
			return false;
	}
	return true;
}

struct word store_value(struct store *store, int64_t now, struct word name,
			const char *field)
{
	const struct key *key = look(store, now, name);
	struct word word = {field, strlen(field)};

	if (key == NULL || key->type != TYPE_HASH || !has_item(key, word))
		return (struct word){NULL, 0};
	return key->items[find_item(key, word)].value;
}

struct word store_element(struct store *store, int64_t now, struct word name,
			  const char *beginning)
{
	const struct key *key = look(store, now, name);
	size_t length = strlen(beginning);

	for (size_t i = key != NULL && key->type == TYPE_LIST ? key->count : 0;
	     i-- > 0;)
		if (key->items[i].value.length >= length &&
		    memcmp(key->items[i].value.data, beginning, length) == 0)
			return key->items[i].value;
	return (struct word){NULL, 0};
}

bool store_holds(struct store *store, int64_t now, struct word name,
		 const char *text)
{
	const struct key *key = look(store, now, name);

	return key != NULL && key->type == TYPE_STRING &&
	       key->items[0].value.length == strlen(text) &&
	       memcmp(key->items[0].value.data, text, strlen(text)) == 0;
}

int64_t store_lease(struct store *store, int64_t now, struct word name,
		    const char *token)
{
	const struct key *key = look(store, now, name);
	struct word who = {token, strlen(token)};
	int64_t ends;

	if (key == NULL || key->type == TYPE_LIST ||
	    (key->type == TYPE_STRING ? !store_holds(store, now, name, token)
				      : !has_item(key, who)))
		return -1;
	ends = key->expires;
	if (key->type == TYPE_ZSET &&
	    key->items[find_item(key, who)].score < (double)ends)
		ends = (int64_t)key->items[find_item(key, who)].score;
	return ends;
}

size_t store_size(struct store *store, int64_t now, struct word name)
{
	const struct key *key = look(store, now, name);

	return key != NULL ? key->count : 0;
}

size_t store_tokens(struct store *store, int64_t now, struct word name,
		    struct word *tokens, size_t most)
{
	const struct key *key = look(store, now, name);
	size_t count = 0;

	for (size_t i = 0; key != NULL && i < key->count && count < most; i++) {
		const struct item *item = &key->items[i];

		if (key->type == TYPE_ZSET && item->score <= (double)now)
			continue;
		tokens[count++] =
			key->type == TYPE_STRING ? item->value : item->name;
	}
	return count;
}
