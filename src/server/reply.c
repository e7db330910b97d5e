#include "server/reply.h"

#include <link.h>
#include <pthread.h>
#include <string.h>

#include <hiredis.h>

#include "base/alloc.h"

/* --- what is asked -------------------------------------------------------- */

#define LINE 24 /* bytes of a length, and of the ends of lines around it */

static void add_line(struct buffer *to, char kind, size_t number)
{
	char line[LINE], *at = line + sizeof(line);
	size_t size;

	*--at = '\n';
	*--at = '\r';
	do
		*--at = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	*--at = kind;
	size = (size_t)(line + sizeof(line) - at);
	buffer_append(to, at, size);
}

/* How many of the array belong to the argument at its beginning. */
static size_t span(const struct argument *argument)
{
	return argument->data == NULL ? 1 + argument->length : 1;
}

static void add(struct buffer *to, const struct argument *argument)
{
	const struct argument *end = argument + span(argument);
	size_t length = 0;

	if (argument->data == NULL)
		argument++;
	for (const struct argument *part = argument; part < end; part++)
		length += part->length;
	add_line(to, '$', length);
	for (; argument < end; argument++)
		buffer_append(to, argument->data, argument->length);
	buffer_append(to, "\r\n", 2);
}

void request_format(struct buffer *to, const struct argument *arguments,
		    size_t count)
{
	size_t words = 0, length = (count + 1) * 2 * LINE;

	for (size_t i = 0; i < count; i += span(&arguments[i]))
		words++;
	for (size_t i = 0; i < count; i++)
		if (arguments[i].data != NULL)
			length += arguments[i].length;
	buffer_reserve(to, length);
	add_line(to, '*', words);
	for (size_t i = 0; i < count; i += span(&arguments[i]))
		add(to, &arguments[i]);
}

/* --- what comes back ------------------------------------------------------ */

#define ARRAY_LONGEST 64        /* elements */
#define ARRAY_LONGEST_WIDE 8192 /* elements */
#define ARRAY_DEEPEST 4
#define ARRAYS_MOST 4 /* times as many elements, in all that a reply has */

#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

static void *create_small_array(const redisReadTask *task,
				element_count elements);

/* hiredis's own but for one, from the first reader on. */
static struct {
	redisReplyObjectFunctions ours;
	void *(*create_array)(const redisReadTask *, element_count);
	pthread_mutex_t mutex; /* here: not on a page of its own */
} functions = {
	.ours.createArray = create_small_array,
	.mutex = PTHREAD_MUTEX_INITIALIZER,
};

/* hiredis takes any size, any depth, and any number of arrays: 13 bytes would
 * buy 16 GB, or the stack, and a MB of small ones 40 MB. NULL makes the reader
 * give up. */
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
	return functions.create_array(task, elements);
}

redisReader *reply_reader_new(struct reply_bounds *bounds)
{
	redisReader *reader = redisReaderCreate();

	if (reader == NULL)
		memory_exhausted();
	pthread_mutex_lock(&functions.mutex);
	if (functions.create_array == NULL) {
		functions.ours = *reader->fn;
		functions.create_array = functions.ours.createArray;
		functions.ours.createArray = create_small_array;
	}
	pthread_mutex_unlock(&functions.mutex);
	reader->fn = &functions.ours;
	reader->privdata = bounds;
	return reader;
}

static int note_path(struct dl_phdr_info *library, size_t size, void *text)
{
	const char *name = strrchr(library->dlpi_name, '/');

	(void)size;
	if (name == NULL || strncmp(name, "/libhiredis.", 12) != 0)
		return 0;
	buffer_print(text, "%s, ", library->dlpi_name);
	return 1;
}

void reply_describe_reader(struct buffer *text)
{
	dl_iterate_phdr(note_path, text);
	buffer_print(text, "built with %d.%d.%d", HIREDIS_MAJOR, HIREDIS_MINOR,
		     HIREDIS_PATCH);
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

bool reply_is_number(const struct reply *reply)
{
	return reply->whole->type == REDIS_REPLY_INTEGER;
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
