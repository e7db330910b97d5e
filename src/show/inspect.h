/*
 * Looks at a lock without touching it, or takes it away from its holders.
 *
 *	holders_init(&holders, &quorum, key);
 *	inspect_lock(&holders, &error);
 *	holders_release(&holders);
 *
 * All servers are asked, and all answers are waited for, as each is of interest. A
 * server that still owes an answer from an earlier look is passed over.
 */
#ifndef SHOW_INSPECT_H
#define SHOW_INSPECT_H

#include "show/holders.h"

/*
 * 0, or -1 with *error: no quorum has answered. Either way *holders has what was
 * answered.
 */
int inspect_lock(struct holders *holders, struct error *error);

/* Whether a quorum says that token holds the lock (NULL: that anybody does): 1 or 0,
 * or -1 with *error: too few servers have answered to know. Waits no longer than it takes
 * to know. */
int inspect_is_held(struct holders *holders, const char *token,
		    struct error *error);

/*
 * After inspect_lock: takes KEY away from all its holders; *holders has them then. A server
 * is left alone if none of those who were seen holds KEY there any more, or if KEY is not
 * a lock there, unless `foreign` is set. why: record_describe_breaker. 0, or -1 as
 * inspect_lock. (A request may be executed after we have given up. Even then it leaves a
 * lock alone that only others hold.)
 */
int inspect_break(struct holders *holders, bool foreign, const char *why,
		  struct error *error);

/* Whether a server that has not answered may still carry out the last request. */
bool inspect_is_waiting(const struct holders *holders);

/*
 * Asks the holders with these digests (a blank after each) to stop, as often as it is
 * called; *holders has those of them that hold KEY. The standing of a server is
 * STANDING_HELD if one of them does, and STANDING_CHANGED if only others do. 0, or -1
 * as inspect_lock.
 */
int inspect_ask(struct holders *holders, const char *digests, const char *why,
		struct error *error);

#endif
