/*
 * Coverage builds only (make coverage): the counters of a process that ends by
 * _exit or by a signal that it sends to itself are written first. Linked with
 * -Wl,--wrap=_exit,--wrap=raise. gcc does the same before fork and exec; those
 * of a process that is killed are lost.
 */
#include <signal.h>
#include <unistd.h>

void __gcov_dump(void);
void __gcov_reset(void);
_Noreturn void __real__exit(int status);
_Noreturn void __wrap__exit(int status);
int __real_raise(int number);
int __wrap_raise(int number);

void __wrap__exit(int status)
{
	__gcov_dump();
	__real__exit(status);
}

int __wrap_raise(int number)
{
	__gcov_dump();
	__gcov_reset();
	return __real_raise(number);
}
