/*
 * Which servers have been silent recently, and how long the others are heard.
 *
 * If the votes alone cannot be relied on, a server that knows the holder may be
 * the one that answers last (trust.h). Nobody can tell a slow server from a dead
 * one, but a dead one should not delay each acquisition. So a server gets a
 * while to answer: 200 ms, or three times what it took recently, but no more than
 * half of the ttl or the time of a round (lock_acquire.c). If it does not answer
 * in that time, this is remembered (hint.h) for a minute, and in that minute no
 * process of this user on this machine waits for it again. So a dead server
 * delays one acquisition in a minute, and only one whose KEY has young records.
 *
 * What is remembered can only make us hear less than we might: a server that is
 * slow and was silent within the minute is not heard. If nothing can be
 * remembered, each acquisition waits.
 */
#ifndef SILENCE_H
#define SILENCE_H

#include "lock/lock.h"

/* Until when to hear a server that was asked at `since` (ms); passed if it has
 * been silent recently. */
struct deadline silence_end(struct lock *lock, size_t server, int64_t since);

/* It has not answered until then. */
void silence_note(struct lock *lock, size_t server);

#endif
