/*
 * --syslog: a line of the system's log for each thing that happens to a lock, with KEY and
 * the fence. Without the option each of these does nothing.
 */
#ifndef CMD_JOURNAL_H
#define CMD_JOURNAL_H

#include "lock/lock.h"
#include "settings/settings.h"

/* Times in ms. */
void journal_acquired(const struct settings *settings, const struct lock *lock,
		      int64_t waited);
void journal_busy(const struct settings *settings, const struct lock *lock,
		  const struct busy *busy);

/* COMMAND runs without the lock. why: no quorum was reached. */
void journal_unlocked(const struct settings *settings, const struct lock *lock,
		      const char *why);

/* how: how COMMAND ended, such as "exit 0". failure: why KEY stays until its lease ends,
 * or NULL. */
void journal_released(const struct settings *settings, const struct lock *lock,
		      const char *how, const char *failure);
void journal_lost(const struct settings *settings, const struct lock *lock,
		  const char *why);

/* what: "broken", or "asked to stop"; breaker: by whom. busy: who holds it, or has held
 * it, or NULL. fence: 0 if it is not known. */
void journal_broken(const struct settings *settings, const char *what,
		    const struct breaker *breaker, int64_t fence,
		    const struct busy *busy);

/* fate: what became of a holder that was asked to stop. */
void journal_fate(const struct settings *settings, const char *fate,
		  int64_t fence);

#endif
