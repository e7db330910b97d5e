/* The live line of the log, as the bytes that a terminal gets. */
#include "base/log.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define CLEAR "\033[K"

struct scene {
	const char *name;
	void (*play)(void);
	unsigned short columns;
	enum log_level level;
	const char *term;
	const char *wanted; /* bytes on the terminal */
};

/* In a session of its own, with the terminal as its standard error. */
static void play(const struct scene *scene, const char *terminal)
{
	struct winsize size = {.ws_col = scene->columns, .ws_row = 24};
	int fd;

	setsid();
	fd = open(terminal, O_RDWR);
	if (fd < 0 || ioctl(fd, TIOCSWINSZ, &size) < 0 ||
	    dup2(fd, STDERR_FILENO) < 0)
		_exit(9);
	setenv("TERM", scene->term, 1);
	setenv("LC_ALL", "C.UTF-8", 1);
	log_init(scene->level);
	scene->play();
	_exit(0);
}

/* What comes until nobody has the terminal open any more. */
static void watch(int fd, char *bytes, size_t size)
{
	size_t length = 0;
	ssize_t got;

	while (length < size - 1 &&
	       (got = read(fd, bytes + length, size - 1 - length)) > 0)
		length += (size_t)got;
	bytes[length] = '\0';
}

static void run_scene(const struct scene *scene)
{
	int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	const char *terminal = NULL;
	char bytes[4096];
	int status = -1;
	pid_t pid;

	if (fd >= 0 && grantpt(fd) == 0 && unlockpt(fd) == 0)
		terminal = ptsname(fd);
	CHECK(terminal != NULL, "no terminal");
	if (terminal == NULL)
		return;
	pid = fork();
	if (pid == 0)
		play(scene, terminal);
	watch(fd, bytes, sizeof(bytes));
	waitpid(pid, &status, 0);
	CHECK(status == 0, "%s: status %x", scene->name, (unsigned)status);
	CHECK(same(bytes, scene->wanted), "%s: '%s'", scene->name, bytes);
	close(fd);
}

static void expect_live(bool wanted)
{
	if (log_is_live() != wanted)
		_exit(8);
}

static void rewritten(void)
{
	expect_live(true);
	log_live_end();
	log_live("key", "", "", "2 in line");
	log_live("key", "", "", "1 in line");
	log_live_end();
	log_live_end();
}

static void erased_by_others(void)
{
	log_live("a", "", "", "z");
	log_error("b");
	log_notice("c");
	log_live("d", "", "", "z");
	log_notice("e");
}

static void hostile(void)
{
	log_live("a\033[31m\n\xff", "", "", "b");
}

static void long_line(void)
{
	log_live("deploy", "held by web3 pid 812 '/usr/local/bin/backup.sh'",
		 " for 4m10s", "3rd in line, waiting for 2m");
}

static void wide_letters(void)
{
	/* two columns each */
	log_live("\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2", "", "",
		 "\xc3\xbc\xc3\xbc");
}

static void silent(void)
{
	expect_live(false);
	log_live("a", "", "", "z");
	log_error("b");
	log_live_end();
}

static void in_background(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		setpgid(0, 0);
		silent();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	if (status != 0)
		_exit(7);
}

/* Drawn, and then sent to the background: it is not ours to erase. */
static void leaves_foreground(void)
{
	log_live("a", "", "", "z");
	if (fork() == 0) {
		setpgid(0, 0);
		log_live_end();
		log_error("b");
		_exit(0);
	}
	wait(NULL);
}

static void redirected(void)
{
	int fds[2];

	if (pipe(fds) < 0 || dup2(fds[1], STDERR_FILENO) < 0)
		_exit(6);
	silent();
}

static const struct scene scenes[] = {
	{"rewritten", rewritten, 80, LOG_NORMAL, "xterm",
	 "\rredlock: key: 2 in line" CLEAR "\rredlock: key: 1 in line" CLEAR
	 "\r" CLEAR},
	{"erased", erased_by_others, 80, LOG_NORMAL, "",
	 "\rredlock: a: z" CLEAR "\r" CLEAR
	 "redlock: b\r\nredlock: c\r\n\rredlock: d: z" CLEAR "\r" CLEAR
	 "redlock: e\r\n"},
	{"hostile", hostile, 80, LOG_NORMAL, "xterm",
	 "\rredlock: a\\e[31m\\n\\xff: b" CLEAR},
	{"200 columns", long_line, 200, LOG_NORMAL, "xterm",
	 "\rredlock: deploy: held by web3 pid 812 '/usr/local/bin/backup.sh' "
	 "for 4m10s, 3rd in line, waiting for 2m" CLEAR},
	{"80 columns", long_line, 80, LOG_NORMAL, "xterm",
	 "\rredlock: deploy: held by web3 pid 812... for 4m10s, 3rd in line, "
	 "waiting for 2m" CLEAR},
	{"60 columns", long_line, 60, LOG_NORMAL, "xterm",
	 "\rdeploy: held by w... for 4m10s, 3rd in line, "
	 "waiting for 2m" CLEAR},
	{"50 columns", long_line, 50, LOG_NORMAL, "xterm",
	 "\rredlock: deploy: 3rd in line, waiting for 2m" CLEAR},
	{"40 columns", long_line, 40, LOG_NORMAL, "xterm",
	 "\rdeploy: 3rd in line, waiting for 2m" CLEAR},
	{"36 columns", long_line, 36, LOG_NORMAL, "xterm",
	 "\rdeploy: 3rd in line, waiting for 2m" CLEAR},
	{"35 columns", long_line, 35, LOG_NORMAL, "xterm",
	 "\rde...: 3rd in line, waiting for 2m" CLEAR},
	{"28 columns", long_line, 28, LOG_NORMAL, "xterm",
	 "\r3rd in line, waiting for 2m" CLEAR},
	{"10 columns", long_line, 10, LOG_NORMAL, "xterm", "\r3rd in li" CLEAR},
	{"wide letters", wide_letters, 22, LOG_NORMAL, "xterm",
	 "\rredlock: \xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2: "
	 "\xc3\xbc\xc3\xbc" CLEAR},
	{"wide letters, cut", wide_letters, 10, LOG_NORMAL, "xterm",
	 "\r\xe6\xbc\xa2...: \xc3\xbc\xc3\xbc" CLEAR},
	{"of unknown width", hostile, 0, LOG_NORMAL, "xterm",
	 "\rredlock: a\\e[31m\\n\\xff: b" CLEAR},
	{"one column", hostile, 1, LOG_NORMAL, "xterm", "\r" CLEAR},
	{"quiet", silent, 80, LOG_QUIET, "xterm", "redlock: b\r\n"},
	{"verbose", silent, 80, LOG_VERBOSE, "xterm", "redlock: b\r\n"},
	{"dumb", silent, 80, LOG_NORMAL, "dumb", "redlock: b\r\n"},
	{"background", in_background, 80, LOG_NORMAL, "xterm",
	 "redlock: b\r\n"},
	{"leaves", leaves_foreground, 80, LOG_NORMAL, "xterm",
	 "\rredlock: a: z" CLEAR "redlock: b\r\n"},
	{"redirected", redirected, 80, LOG_NORMAL, "xterm", ""},
};

int main(void)
{
	for (size_t i = 0; i < COUNT(scenes); i++)
		run_scene(&scenes[i]);
	return check_result();
}
