/*
 * Descriptors of a process that leaves what it has inherited, even if there is neither
 * /dev/null nor /proc, as in a bare chroot.
 */
#ifndef BASE_DESCRIPTORS_H
#define BASE_DESCRIPTORS_H

/* One that nothing comes from and that takes nothing, and is close-on-exec: /dev/null with
 * these access flags, or else a connection that is over (a write fails). -1 with errno. */
int descriptors_nowhere(int access);

/* Closes all from this one on. closefrom(3) ends the process if the kernel has no
 * close_range(2) and there is no /proc. Async-signal-safe. */
void descriptors_close_from(int first);

#endif
