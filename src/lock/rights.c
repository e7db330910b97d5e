#include "lock/rights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lock/explain.h"
#include "lock/script.h"

/* missing: commands that there are not. */
static const char *read_some(char text[RIGHTS_TEXT], const struct reply *reply,
			     size_t list, bool missing)
{
	static const char more[] = " ...";
	size_t length = 0, most = RIGHTS_TEXT - sizeof(more);

	text[0] = '\0';
	for (size_t n = 0; n < reply_item_count(reply, list); n++) {
		struct value item = reply_item(reply, list, n);

		if (item.text == NULL || (item.text[0] == '!') != missing)
			continue;
		item.text += missing;
		item.length -= missing;
		if (length + 1 + item.length > most) {
			strlcpy(text + length, more, sizeof(more));
			break;
		}
		length += (size_t)snprintf(text + length, most - length + 1,
					   " %s", item.text);
	}
	return text;
}

const char *rights_read(char text[RIGHTS_TEXT], const struct reply *reply,
			size_t list)
{
	return read_some(text, reply, list, false);
}

const char *rights_read_missing(char text[RIGHTS_TEXT],
				const struct reply *reply, size_t list)
{
	return read_some(text, reply, list, true);
}

/* Those that have refused. */
struct refused {
	struct quorum *quorum;
	struct refusal before[SERVERS_MAX]; /* text "": it is not asked */
	bool named;
};

static void on_rights(void *context, size_t i, const struct reply *reply)
{
	struct refused *refused = context;
	char text[RIGHTS_TEXT];

	if (reply == NULL || reply->failure != NULL ||
	    *rights_read(text, reply, 1) == '\0')
		return;
	conn_blame(&refused->quorum->servers[i].conn, CAUSE_LACK,
		   "its user lacks%s", text);
	refused->before[i].text[0] = '\0';
	refused->named = true;
}

/* Whether there is one to be asked. */
static bool find(struct refused *refused, const struct ballot *ballot)
{
	bool found = false;

	for (size_t i = 0; i < ballot->quorum->count; i++) {
		const struct server *server = &ballot->quorum->servers[i];

		refused->before[i].text[0] = '\0';
		/* it may have come after the result was certain */
		if ((ballot->vote[i] != VOTE_FAILED &&
		     ballot->vote[i] != VOTE_PENDING) ||
		    server->conn.refusal.cause != CAUSE_RIGHTS ||
		    server->conn.refusal.text[0] == '\0')
			continue;
		refused->before[i] = server->conn.refusal;
		found = true;
	}
	return found;
}

static void ask(struct lock *lock, struct refused *refused, int interrupt)
{
	struct quorum *quorum = lock->ballot.quorum;
	struct reply_handler handler = {refused, on_rights, NULL};
	struct argument dead =
		names_channel(&lock->names, "-", lock->grant.token);

	quorum_round(quorum);
	for (size_t i = 0; i < quorum->count; i++)
		if (refused->before[i].text[0] != '\0')
			script_rights(quorum, i, &lock->names, dead.data,
				      lock->wish.kind != KIND_NONE);
	quorum_gather(quorum,
		      (struct wait){deadline_in(quorum->timeout), interrupt},
		      &handler);
	/* one that has not named them has refused all the same */
	for (size_t i = 0; i < quorum->count; i++)
		if (refused->before[i].text[0] != '\0')
			quorum->servers[i].conn.refusal = refused->before[i];
	free((char *)dead.data);
}

void rights_explain(struct lock *lock, int interrupt, struct error *error)
{
	struct refused refused = {.quorum = lock->ballot.quorum};

	if (error->code != EXIT_REFUSED)
		return;
	/* twice, as a server may have refused while the others were asked */
	for (int n = 0; n < 2 && find(&refused, &lock->ballot); n++)
		ask(lock, &refused, interrupt);
	if (refused.named)
		explain_failure(&lock->ballot, error);
}
