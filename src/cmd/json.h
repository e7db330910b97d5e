/*
 * What `status`, `history`, `list`, `doctor`, `acquire` and `run --status-fd` tell programs:
 * one JSON object a line. Texts that others wrote are made valid. What is not known
 * is null.
 */
#ifndef CMD_JSON_H
#define CMD_JSON_H

#include "cmd/session.h"
#include "settings/settings.h"
#include "show/doctor.h"
#include "show/batch.h"
#include "show/history.h"

/* state: "held", "free" ... last: the last run of KEY, or NULL. */
void json_holders(struct buffer *text, const struct holders *holders,
		  const char *state, const struct past_run *last);

void json_history(struct buffer *text, const struct history *history);

void json_listed(struct buffer *text, const struct listed *listed);

/* A lock that was taken; or several, with all fences. */
void json_grant(struct buffer *text, const struct session *session);

/* How a run went. */
struct ending {
	const char *outcome;
	int exit, signal; /* of COMMAND; -1, 0: none */
	int64_t waited;   /* ms */
	int64_t held;     /* ms */
	unsigned renewals;
	bool granted; /* so token and fence are the lock's */
};

void json_ending(struct buffer *text, const struct session *session,
		 const struct ending *ending);

void json_doctor(struct buffer *text, const struct doctor *doctor,
		 const struct settings *settings);

#endif
