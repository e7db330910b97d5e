#include "server/reply.h"

#include <string.h>

#include <hiredis.h>

#include "base/alloc.h"

#define ARRAY_LONGEST 64        /* elements */
#define ARRAY_LONGEST_WIDE 8192 /* elements */
#define ARRAY_DEEPEST 4
#define ARRAYS_MOST 4 /* times as many elements, in all that a reply has */

#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

static redisReplyObjectFunctions reader_functions;
static void *(*create_array)(const redisReadTask *, element_count);

/* hiredis takes any size, any depth, and any number of arrays: 13 bytes would buy
 * 16 GB, or the stack, and a MB of small ones 40 MB. NULL makes the reader give
 * up. */
static void *create_small_array(const redisReadTask *task,
				element_count elements)
{
	struct reply_bounds *bounds = task->privdata;
	element_count most = bounds->wide ? ARRAY_LONGEST_WIDE : ARRAY_LONGEST;
	int depth = 1;

	for (const redisReadTask *up = task->parent; up != NULL;
	     up = up->parent)
		depth++;
	if (depth == 1)
		bounds->elements = 0;
	if (depth > ARRAY_DEEPEST || elements > most)
		return NULL;
	bounds->elements += (size_t)elements;
	if (bounds->elements > ARRAYS_MOST * (size_t)most)
		return NULL;
	return create_array(task, elements);
}

redisReader *reply_reader_new(struct reply_bounds *bounds)
{
	redisReader *reader = redisReaderCreate();

	if (reader == NULL)
		heap_exhausted();
	if (create_array == NULL) {
		reader_functions = *reader->fn;
		create_array = reader_functions.createArray;
		reader_functions.createArray = create_small_array;
	}
	reader->fn = &reader_functions;
	reader->privdata = bounds;
	return reader;
}

static void flatten_value(struct value *value, const redisReply *from)
{
	if (from->type == REDIS_REPLY_INTEGER)
		value->number = from->integer;
	else if (from->type == REDIS_REPLY_STRING ||
		 from->type == REDIS_REPLY_STATUS)
		*value = (struct value){from->str, (size_t)from->len, 0};
	else
		*value = (struct value){"", 0, 0};
}

void reply_flatten(struct reply *reply, const redisReply *from)
{
	reply->whole = from;
	if (from->type == REDIS_REPLY_ERROR) {
		reply->failure = from->str;
		reply->cause = cause_of(from->str).cause;
	} else if (from->type != REDIS_REPLY_ARRAY) {
		reply->count = 1;
		flatten_value(&reply->value[0], from);
	} else {
		for (; reply->count < from->elements &&
		       reply->count < REPLY_VALUES;
		     reply->count++)
			flatten_value(&reply->value[reply->count],
				      from->element[reply->count]);
	}
}

bool reply_is_message(const struct reply *reply)
{
	const char *kind = reply->value[0].text;

	return reply->count == 3 && kind != NULL &&
	       (strcmp(kind, "message") == 0 || strcmp(kind, "smessage") == 0);
}

static const redisReply *find_array(const struct reply *reply, size_t value)
{
	const redisReply *whole = reply->whole;

	if (whole == NULL || whole->type != REDIS_REPLY_ARRAY ||
	    value >= whole->elements ||
	    whole->element[value]->type != REDIS_REPLY_ARRAY)
		return NULL;
	return whole->element[value];
}

size_t reply_item_count(const struct reply *reply, size_t value)
{
	const redisReply *array = find_array(reply, value);

	return array != NULL ? array->elements : 0;
}

struct value reply_item(const struct reply *reply, size_t value, size_t n)
{
	const redisReply *array = find_array(reply, value);
	struct value item = {"", 0, 0};

	if (array != NULL && n < array->elements) {
		item = (struct value){0};
		flatten_value(&item, array->element[n]);
	}
	return item;
}

struct value reply_pair(const struct reply *reply, const char *name)
{
	const redisReply *whole = reply->whole;
	size_t count = 0;

	if (whole != NULL && whole->type == REDIS_REPLY_ARRAY)
		count = whole->elements;
	for (size_t n = 0; n + 1 < count; n += 2) {
		struct value each = {0}, value = {0};

		flatten_value(&each, whole->element[n]);
		flatten_value(&value, whole->element[n + 1]);
		if (each.text != NULL && strcmp(each.text, name) == 0)
			return value;
	}
	return (struct value){0};
}
