/* What the guard is told, and when it needs no waiting for. */
#include "run/guard.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define PIPE_HOLDS (65536 / 32) /* messages, at most */

static struct lease_times in(int64_t ms)
{
	return lease_times(deadline_in(ms + 200), 1000, 1000, 100);
}

/* A COMMAND that has exited and is not reaped. */
static pid_t ended_command(void)
{
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	return pid;
}

static void start(struct guard *guard, pid_t command, int64_t ms)
{
	const struct lease_times times = in(ms);

	CHECK(guard_start(guard, SIGTERM, true, 100) == 0, "no guard");
	CHECK(guard_entrust(guard, "key", "token", &times, 1) == 0,
	      "not entrusted");
	guard_announce(guard, command, 0);
	guard_note(guard, command, 0);
}

/* Its time is far away, and it hears nothing. */
static void start_stopped(struct guard *guard, pid_t command)
{
	start(guard, command, 600000);
	kill(guard->pid, SIGSTOP);
	waitpid(guard->pid, NULL, WUNTRACED);
}

/* It has not acted, and is gone. */
static void check_spared(struct guard *guard, pid_t command)
{
	CHECK(!guard_wait(guard), "it has acted");
	waitpid(command, NULL, 0);
}

static void test_goodbye(void)
{
	struct guard guard;
	pid_t command = ended_command();

	start(&guard, command, 600000);
	CHECK(guard_goodbye(&guard), "in time");
	check_spared(&guard, command);
}

/* A renewal may end between the goodbye and the watchdog's stop. */
static void test_told_after_goodbye(void)
{
	struct guard guard;
	pid_t command = ended_command();

	start(&guard, command, 600000);
	CHECK(guard_goodbye(&guard), "in time");
	alarm(20); /* instead of hanging */
	guard_tell(&guard, 0, in(600000));
	alarm(0);
	check_spared(&guard, command);
}

static void test_goodbye_too_late(void)
{
	struct guard guard;
	pid_t command = ended_command();

	start(&guard, command, -100000);
	CHECK(!guard_goodbye(&guard), "its time had come");
	CHECK(!guard_wait(&guard), "it has stopped what had ended");
	CHECK(!guard.in_time, "nobody knows when it ended");
	waitpid(command, NULL, 0);
}

/* It looks while the lease lasts, and finds nobody; unless that was lost. */
static void test_ended_in_time(bool lost)
{
	struct lease_times times = in(0);
	struct guard guard;
	pid_t command = ended_command();

	start(&guard, command, 600000);
	times.term = lost ? deadline_at(0) : deadline_in(1);
	times.kill = deadline_in(20000);
	times.end = deadline_in(30000);
	guard_tell(&guard, 0, times);
	deadline_poll(NULL, 0, deadline_in(200));
	CHECK(!guard_goodbye(&guard), "its time had come");
	CHECK(!guard_wait(&guard), "it has stopped what had ended");
	CHECK(guard.in_time == !lost, "in time: %d", guard.in_time);
	waitpid(command, NULL, 0);
}

/* One that was stopped meanwhile for longer than its pipe has room. */
static void test_full_pipe(void)
{
	struct guard guard;
	pid_t command = ended_command();

	start_stopped(&guard, command);
	for (int i = 0; i < PIPE_HOLDS + 10; i++)
		guard_tell(&guard, 0, in(600000));
	CHECK(guard_goodbye(&guard), "in time");
	check_spared(&guard, command);
}

/* The pipe is full of times that have passed when it goes on. */
static void test_stopped_for_long(void)
{
	struct guard guard;
	pid_t command = fork();

	if (command == 0) {
		pause();
		_exit(0);
	}
	start_stopped(&guard, command);
	for (int i = 0; i < PIPE_HOLDS + 10; i++)
		guard_tell(&guard, 0, in(-100));
	guard_tell(&guard, 0, in(600000));
	kill(guard.pid, SIGCONT);
	deadline_poll(NULL, 0, deadline_in(300));
	CHECK(guard_goodbye(&guard), "in time");
	CHECK(!guard_wait(&guard), "it has acted");
	kill(command, SIGKILL);
	waitpid(command, NULL, 0);
}

/* Late itself, it finds old times and the goodbye: nothing is to be stopped. */
static void test_late_guard(void)
{
	struct guard guard;
	pid_t command = ended_command();

	start_stopped(&guard, command);
	guard_tell(&guard, 0, in(300));
	CHECK(guard_goodbye(&guard), "in time");
	deadline_poll(NULL, 0, deadline_in(400));
	check_spared(&guard, command);
}

/* redlock has said goodbye and died before it was heard: COMMAND has exited, and
 * what it left behind is nobody's business. */
static void test_orphaned_late(void)
{
	struct guard guard;
	pid_t command = ended_command();
	int status = -1;

	start_stopped(&guard, command);
	CHECK(guard_goodbye(&guard), "in time");
	close(guard.writable);
	close(guard.readable);
	kill(guard.pid, SIGCONT);
	waitpid(guard.pid, &status, 0);
	CHECK(status == 0, "it has acted: %d", status);
	waitpid(command, NULL, 0);
}

int main(void)
{
	test_goodbye();
	test_told_after_goodbye();
	test_goodbye_too_late();
	test_ended_in_time(false);
	test_ended_in_time(true);
	test_full_pipe();
	test_stopped_for_long();
	test_late_guard();
	test_orphaned_late();
	return check_result();
}
