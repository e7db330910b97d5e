#include "world.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "base/alloc.h"

#define STACK (256 << 10)
#define CALLS_MOST 300000 /* of processes, while no time passes */

/* --- chance ---------------------------------------------------------------- */

/* splitmix64 */
static uint64_t scramble(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

struct chance chance_of(uint64_t seed, uint64_t purpose)
{
	return (struct chance){scramble(scramble(seed + 1) ^ (purpose + 1))};
}

uint64_t chance_draw(struct chance *chance)
{
	chance->state += UINT64_C(0x9e3779b97f4a7c15);
	return scramble(chance->state);
}

int64_t chance_between(struct chance *chance, int64_t least, int64_t most)
{
	if (most <= least)
		return least;
	return least +
	       (int64_t)(chance_draw(chance) % (uint64_t)(most - least + 1));
}

bool chance_is(struct chance *chance, int64_t per_mille)
{
	return chance_between(chance, 0, 999) < per_mille;
}

/* --- time ------------------------------------------------------------------ */

int64_t world_now;

int64_t clock_read(const struct clock *clock)
{
	return clock->offset + world_now +
	       (int64_t)((__int128)world_now * clock->rate / 1000000);
}

int64_t clock_when(const struct clock *clock, int64_t reading)
{
	int64_t passed = reading - clock->offset;

	return (int64_t)((__int128)passed * 1000000 / (1000000 + clock->rate)) +
	       1;
}

struct event {
	int64_t when;
	uint64_t order;
	world_act *act;
	void *context;
	uint64_t value;
};

static struct event *events; /* a heap */
static size_t event_count, event_room;
static uint64_t event_order;
static uint64_t calls; /* since time has passed */

static bool is_before(const struct event *a, const struct event *b)
{
	return a->when < b->when || (a->when == b->when && a->order < b->order);
}

static void swap(struct event *a, struct event *b)
{
	struct event c = *a;

	*a = *b;
	*b = c;
}

void world_at(int64_t when, world_act *act, void *context, uint64_t value)
{
	size_t at = event_count++;

	if (event_count > event_room) {
		event_room = 2 * event_room + 256;
		events = realloc(events, event_room * sizeof(*events));
		if (events == NULL)
			abort();
	}
	events[at] = (struct event){when < world_now ? world_now : when,
				    event_order++, act, context, value};
	for (; at > 0 && is_before(&events[at], &events[(at - 1) / 2]);
	     at = (at - 1) / 2)
		swap(&events[at], &events[(at - 1) / 2]);
}

static struct event next_event(void)
{
	struct event first = events[0];
	size_t at = 0;

	events[0] = events[--event_count];
	for (;;) {
		size_t least = at, child = 2 * at + 1;

		for (size_t i = child; i < child + 2 && i < event_count; i++)
			if (is_before(&events[i], &events[least]))
				least = i;
		if (least == at)
			return first;
		swap(&events[at], &events[least]);
		at = least;
	}
}

bool world_is_over(void)
{
	return event_count == 0;
}

void world_run(int64_t until)
{
	while (event_count > 0 && events[0].when <= until) {
		struct event event = next_event();

		if (event.when > world_now)
			calls = 0;
		world_now = event.when;
		world_mix((uint64_t)event.when);
		event.act(event.context, event.value);
	}
	if (world_now < until)
		world_now = until;
}

/* --- fibers ---------------------------------------------------------------- */

struct fiber {
	struct process *process;
	unsigned life; /* of the process */
	ucontext_t context;
	jmp_buf here; /* ucontext(3) would call the kernel at each switch */
	bool begun;
	void *stack;
	void *(*run)(void *);
	void *argument;
	bool over, woken, missed; /* missed: woken in a pause */
	uint64_t waits;           /* how often it has waited */
	struct fiber *joiner, *next;
};

static struct fiber *current;
static jmp_buf scheduler;
static ucontext_t scheduler_context;
static void *stacks[64]; /* to be used again */
static size_t stack_count;

static void *new_stack(void)
{
	void *stack;

	if (stack_count > 0)
		return stacks[--stack_count];
	stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED)
		abort();
	mprotect(stack, 4096, PROT_NONE);
	return stack;
}

static void free_stack(struct fiber *fiber)
{
	if (stack_count < sizeof(stacks) / sizeof(stacks[0]))
		stacks[stack_count++] = fiber->stack;
	else
		munmap(fiber->stack, STACK);
	fiber->stack = NULL;
}

struct process *world_process(void)
{
	return current != NULL ? current->process : NULL;
}

struct fiber *world_fiber(void)
{
	return current;
}

static void yield(void)
{
	struct fiber *fiber = current;

	if (_setjmp(fiber->here) == 0)
		_longjmp(scheduler, 1);
}

static void begin(void)
{
	struct fiber *fiber = current;

	fiber->run(fiber->argument);
	fiber->over = true;
	if (fiber->joiner != NULL)
		world_wake(fiber->joiner);
	yield();
}

