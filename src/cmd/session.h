/*
 * cmd/: a file for each command: options in, library calls, result out. These and
 * redlock.c print and exit, and only redlock.c comes in.
 *
 * This one is what commands share: the way from settings to a lock, and the lines that
 * say why there is none.
 */
#ifndef CMD_SESSION_H
#define CMD_SESSION_H

#include "base/log.h"
#include "settings/settings.h"
#include "lock/lock.h"

/* How it went with one of several locks. */
struct answer {
	enum lock_result result;
	struct busy busy;
	struct error error;
};

struct session {
	struct settings *settings;
	struct quorum quorum;
	struct lock lock;
	int signals;   /* readable once one has come; -1: they end us */
	int interrupt; /* ends the wait for the lock if it is readable; or -1 */
	int64_t waited;                   /* ms, for the lock */
	char ancestor[TOKEN_LONGEST + 1]; /* who is above us on KEY, or "" */
	struct answer answer;
	/* of --also: each has connections of its own, as in a cluster each KEY has a
	 * server of its own, and as threads share none */
	struct session *others;         /* owned */
	size_t count;                   /* of keys, with KEY itself */
	struct lock *locks[LOCKS_MOST]; /* KEY's is the first */
};

/* The session of the i-th key. */
static inline struct session *session_at(struct session *session, size_t i)
{
	return i == 0 ? session : &session->others[i - 1];
}

/* Each: 0, or an exit status after an error that was printed. */
int cmd_open_quorum(struct quorum *quorum, struct settings *settings);
int cmd_try_quorum(struct quorum *quorum, struct settings *settings,
		   struct error *error); /* 0, or -1 with *error */
int cmd_open(struct session *session, struct settings *settings);
void cmd_close(struct session *session);

/* From now on a signal ends whatever the session waits for. */
int cmd_heed_signals(struct session *session);

/* Makes logins in URLs, and the passwords of this session and of the environment,
 * unreadable in a label, which others see. */
void cmd_hide_logins(const struct session *session, char *label);

/* Calls act for each lock, all at once. It fills session_at(session, i)->answer. */
void cmd_each(struct session *session, void (*act)(void *session, size_t i));

/* For cmd_each. */
void cmd_release_one(void *session, size_t i);

/* For cmd_each. A release or an extension only says that KEY is not ours: after this, also
 * if it is no lock (an error). */
void cmd_look_closer(void *session, size_t i);

/* Gives all locks back, and prints why one could not be released. */
void cmd_give_back(struct session *session);

/* When the last of the locks was granted: from then on all are held. */
int64_t cmd_held_since(const struct session *session);

/* When the first of them ends. */
struct deadline cmd_valid_until(const struct session *session);

/* The token that `release` takes for all of them (tokens.h). */
void cmd_print_token(struct buffer *text, const struct session *session);

/* After a release or an extension of each: prints what went wrong; the exit status,
 * the worst one. */
int cmd_report(struct session *session);

/* Prints "KEY: text" of the error. */
void cmd_complain(const struct lock *lock, const struct error *error);

#endif
