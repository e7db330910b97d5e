#include "lock/lock.h"

#include <inttypes.h>
#include <string.h>

#include "base/lease.h"
#include "base/log.h"
#include "base/output.h"

#define LAST_ANSWERS 50 /* ms */

void lock_init(struct lock *lock, struct quorum *quorum, const char *key,
	       int64_t ttl, int64_t quarantine)
{
	*lock = (struct lock){
		.wish = {.ttl = ttl, .afterlife = LEASE_AFTERLIFE},
		.grant.hold = "-",
	};
	names_init(&lock->names, key);
	ballot_init(&lock->ballot, quorum, ttl, quarantine);
}

void lock_adopt(struct lock *lock, const char *token)
{
	struct grant *grant = &lock->grant;

	strlcpy(grant->token, token, sizeof(grant->token));
	strlcpy(grant->hold, "*", sizeof(grant->hold));
	grant->slot = lock->ballot.wanted = 0;
}

void lock_adopt_untracked(struct lock *lock)
{
	strlcpy(lock->grant.hold, "*+", sizeof(lock->grant.hold));
}

void lock_release_memory(struct lock *lock)
{
	listening_end(&lock->listening, lock->ballot.quorum);
	names_release(&lock->names);
	buffer_release(&lock->wish.description);
	buffer_release(&lock->ended);
}

void lock_describe_history(struct lock *lock, int64_t remember)
{
	struct buffer *text = &lock->wish.description;

	if (lock->wish.once_in > 0)
		buffer_print(text, "once=%" PRId64 "\n", lock->wish.once_in);
	if (remember >= 0)
		buffer_print(text, "remember=%" PRId64 "\n", remember);
}

/* In a time that ends now: the part of it in which it was held. */
static int64_t held_of(const struct lock *lock, int64_t time)
{
	int64_t over = clock_ms() - lock->grant.valid.at;

	if (over > 0)
		time -= over;
	return time > 0 ? time : 0;
}

int64_t lock_held_for(const struct lock *lock)
{
	return held_of(lock, clock_ms() - lock->grant.acquired);
}

void lock_note_end(struct lock *lock, int64_t waited, const char *how)
{
	const struct grant *grant = &lock->grant;
	int64_t held = lock->held > 0 ? held_of(lock, lock->held)
				      : lock_held_for(lock);

	lock->ended.length = 0;
	if (*how == '+')
		buffer_print(&lock->ended, "%c", *how++);
	if (grant->acquired > 0)
		buffer_print(&lock->ended, "%.16s %" PRId64 " %" PRId64 " ",
			     grant->token, held, grant->fence);
	if (waited >= 0)
		buffer_print(&lock->ended, "%" PRId64 " ", waited);
	else
		buffer_print(&lock->ended, "- ");
	output_visible(&lock->ended, how, strnlen(how, RUN_END_LONGEST), 1);
	if (grant->acquired > 0)
		buffer_print(&lock->ended, "\n");
}

void lock_note_held(struct lock *lock, int64_t held)
{
	lock->held = held;
}

struct deadline lock_validity(const struct lock *lock, int64_t started)
{
	return deadline_at(started + lease_validity(lock->wish.ttl));
}

void lock_hurry(struct lock *lock, bool hurry)
{
	if (hurry != lock->hurries)
		log_hurry(hurry);
	lock->hurries = hurry;
}

void lock_use_the_time(struct lock *lock)
{
	struct before_wait once = lock->before_wait;

	lock->before_wait.act = NULL;
	if (once.act != NULL)
		once.act(once.context);
}

bool lock_is_decided(void *lock)
{
	return ballot_is_decided(&((struct lock *)lock)->ballot);
}

bool lock_is_complete(void *lock)
{
	return ballot_is_complete(&((struct lock *)lock)->ballot);
}

bool lock_is_lost(struct lock *lock, struct reply_handler *handler)
{
	if (!ballot_said_no(&lock->ballot))
		return false;
	handler->certain = lock_is_complete;
	quorum_gather(lock->ballot.quorum,
		      wait_until(deadline_in(LAST_ANSWERS)), handler);
	return !ballot_has_quorum(&lock->ballot);
}

bool lock_is_quarantined(const struct lock *lock)
{
	size_t quarantined = ballot_count(&lock->ballot, VOTE_QUARANTINED);

	return quarantined > 0 &&
	       quarantined + ballot_count(&lock->ballot, VOTE_YES) +
			       ballot_count(&lock->ballot, VOTE_ELSEWHERE) +
			       ballot_count(&lock->ballot, VOTE_HELD) >=
		       quorum_size(lock->ballot.quorum);
}
