/* What is remembered of a server's place is the same when it is read, or nothing. */
#include "server/last_place.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/deadline.h"
#include "net/endpoint.h"
#include "check.h"

static struct last_place last;

static void check_kept(size_t length, bool wanted)
{
	char host[254] = "";
	struct endpoint endpoint = {0}, got = {0};

	/* digits: a part of it could be a port */
	memset(host, '1', length);
	CHECK(endpoint_set(&endpoint, host, "6379") == 0, "%zu", length);
	last_place_write(&last, 3, &endpoint);
	if (last_place_read(&last, 3, &got) == 0)
		CHECK(wanted && same(got.host, host) && got.port == 6379,
		      "%zu: %s", length, got.host);
	else
		CHECK(!wanted, "%zu", length);
	endpoint_release(&endpoint);
	endpoint_release(&got);
}

/* text: the record of slot 0; wanted: the endpoint's name, NULL for none. */
static void check_read(const char *format, const char *wanted)
{
	struct endpoint got = {0};
	char name[ENDPOINT_TEXT];
	char text[300] = "", record[128] = "";
	int fd = open(last.path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	snprintf(text, sizeof(text), format, (long)(clock_wall_ms() / 1000));
	memcpy(record, text, sizeof(record));
	CHECK(pwrite(fd, record, sizeof(record), 0) == sizeof(record), "%s",
	      last.path);
	close(fd);
	CHECK((last_place_read(&last, 0, &got) == 0) == (wanted != NULL), "%s",
	      text);
	if (got.host != NULL)
		CHECK(same(endpoint_format(name, &got), wanted), "%s: %s", text,
		      name);
	endpoint_release(&got);
}

static void check_word(void)
{
	char word[LAST_PLACE_WORD] = "";
	struct last_place names;

	last_place_init(&names, "names", "redis+cluster://h");
	CHECK(last_place_read_word(&names, word) < 0, "%s", word);
	last_place_write_word(&names, "distinct");
	CHECK(last_place_read_word(&names, word) == 0 && same(word, "distinct"),
	      "%s", word);
	last_place_write_word(&names, "one");
	CHECK(last_place_read_word(&names, word) == 0 && same(word, "one"),
	      "%s", word);
}

int main(void)
{
	char directory[] = "/tmp/redlock-last_place.XXXXXX", command[80];

	CHECK(mkdtemp(directory) != NULL, "%s", directory);
	setenv("XDG_RUNTIME_DIR", directory, 1);
	last_place_init(&last, "places", "redis+cluster://h");
	check_kept(1, true);
	check_kept(99, true);
	check_kept(100, true);
	for (size_t length = 101; length <= 253; length++)
		check_kept(length, false);
	check_read("%ld h 6379\n", "h:6379");
	check_read("%ld ::1 6379\n", "[::1]:6379");
	check_read("9%ld h 6379\n", NULL);
	check_read("-%ld h 6379\n", NULL);
	check_read("99999999999999999999999 h %ld\n", NULL);
	check_read("%ld h", NULL);
	check_read("%ld h 65536\n", NULL);
	check_read("%ld h 99999999999\n", NULL);
	check_read("%ld h\033 6379\n", NULL);
	check_read("", NULL);
	check_word();
	snprintf(command, sizeof(command), "rm -rf '%s'", directory);
	return system(command) != 0 || check_result();
}
