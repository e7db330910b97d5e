/*
 * The process title: what ps(1) shows of redlock instead of its arguments, by
 * setproctitle(3bsd).
 *
 *	title_init(argc, argv);			first act of main
 *	title_set("%s: held", key);		"redlock: deploy: held"
 *
 * A title stands until the next one, so it must stay true: moments, not "3 s ago". Its
 * bytes are made visible, as in the lines of log.h. A title that is too long loses
 * its middle.
 *
 * The title is written over argv and the environment as the kernel gave them.
 * The first title_set moves both away, with all they hold: title_init does
 * nothing, and a short run that never sets a title pays nothing. So no pointer
 * into the original may be kept: settings hold copies (settings_keep), and a
 * result of getenv is used up or copied. argv's entries are replaced by copies.
 * A secret that was hidden in argv (url_hide_secret) stays hidden, and what the
 * environment showed in /proc is gone.
 *
 * Why this is more than setproctitle(3bsd): libbsd would copy the environment with
 * setenv(3) at each start, without the entries that have no '='. After a hidden secret in
 * argv it would find no more room for a title. And it leaves a mark that ps(1) shows.
 *
 * Why moving the environment races with nobody:
 *  - One thread sets titles at a time: the main one before the watchdog starts
 *    and after it has ended, the watchdog in between. The main thread then
 *    polls, signals, logs and forks guards; none of that uses the environment
 *    (log_init has read the locale), and a guard does not either. COMMAND's
 *    variables are set before there is a watchdog.
 *  - A thread that looks a name up (getaddrinfo(3)) does use it, and may be abandoned
 *    while it runs. Only the thread that sets titles starts such a thread. While one
 *    is there (title_defer), no first title is set; a later title will be.
 */
#ifndef BASE_TITLE_H
#define BASE_TITLE_H

#include <stdbool.h>

void title_init(int argc, char **argv);

/* What titles begin with from now on, and the process name: "redlock-keeper". For a
 * process of its own, which has none of the threads that deferred titles. */
void title_name(const char *name);

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
