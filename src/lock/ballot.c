#include "lock/ballot.h"

#include <string.h>

#include "base/log.h"

void ballot_init(struct ballot *ballot, struct quorum *quorum, int64_t ttl,
		 int64_t quarantine)
{
	*ballot = (struct ballot){
		.quorum = quorum,
		.ttl = ttl,
		.quarantine = quarantine,
	};
}

size_t ballot_count(const struct ballot *ballot, enum vote vote)
{
	size_t count = 0;

	for (size_t i = 0; i < ballot->quorum->count; i++)
		count += ballot->vote[i] == vote;
	return count;
}

void ballot_open(struct ballot *ballot, struct busy *busy)
{
	ballot->busy = busy;
	ballot->renewed = ballot->has_run = false;
	ballot->clock = clock_wall_ms();
	quorum_round(ballot->quorum);
	memset(ballot->slots, 0, sizeof(ballot->slots));
	memset(ballot->unsure, 0, sizeof(ballot->unsure));
	for (size_t i = 0; i < ballot->quorum->count; i++)
		ballot->vote[i] = VOTE_PENDING;
}

bool ballot_is_granted(const struct ballot *ballot, size_t i)
{
	return ballot->vote[i] == VOTE_YES ||
	       ballot->vote[i] == VOTE_ELSEWHERE ||
	       ballot->vote[i] == VOTE_QUARANTINED;
}

bool ballot_has_quorum(const struct ballot *ballot)
{
	return ballot_count(ballot, VOTE_YES) >= quorum_size(ballot->quorum);
}

static size_t answers(const struct ballot *ballot, enum vote one,
		      enum vote other)
{
	return ballot_count(ballot, one) + ballot_count(ballot, other);
}

/*
 * How many servers it takes to say that there is no lock. For an attempt it is
 * a quorum that has answered at all; servers that may have forgotten the holder
 * count only if some other server knows one. For other rounds it is as many
 * servers without the lock as leave no quorum. A vote for another slot is none.
 */
static bool has_no(const struct ballot *ballot, size_t still_out)
{
	size_t quorum = quorum_size(ballot->quorum);
	size_t held = answers(ballot, VOTE_HELD, VOTE_ELSEWHERE) + still_out;

	if (ballot->busy != NULL)
		return ballot_count(ballot, VOTE_YES) + held +
			       (held > 0
					? ballot_count(ballot, VOTE_QUARANTINED)
					: 0) >=
		       quorum;
	return answers(ballot, VOTE_GONE, VOTE_BROKEN) + held >
	       ballot->quorum->count - quorum;
}

size_t ballot_same_holder(const struct ballot *ballot)
{
	size_t most = 0;

	for (size_t i = 0; i < ballot->quorum->count; i++) {
		size_t same = 0;

		for (size_t k = 0; k < ballot->quorum->count; k++)
			same += ballot->vote[k] == VOTE_HELD &&
				ballot->token_prefix[k][0] != '\0' &&
				strcmp(ballot->token_prefix[i],
				       ballot->token_prefix[k]) == 0;
		if (ballot->vote[i] == VOTE_HELD && same > most)
			most = same;
	}
	return most;
}

bool ballot_is_split(const struct ballot *ballot)
{
	size_t elsewhere = ballot_count(ballot, VOTE_ELSEWHERE);

	return answers(ballot, VOTE_YES, VOTE_QUARANTINED) + elsewhere > 0 &&
	       ballot_count(ballot, VOTE_HELD) + elsewhere > 0 &&
	       ballot_same_holder(ballot) < quorum_size(ballot->quorum);
}

bool ballot_said_no(const struct ballot *ballot)
{
	return has_no(ballot, 0);
}

bool ballot_is_decided(const struct ballot *ballot)
{
	size_t still_out = ballot_count(ballot, VOTE_PENDING);

	if (ballot->alias || ballot->has_run || ballot_has_quorum(ballot))
		return true;
	if (ballot_count(ballot, VOTE_YES) + still_out >=
	    quorum_size(ballot->quorum))
		return false;
	return ballot_said_no(ballot) || !has_no(ballot, still_out);
}

bool ballot_is_complete(const struct ballot *ballot)
{
	return ballot->alias || ballot_count(ballot, VOTE_PENDING) == 0;
}

void ballot_reject(struct ballot *ballot, size_t i)
{
	ballot->vote[i] = VOTE_FAILED;
	conn_blame(&ballot->quorum->servers[i].conn, CAUSE_NONSENSE,
		   "an answer that makes no sense");
}

bool ballot_read(struct ballot *ballot, size_t i, const struct reply *reply,
		 int64_t least, int64_t *answer)
{
	struct server *server = &ballot->quorum->servers[i];

	if (reply == NULL || reply->failure != NULL) {
		ballot->vote[i] = VOTE_FAILED;
		if (server->conn.refusal.text[0] != '\0')
			log_step("%s: %s", server->url.name,
				 server->conn.refusal.text);
		return false;
	}
	*answer = reply->value[0].number;
	if (reply->count >= 1 && reply->value[0].text == NULL &&
	    *answer >= least && *answer <= 1)
		return true;
	ballot_reject(ballot, i);
	return false;
}

bool ballot_failed_for_good(const struct ballot *ballot, size_t i)
{
	return ballot->vote[i] == VOTE_FAILED &&
	       ballot->quorum->servers[i].conn.refusal.text[0] != '\0' &&
	       !cause_is_transient(
		       ballot->quorum->servers[i].conn.refusal.cause);
}

bool ballot_is_unacknowledged(const struct ballot *ballot, size_t i)
{
	const struct refusal *refusal =
		&ballot->quorum->servers[i].conn.refusal;

	return (ballot->vote[i] == VOTE_FAILED ||
		ballot->vote[i] == VOTE_PENDING) &&
	       refusal->cause == CAUSE_UNACKNOWLEDGED &&
	       refusal->text[0] != '\0';
}

bool ballot_lacks_replicas(const struct ballot *ballot)
{
	for (size_t i = 0; i < ballot->quorum->count; i++)
		if (ballot_is_unacknowledged(ballot, i))
			return true;
	return false;
}

bool ballot_is_hopeless(const struct ballot *ballot)
{
	size_t left = ballot->quorum->count;

	for (size_t i = 0; i < ballot->quorum->count; i++)
		left -= ballot_failed_for_good(ballot, i);
	return left < quorum_size(ballot->quorum);
}
