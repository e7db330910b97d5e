#include "server/last_place.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/deadline.h"
#include "base/number.h"
#include "net/runtime.h"

#define RECORD_SIZE 128     /* bytes of a record */
#define RECORD_LONGEST 7200 /* s */
#define HOST_LONGEST 100    /* bytes that are kept, and read again, of a host */

/* FNV-1a: two URLs with one file would only guess wrong */
static uint64_t hash(const char *text)
{
	uint64_t value = UINT64_C(14695981039346656037);

	for (; *text; text++)
		value = (value ^ (unsigned char)*text) *
			UINT64_C(1099511628211);
	return value;
}

void last_place_init(struct last_place *last, const char *what,
		     const char *name)
{
	char directory[URL_PATH_SIZE];
	struct error unused;

	*last = (struct last_place){0};
	if (runtime_directory(directory, &unused) == 0)
		snprintf(last->path, sizeof(last->path), "%s/%s-%016" PRIx64,
			 directory, what, hash(name));
}

static int open_file(const struct last_place *last, int flags)
{
	return open(last->path,
		    flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY,
		    0600);
}

/* The text of a record after its time; NULL if it is too old. */
static const char *read_record(struct last_place *last, unsigned hash_slot,
			       char text[RECORD_SIZE])
{
	int64_t age, then;
	const char *rest = text;
	int fd = open_file(last, O_RDONLY);

	if (fd < 0)
		return NULL;
	memset(text, 0, RECORD_SIZE);
	(void)!pread(fd, text, RECORD_SIZE - 1, (off_t)hash_slot * RECORD_SIZE);
	close(fd);
	if (number_read(&rest, 0, INT64_MAX / 2, &then) < 0)
		return NULL;
	age = clock_wall_ms() / 1000 - then;
	if (age < 0 || age > RECORD_LONGEST)
		return NULL;
	last->old = age > RECORD_LONGEST / 2;
	last->age = age;
	return rest;
}

static void write_record(struct last_place *last, unsigned hash_slot,
			 const char *rest)
{
	char text[RECORD_SIZE] = "";
	int fd = open_file(last, O_WRONLY | O_CREAT);

	last->old = false;
	if (fd < 0)
		return;
	snprintf(text, sizeof(text), "%" PRId64 " %s\n", clock_wall_ms() / 1000,
		 rest);
	(void)!pwrite(fd, text, sizeof(text), (off_t)hash_slot * RECORD_SIZE);
	close(fd);
}

int last_place_read(struct last_place *last, unsigned hash_slot,
		    struct endpoint *endpoint)
{
	char text[RECORD_SIZE], host[RECORD_SIZE], port[8];
	const char *rest = read_record(last, hash_slot, text);

	if (rest == NULL || sscanf(rest, "%100s%*1[ ]%7s", /* NOLINT */
				   host, port) != 2)
		return -1;
	return endpoint_set(endpoint, host, port);
}

void last_place_write(struct last_place *last, unsigned hash_slot,
		      const struct endpoint *endpoint)
{
	char rest[RECORD_SIZE] = "";

	/* a cut name may be that of a host which is not to get the password */
	if (strlen(endpoint->host) <= HOST_LONGEST)
		snprintf(rest, sizeof(rest), "%s %u", endpoint->host,
			 endpoint->port);
	write_record(last, hash_slot, rest);
}

int last_place_read_word(struct last_place *last, char word[LAST_PLACE_WORD])
{
	char text[RECORD_SIZE];
	const char *rest = read_record(last, 0, text);

	return rest != NULL && sscanf(rest, "%15s", word) == 1 ? 0 : -1;
}

void last_place_write_word(struct last_place *last, const char *word)
{
	write_record(last, 0, word);
}
