/*
 * The process title: what ps(1) shows of redlock instead of its arguments, by
 * setproctitle(3bsd).
 *
 *	title_init(argc, argv);			first act of main
 *	title_set("%s: held", key);		"redlock: deploy: held"
 *
 * A title stands until the next one, so it must stay true: moments, not "3 s
 * ago". It is made visible like a line of log.h's; one that is too long loses
 * its middle.
 *
 * The title is written over argv and the environment as the kernel gave them.
 * The first title_set moves both away, with all they hold: title_init does
 * nothing, and a short run that never sets a title pays nothing. So no pointer
 * into the original may be kept: settings hold copies (config_keep), and a
 * result of getenv is used up or copied. argv's entries are replaced by copies.
 * A secret that was hidden in argv (url_hide_secret) stays hidden, and what the
 * environment showed in /proc is gone.
 *
 * Why moving the environment races with nobody:
 *  - One thread sets titles at a time: the main one before the watchdog starts
 *    and after it has ended, the watchdog in between. The main thread then
 *    polls, signals, logs and forks guards; none of that uses the environment
 *    (log_init has read the locale), and a guard does not either. COMMAND's
 *    variables are set before there is a watchdog.
 *  - A thread that looks a name up does use it (getaddrinfo(3)), and may be
 *    left behind. Only who sets titles starts one; while one is there
 *    (title_defer) a first title is not set: a later one will be.
 */
#ifndef TITLE_H
#define TITLE_H

#include <stdbool.h>

void title_init(int argc, char **argv);

void title_set(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether one is set: then it is to be kept true. */
bool title_is_set(void);

/* Makes name, up to 15 bytes, the process name and the whole command line of a
 * forked child, so that ps(1) and pkill(1) do not take it for redlock. It costs
 * next to nothing and moves no environment. */
void title_replace(const char *name);

/* Around what uses the environment in another thread; any thread. */
void title_defer(void);
void title_allow(void);

#endif