static void enter(struct fiber *fiber)
{
	if (fiber->begun)
		_longjmp(fiber->here, 1);
	fiber->begun = true;
	swapcontext(&scheduler_context, &fiber->context);
}

static bool is_alive(const struct fiber *fiber)
{
	return !fiber->over && fiber->process->alive &&
	       fiber->process->life == fiber->life;
}

static void resume(struct fiber *volatile fiber)
{
	if (!is_alive(fiber))
		return;
	if (fiber->process->paused > 0) {
		fiber->missed = true;
		return;
	}
	current = fiber;
	if (_setjmp(scheduler) == 0)
		enter(fiber);
	current = NULL;
	if (fiber->over)
		free_stack(fiber);
}

static void do_resume(void *context, uint64_t value)
{
	struct fiber *fiber = context;

	if (value != fiber->waits)
		return; /* it has gone on since */
	resume(fiber);
}

static struct fiber *new_fiber(struct process *process, void *(*run)(void *),
			       void *argument)
{
	struct fiber *fiber = xcalloc(1, sizeof(*fiber));

	*fiber = (struct fiber){.process = process,
				.life = process->life,
				.stack = new_stack(),
				.run = run,
				.argument = argument,
				.next = process->fibers};
	getcontext(&fiber->context);
	fiber->context.uc_stack.ss_sp = fiber->stack;
	fiber->context.uc_stack.ss_size = STACK;
	fiber->context.uc_link = NULL;
	makecontext(&fiber->context, begin, 0);
	process->fibers = fiber;
	fiber->woken = true;
	world_at(world_now, do_resume, fiber, 0);
	return fiber;
}

void world_start(struct process *process, void *(*run)(void *), void *argument)
{
	process->alive = true;
	process->paused = 0;
	process->trap = 0;
	process->fibers = NULL;
	new_fiber(process, run, argument);
}

struct fiber *world_thread(void *(*run)(void *), void *argument)
{
	return new_fiber(current->process, run, argument);
}

void world_wake(struct fiber *fiber)
{
	if (fiber->woken || !is_alive(fiber))
		return;
	fiber->woken = true;
	world_at(world_now, do_resume, fiber, fiber->waits);
}

void world_wait(int64_t until)
{
	struct fiber *fiber = current;

	fiber->waits++;
	fiber->woken = fiber->missed = false;
	if (until != INT64_MAX)
		world_at(until, do_resume, fiber, fiber->waits);
	yield();
	fiber->waits++; /* what else would wake it is late */
}

void world_join(struct fiber *fiber)
{
	fiber->joiner = current;
	while (!fiber->over)
		world_wait(INT64_MAX);
}

/* --- faults of processes --------------------------------------------------- */

void world_kill(struct process *process)
{
	if (!process->alive)
		return;
	process->alive = false;
	process->died(process);
	if (current != NULL && current->process == process) {
		yield();
		abort();
	}
}

static void do_continue(void *context, uint64_t value)
{
	struct process *process = context;

	if (!process->alive || process->life != value)
		return;
	if (--process->paused > 0)
		return;
	process->resumed = world_now;
	world_tell("process", "%zu goes on", process->number);
	for (struct fiber *fiber = process->fibers; fiber != NULL;
	     fiber = fiber->next)
		if (fiber->missed)
			world_at(world_now, do_resume, fiber, fiber->waits);
}

void world_pause(struct process *process, int64_t lasts)
{
	if (!process->alive)
		return;
	process->paused++;
	world_at(world_now + lasts, do_continue, process, process->life);
	if (current != NULL && current->process == process) {
		current->waits++;
		current->missed = true; /* to be resumed after it */
		yield();
		current->waits++;
	}
}

void world_trap(void)
{
	struct process *process = world_process();

	if (++calls > CALLS_MOST)
		world_violation("redlock is busy, and no time passes");
	if (process == NULL || process->trap == 0 || --process->trap > 0)
		return;
	world_tell("process", "%zu is %s between two calls", process->number,
		   process->trap_pause > 0 ? "paused" : "killed");
	if (process->trap_pause > 0)
		world_pause(process, process->trap_pause);
	else
		world_kill(process);
}

/* --- what is seen of it ---------------------------------------------------- */

bool world_tells;
void (*world_on_violation)(const char *text);
static uint64_t sum;

void world_mix(uint64_t value)
{
	sum = (sum ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	sum ^= sum >> 29;
}

uint64_t world_hash(void)
{
	return sum;
}

void world_tell(const char *who, const char *format, ...)
{
	va_list arguments;

	if (!world_tells)
		return;
	printf("%11.6f  %-10s ", (double)world_now / 1e6, who);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
}

void world_violation(const char *format, ...)
{
	char text[1000];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	world_tell("VIOLATION", "%s", text);
	world_on_violation(text);
	abort();
}
