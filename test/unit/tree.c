/* Who is found, when, and who is not hit. */
#include "run/tree.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "run/process.h"

/* In a group of its own (0), or in this one; with a name and an environment of its
 * own. It ends with us, if by nothing else. */
static pid_t start_in(pid_t group, const char *name, const char *held)
{
	int ends[2];
	char byte;
	pid_t pid;

	CHECK(pipe(ends) == 0, "pipe");
	pid = fork();
	if (pid == 0) {
		char *const arguments[] = {(char *)"sleep", (char *)"60", NULL};
		char *const environment[] = {(char *)"A=1", (char *)held,
					     (char *)"B=2", NULL};

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGTERM, SIG_IGN);
		setpgid(0, group);
		if (name != NULL)
			prctl(PR_SET_NAME, name);
		close(ends[0]);
		if (held != NULL) {
			execve("/bin/sleep", arguments, environment);
		}
		if (write(ends[1], "", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	close(ends[1]);
	if (held == NULL)
		CHECK(read(ends[0], &byte, 1) == 1, "not started");
	else
		/* its name changes before its environment */
		for (char path[64], seen[16] = ""; strcmp(seen, "A=1") != 0;) {
			FILE *file;

			snprintf(path, sizeof(path), "/proc/%ld/environ",
				 (long)pid);
			file = fopen(path, "re");
			if (file == NULL)
				break;
			if (fgets(seen, 4 + 1, file) == NULL)
				seen[0] = '\0';
			fclose(file);
		}
	close(ends[0]);
	return pid;
}

static bool is_alive(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) == 0;
}

static bool has_ended(pid_t pid)
{
	siginfo_t info;

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0 &&
	       info.si_status == SIGKILL;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static struct tree tree_for(pid_t command)
{
	return tree_of(command, getpgid(command), getsid(0), clock_ms(),
		       "key=token");
}

static struct deadline later(void)
{
	return deadline_in(100000);
}

static void test_killed_in_time(void)
{
	pid_t command = start_in(0, NULL, NULL);
	pid_t member = start_in(command, NULL, NULL);
	struct tree tree = tree_for(command);

	tree_look(&tree, later());
	CHECK(tree.known_count == 2, "%zu", tree.known_count);
	tree_watch(&tree, later());
	CHECK(is_alive(command) && is_alive(member), "it was not time");
	CHECK(tree.killed == 0 && !tree_is_over(&tree), "over");
	tree_watch(&tree, deadline_at(clock_ms()));
	CHECK(tree.killed != 0, "it was time");
	CHECK(has_ended(command) && has_ended(member), "not killed");
	for (int i = 0; i < 100 && !tree_is_over(&tree); i++)
		tree_watch(&tree, deadline_at(0));
	CHECK(tree_is_over(&tree), "not over");
	tree_release(&tree);
	end(command);
	end(member);
}

/* A tree that has to be dead in time is stopped so much earlier, and not more. */
static void test_freeze(void)
{
	pid_t command = start_in(0, NULL, NULL);
	struct tree tree = tree_for(command);

	tree.in_time = true;
	tree_look(&tree, later());
	tree.cost = 20000;
	tree.effort = 0;
	tree_watch(&tree, deadline_in(2 * 20000 + 15000));
	CHECK(tree.killed == 0, "too early");
	tree.cost = 20000;
	tree_watch(&tree, deadline_in(2 * 20000));
	CHECK(tree.killed != 0, "too late");
	tree_release(&tree);
	end(command);
}

/* Between looks only those that are known are watched, for 20 times what a look
 * costs. */
static void test_looks_apart(void)
{
	pid_t command = start_in(0, NULL, NULL), member;
	struct tree tree = tree_for(command);

	tree_look(&tree, later());
	member = start_in(command, NULL, NULL);
	tree.cost = 1000;
	tree.looked = clock_ms() - 10000;
	tree_watch(&tree, later());
	CHECK(tree.known_count == 1, "too early: %zu", tree.known_count);
	tree.cost = 1000;
	tree.looked = clock_ms() - 20000;
	tree_watch(&tree, later());
	CHECK(tree.known_count == 2, "too late: %zu", tree.known_count);
	tree_release(&tree);
	end(command);
	end(member);
}

/* What has its number, but has begun later, is not COMMAND. */
static void test_number_taken(void)
{
	pid_t stranger = start_in(0, NULL, NULL);
	struct tree tree = tree_of(stranger, stranger, getsid(0),
				   clock_ms() - 1000, "key=token");

	tree_look(&tree, later());
	CHECK(tree.known_count == 0, "%zu", tree.known_count);
	tree_signal(&tree, SIGKILL);
	tree_watch(&tree, deadline_at(0));
	CHECK(is_alive(stranger), "hit");
	CHECK(tree.group == 0, "still its group");
	tree_release(&tree);
	end(stranger);
}

static void test_hostile_names(void)
{
	static const char *const names[] = {") R 1 1 1 1", "a) Z 2 (b\n",
					    "((((", "\n\n) S", ""};

	for (size_t i = 0; i < COUNT(names); i++) {
		pid_t command = start_in(0, names[i], NULL);
		pid_t member = start_in(command, names[i], NULL);
		struct tree tree = tree_for(command);
		struct buffer text = {0};

		tree_look(&tree, later());
		CHECK(tree.known_count == 2, "'%s'", names[i]);
		CHECK(tree_left(&tree, &text), "'%s'", names[i]);
		tree_watch(&tree, deadline_at(0));
		CHECK(has_ended(command) && has_ended(member), "'%s'",
		      names[i]);
		buffer_release(&text);
		tree_release(&tree);
		end(command);
		end(member);
	}
}

static void *sleep_on(void *argument)
{
	for (;;)
		pause();
	return argument;
}

/* Its first thread has ended: a zombie, as it seems. */
static void test_without_leader(void)
{
	struct tree tree;
	pid_t command = fork();
	pthread_t thread;
	siginfo_t info = {0};

	if (command == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		if (pthread_create(&thread, NULL, sleep_on, NULL) == 0)
			pthread_exit(NULL);
		_exit(1);
	}
	setpgid(command, command);
	for (char path[64], seen[64] = ""; strstr(seen, ") Z ") == NULL;) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%ld/stat", (long)command);
		file = fopen(path, "re");
		CHECK(file != NULL && fgets(seen, sizeof(seen), file), "stat");
		fclose(file);
	}
	tree = tree_for(command);
	tree_look(&tree, later());
	CHECK(tree.known_count == 1, "%zu", tree.known_count);
	CHECK(!tree_is_over(&tree), "over");
	tree_watch(&tree, deadline_at(0));
	waitid(P_PID, (id_t)command, &info, WEXITED | WNOWAIT);
	CHECK(info.si_status == SIGKILL, "%d", info.si_status);
	tree_release(&tree);
	end(command);
}

/* In a group that is shared: who has this lock in its environment, no other. */
static void test_badges(void)
{
	static const struct {
		const char *held;
		bool ours;
	} cases[] = {
		{"REDLOCK_HELD=key=token", true},
		{"REDLOCK_HELD=outer=1 key=token", true},
		{"REDLOCK_HELD=key=token inner=2", true},
		{"REDLOCK_HELD=key=token2", false},
		{"REDLOCK_HELD=key=toke", false},
		{"REDLOCK_HELD=key=", false},
	};
	pid_t command = start_in(getpgrp(), NULL, NULL);

	for (size_t i = 0; i < COUNT(cases); i++) {
		pid_t member = start_in(getpgrp(), NULL, cases[i].held);
		struct tree tree =
			tree_of(command, 0, getsid(0), clock_ms(), "key=token");

		tree_look(&tree, later());
		CHECK(tree.known_count == 1 + (size_t)cases[i].ours, "%s: %zu",
		      cases[i].held, tree.known_count);
		tree_release(&tree);
		end(member);
	}
	end(command);
}

/* Becomes this program again and again, and has lost its parent. */
static pid_t start_restless(char *program)
{
	char *const arguments[] = {program, (char *)"again", NULL};
	char *const environment[] = {(char *)"REDLOCK_HELD=key=token", NULL};
	int ends[2];
	bool unsure;
	pid_t child, pid;

	CHECK(pipe(ends) == 0, "pipe");
	child = fork();
	if (child == 0) {
		pid = fork();
		if (pid > 0)
			_exit(write(ends[1], &pid, sizeof(pid)) != sizeof(pid));
		alarm(60);
		setsid();
		execve(program, arguments, environment);
		_exit(1);
	}
	waitpid(child, NULL, 0);
	CHECK(read(ends[0], &pid, sizeof(pid)) == sizeof(pid), "not started");
	close(ends[0]);
	close(ends[1]);
	while (!process_carries(pid, "key=token", &unsure))
		poll(NULL, 0, 1);
	return pid;
}

/* It shows no environment while it becomes another program, a fifteenth of its time: then
 * the look is not sure of it. */
static void test_exec(char *program)
{
	int64_t before = clock_ms();
	pid_t command = fork(), restless;

	if (command == 0)
		_exit(setpgid(0, 0));
	setpgid(command, command);
	restless = start_restless(program);
	for (int i = 0; i < 200; i++) {
		struct tree tree = tree_for(command);

		tree.begun = before;
		tree_look(&tree, later());
		CHECK(tree.known_count == 1 || !tree.sure, "round %d", i);
		tree_release(&tree);
	}
	kill(restless, SIGKILL);
	waitpid(command, NULL, 0);
}

int main(int count, char **arguments)
{
	if (count > 1)
		execv(arguments[0], arguments);
	test_killed_in_time();
	test_freeze();
	test_looks_apart();
	test_number_taken();
	test_hostile_names();
	test_without_leader();
	test_badges();
	test_exec(arguments[0]);
	return check_result();
}
