#include "base/threads.h"

#include <stdbool.h>

#include "base/bounds.h"
#include "base/deadline.h"
#include "base/signals.h"

#define STACK ((size_t)512 << 10)

int threads_start(pthread_t *thread, void *(*run)(void *), void *argument)
{
	struct signals_mask before;
	pthread_attr_t attributes;
	int result;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	signals_block_all(&before);
	result = pthread_create(thread, &attributes, run, argument);
	signals_unblock(&before);
	pthread_attr_destroy(&attributes);
	return result;
}

struct call {
	void (*act)(void *context, size_t i);
	void *context;
	size_t i;
	pthread_t thread;
	bool started;
};

static void *run(void *argument)
{
	const struct call *call = argument;

	call->act(call->context, call->i);
	deadline_end_thread();
	return NULL;
}

void threads_each(size_t count, void (*act)(void *context, size_t i),
		  void *context)
{
	struct call calls[LOCKS_MOST];

	for (size_t i = 1; i < count; i++) {
		calls[i] =
			(struct call){.act = act, .context = context, .i = i};
		calls[i].started =
			threads_start(&calls[i].thread, run, &calls[i]) == 0;
	}
	if (count > 0)
		act(context, 0);
	for (size_t i = 1; i < count; i++)
		if (calls[i].started)
			pthread_join(calls[i].thread, NULL);
		else
			act(context, i);
}
