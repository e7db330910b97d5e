/*
 * Threads that block all signals, and have a small stack: memory may be limited.
 */
#ifndef BASE_THREADS_H
#define BASE_THREADS_H

#include <pthread.h>
#include <stddef.h>

/* 0, or an errno. */
int threads_start(pthread_t *thread, void *(*run)(void *), void *argument);

/*
 * Calls act(context, i) for each i below count, all at once, and returns when all have
 * returned. The calling thread does number 0, and those for which no thread could be
 * started, one after the other.
 */
void threads_each(size_t count, void (*act)(void *context, size_t i),
		  void *context);

#endif
