/*
 * Waits that nothing explains, judged while nothing stands in the way of a key: whoever
 * waits has to be served by what servers, messages and the others do, and not because at
 * last a lease or a quarantine is over.
 *
 * What is so is seen from outside, as no redlock can see it: who holds a key and who tries to
 * get it, whose tokens the servers have, and which servers can be reached.
 */
#ifndef NEEDLESS_H
#define NEEDLESS_H

#include <stddef.h>

/* From the beginning of the world. */
void needless_watch(void);

/* Somebody has got this key. */
void needless_granted(size_t key);

#endif
