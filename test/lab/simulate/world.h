/*
 * Time, chance and the processes of a simulated world. One thread does everything;
 * nothing here depends on the machine, so the same seed is the same run.
 *
 * Time is virtual, in us since the world began: it passes only from one event to the
 * next. Each process and each server has clocks of its own, which begin anywhere and run
 * at rates of their own (struct clock).
 *
 * A process is a redlock: one fiber, and one more for each thread that it starts. A
 * fiber runs until it polls. A process can be paused, and killed: at a moment, or
 * between any two of its calls to the world (world_trap), as time passes between any two
 * instructions of a real process.
 */
#ifndef WORLD_H
#define WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MS INT64_C(1000) /* us */
#define SECOND (1000 * MS)

/* --- chance ----------------------------------------------------------------- */

struct chance {
	uint64_t state;
};

struct chance chance_of(uint64_t seed, uint64_t purpose);
uint64_t chance_draw(struct chance *chance);
int64_t chance_between(struct chance *chance, int64_t least, int64_t most);
bool chance_is(struct chance *chance, int64_t per_mille);

/* --- time ------------------------------------------------------------------- */

extern int64_t world_now; /* us */

struct clock {
	int64_t offset; /* us */
	int64_t rate;   /* millionths that it is fast */
};

int64_t clock_read(const struct clock *clock);          /* us */
int64_t clock_when(const struct clock *clock, int64_t); /* the world's time */

typedef void world_act(void *context, uint64_t value);

/* Those of one time happen in the order in which they were asked for. */
void world_at(int64_t when, world_act *act, void *context, uint64_t value);

/* What happens until then. */
void world_run(int64_t until);

/* Whether nothing will ever happen. */
bool world_is_over(void);

/* --- processes --------------------------------------------------------------- */

struct fiber;

struct process {
	size_t number; /* of the client */
	unsigned life; /* how often it was started */
	size_t host;   /* whose links it uses */
	struct clock boot, wall;
	struct chance chance; /* arc4random(3) */
	bool alive;
	int paused;         /* how many pauses it is in */
	int64_t resumed;    /* us: when the last one was over */
	int64_t trap;       /* after so many calls; 0: none */
	int64_t trap_pause; /* us; 0: it is killed */
	struct fiber *fibers;
	void (*died)(struct process *process); /* closes what it had open */
	void *context;
};

/* Whose fiber runs; NULL: none does. */
struct process *world_process(void);

/* The process begins: run(argument). */
void world_start(struct process *process, void *(*run)(void *), void *argument);

/* A thread of the process that runs. */
struct fiber *world_thread(void *(*run)(void *), void *argument);
void world_join(struct fiber *fiber);

struct fiber *world_fiber(void);

/* The fiber that runs waits until it is woken, or until then. */
void world_wait(int64_t until);
void world_wake(struct fiber *fiber);

void world_kill(struct process *process);
void world_pause(struct process *process, int64_t lasts);

/* To be called wherever a process calls the world. */
void world_trap(void);

/* --- what is seen of it ------------------------------------------------------ */

/* A line of the trace. */
void world_tell(const char *who, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
extern bool world_tells;

/* A promise is broken: the run ends. */
void world_violation(const char *format, ...)
	__attribute__((format(printf, 1, 2), noreturn));
extern void (*world_on_violation)(const char *text);

/* A sum over all that has happened. */
uint64_t world_hash(void);
void world_mix(uint64_t value);

#endif
