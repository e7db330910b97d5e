/* The process title, and what its first use moves away. */
#include "base/title.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "check.h"

static char seen[4096];

/* What ps(1) would show: nothing may stand behind the NULs, either. */
static const char *title(void)
{
	FILE *file = fopen("/proc/self/cmdline", "re");
	size_t size = fread(seen, 1, sizeof(seen) - 1, file);

	fclose(file);
	while (size > 0 && seen[size - 1] == '\0')
		size--;
	seen[size] = '\0';
	for (size_t i = 0; i < size; i++)
		if (seen[i] == '\0')
			seen[i] = ' ';
	return seen;
}

static void test_deferred(void)
{
	title_defer();
	title_set("too early");
	CHECK(!title_is_set(), "while the environment is in use");
	CHECK(strstr(title(), "early") == NULL, "'%s'", seen);
	title_allow();
}

static void test_texts(void)
{
	char key[4097] = "";

	title_set("%s: held", "a\033\nb");
	CHECK(title_is_set(), "set");
	CHECK(same(title(), "redlock: a\\e\\nb: held"), "'%s'", seen);
	title_set("%s", "x");
	CHECK(same(title(), "redlock: x"), "'%s'", seen);
	/* as long as argv[0], where libbsd would leave a mark */
	title_set("%.*s", (int)(strlen("title: longer") - strlen("redlock: ")),
		  "yyyyyyyy");
	CHECK(same(title(), "redlock: yyyy"), "'%s'", seen);
	memset(key, 'k', 4096);
	title_set("%s: held, until %s", key, "noon");
	CHECK(strlen(title()) <= 255, "%zu bytes", strlen(seen));
	CHECK(strstr(seen, "kk...kk") != NULL, "'%s'", seen);
	CHECK(strstr(seen, "kk: held, until noon") != NULL, "'%s'", seen);
	for (size_t i = 0; i < 4096; i += 2)
		memcpy(key + i, "\xc3\xbc", 2);
	title_set("%s: held", key);
	CHECK(strstr(title(), "\xc3\xbc...\xc3\xbc") != NULL, "'%s'", seen);
}

static void test_kept(char **argv)
{
	static const char *const wanted[] = {"B=", "odd", "A=1", "A=2",
					     "LC_ALL=C.UTF-8"};
	size_t last = COUNT(wanted);

	CHECK(same(argv[2], "") && same(argv[3], "last"), "'%s'", argv[3]);
	for (size_t i = 0; i < COUNT(wanted); i++)
		CHECK(same(environ[i], wanted[i]), "'%s'", environ[i]);
	CHECK(strlen(environ[last]) == 399, "'%s'", environ[last]);
	CHECK(environ[last + 1] == NULL, "one more");
	setenv("A", "3", 1);
	setenv("C", "4", 1);
	CHECK(same(getenv("A"), "3") && same(getenv("C"), "4"), "set");
}

int main(int argc, char **argv)
{
	static char *arguments[] = {(char *)"title: longer", (char *)"a secret",
				    (char *)"", (char *)"last", NULL};
	static char room[400] = "ROOM=";
	static char *variables[] = {
		(char *)"B=",
		(char *)"odd",
		(char *)"A=1",
		(char *)"A=2",
		(char *)"LC_ALL=C.UTF-8",
		room,
		NULL,
	};

	if (argc == 1) {
		memset(room + 5, 'x', sizeof(room) - 6);
		execve("/proc/self/exe", arguments, variables);
		return 99;
	}
	title_init(argc, argv);
	log_init(LOG_NORMAL);
	/* as a password is hidden: a gap, where the room must not end */
	memset(argv[1] + 1, '\0', strlen(argv[1]) - 1);
	test_deferred();
	test_texts();
	test_kept(argv);
	return check_result();
}
