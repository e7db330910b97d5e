/*
 * vforks FILE: makes a child by vfork(2), which writes "UP" and calls exec as
 * soon as FILE is there. Until then the parent takes no signal. Exits with 3.
 */
#include <unistd.h>

int main(int argc, char **argv)
{
	const char up[] = "UP\n";

	if (argc != 2)
		return 64;
	/* NOLINTNEXTLINE: vfork is what this is about */
	if (vfork() != 0)
		return 3;
	if (write(1, up, sizeof(up) - 1) < 0)
		_exit(1);
	while (access(argv[1], F_OK) < 0)
		usleep(10000);
	execl("/bin/true", "true", (char *)NULL);
	_exit(1);
}
