#include "server/last_place.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/deadline.h"
#include "net/endpoint.h"
#include "net/runtime.h"

#define HINT_SIZE 128     /* bytes of a record */
#define HINT_LONGEST 7200 /* s */
#define HOST_LONGEST 100  /* bytes that are kept, and read again, of a host */

/* FNV-1a: two URLs with one file would only guess wrong */
static uint64_t hash(const char *text)
{
	uint64_t value = UINT64_C(14695981039346656037);

	for (; *text; text++)
		value = (value ^ (unsigned char)*text) *
			UINT64_C(1099511628211);
	return value;
}

void hint_init(struct hint *hint, const char *what, const char *name)
{
	char directory[URL_PATH_SIZE];
	struct error unused;

	*hint = (struct hint){0};
	if (runtime_directory(directory, &unused) == 0)
		snprintf(hint->path, sizeof(hint->path), "%s/%s-%016" PRIx64,
			 directory, what, hash(name));
}

static int open_file(const struct hint *hint, int flags)
{
	return open(hint->path,
		    flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY,
		    0600);
}

/* The text of a record, where it is not too old; what is behind its time. */
static const char *read_record(struct hint *hint, unsigned slot,
			       char text[HINT_SIZE])
{
	int64_t age, then;
	int fd = open_file(hint, O_RDONLY), length = 0;

	if (fd < 0)
		return NULL;
	memset(text, 0, HINT_SIZE);
	(void)!pread(fd, text, HINT_SIZE - 1, (off_t)slot * HINT_SIZE);
	close(fd);
	if (sscanf(text, "%18" SCNd64 "%n", &then, &length) != 1) /* NOLINT */
		return NULL;
	age = clock_wall_ms() / 1000 - then;
	if (age < 0 || age > HINT_LONGEST)
		return NULL;
	hint->old = age > HINT_LONGEST / 2;
	hint->age = age;
	return text + length;
}

static void write_record(struct hint *hint, unsigned slot, const char *rest)
{
	char text[HINT_SIZE] = "";
	int fd = open_file(hint, O_WRONLY | O_CREAT);

	hint->old = false;
	if (fd < 0)
		return;
	snprintf(text, sizeof(text), "%" PRId64 " %s\n", clock_wall_ms() / 1000,
		 rest);
	(void)!pwrite(fd, text, sizeof(text), (off_t)slot * HINT_SIZE);
	close(fd);
}

int hint_read(struct hint *hint, unsigned slot, struct url *place)
{
	char text[HINT_SIZE], host[HINT_SIZE], port[8];
	const char *rest = read_record(hint, slot, text);

	if (rest == NULL || sscanf(rest, "%100s%*1[ ]%7s", /* NOLINT */
				   host, port) != 2)
		return -1;
	return place_set(place, host, port);
}

void hint_write(struct hint *hint, unsigned slot, const struct url *place)
{
	char rest[HINT_SIZE] = "";

	/* a part of its name is somebody else's, who would get the password */
	if (strlen(place->host) <= HOST_LONGEST)
		snprintf(rest, sizeof(rest), "%s %u", place->host, place->port);
	write_record(hint, slot, rest);
}

int hint_read_word(struct hint *hint, char word[HINT_WORD])
{
	char text[HINT_SIZE];
	const char *rest = read_record(hint, 0, text);

	return rest != NULL && sscanf(rest, "%15s", word) == 1 ? 0 : -1;
}

void hint_write_word(struct hint *hint, const char *word)
{
	write_record(hint, 0, word);
}
