/*
 * headless [SIGNAL]: its first thread ends. Another one writes "UP", sends the process
 * SIGNAL (a number), if it is given, and is as cat(1) then.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_t first;

static void *run(void *signal)
{
	char text[512] = "UP\n";
	ssize_t length = 3;

	pthread_join(first, NULL);
	if (write(1, text, (size_t)length) == length && signal != NULL)
		kill(getpid(), (int)strtol(signal, NULL, 10));
	while ((length = read(0, text, sizeof(text))) > 0)
		if (write(1, text, (size_t)length) < 0)
			break;
	exit(0);
}

int main(int argc, char **argv)
{
	pthread_t other;

	first = pthread_self();
	if (pthread_create(&other, NULL, run, argc > 1 ? argv[1] : NULL) != 0)
		return 1;
	pthread_exit(NULL);
}
