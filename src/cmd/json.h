/*
 * What `status`, `list`, `doctor` and `run --status-fd` tell programs: one JSON
 * object a line. Texts that others wrote are made valid; what is not known is
 * null.
 */
#ifndef CMD_JSON_H
#define CMD_JSON_H

#include "settings/config.h"
#include "show/doctor.h"
#include "show/batch.h"

/* state: what the view comes to. */
void json_view(struct buffer *text, const struct view *view, const char *state);

void json_listed(struct buffer *text, const struct listed *listed);

/* How a run went. */
struct ending {
	const char *outcome;
	int exit, signal; /* of COMMAND; -1, 0: none */
	int64_t waited;   /* ms */
	int64_t held;     /* ms */
	unsigned renewals;
	bool granted; /* so token and fence are the lock's */
};

void json_ending(struct buffer *text, const struct lock *lock,
		 const struct ending *ending);

void json_doctor(struct buffer *text, const struct doctor *doctor,
		 const struct settings *settings);

#endif
