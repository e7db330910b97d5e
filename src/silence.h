/*
 * Which servers have been silent of late, and how long the others are heard.
 *
 * Where votes cannot be relied on alone, a server that knows the holder may be
 * the one that answers last (trust.h). Nobody can tell a slow server from a dead
 * one, but a dead one should cost no acquisition its time. So a server gets a
 * while to answer: 200 ms, or three times what it took of late. If it does not
 * use it, this is remembered (hint.h) for a minute, and for that long nobody on
 * this machine gives it a while again. So a dead server costs one acquisition in
 * a minute at most 200 ms, and only one whose KEY has young records.
 *
 * What is remembered can only make us hear less than we might: a server that is
 * both slow and was silent within the minute. If nothing can be remembered, each
 * acquisition waits.
 */
#ifndef SILENCE_H
#define SILENCE_H

#include "lock.h"

/* Until when to hear a server that was asked at `since` (ms); passed if it has
 * been silent of late. */
struct deadline silence_end(struct lock *lock, size_t server, int64_t since);

/* It has not answered until then. */
void silence_note(struct lock *lock, size_t server);

#endif
