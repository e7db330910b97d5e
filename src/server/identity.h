/*
 * The identity of a server, as it says itself in the greeting: it tells whether
 * two URLs are one server, and whether the server may have lost leases.
 *
 * A server that has read its append-only file when it started may still have lost
 * what scripts wrote. Redis 7, and others that descend from it, execute the file as
 * the user `default`. A script's writes are a transaction there, which is dropped if
 * this user may not execute it (https://github.com/redis/redis/issues/14541). So the
 * file of a server that was started within LEASE_LONGEST counts only if `default` may
 * do everything. After that time no lease from before the start can still run. Redis 5
 * has no users. No later version is believed by its number: it is not known which
 * releases have been repaired, and forks report the numbers of others.
 */
#ifndef SERVER_IDENTITY_H
#define SERVER_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "server/reply.h"

#define RUN_ID_SIZE 41

struct identity {
	bool known;
	char run_id[RUN_ID_SIZE];
	int64_t started; /* ms by our clock: it was up by then */
	bool set_back; /* its clock, to before its start: it may be up for longer */
	bool has_users;
	bool appends; /* to a file: it forgets what was not synced yet */
	bool durable; /* appends, synced at every write: it forgets nothing */
	struct {
		bool appends, durable;
	} claim; /* the same by its settings, whether it has read the file or not */
};

/* Reads the answer to INFO server. -1 if it is none. */
int identity_read_info(struct identity *identity, const struct reply *reply);

/* Whether a server says in this answer to INFO server that it is in no cluster.
 * One that says nothing of it may be in one. (Dragonfly said so in clusters, too,
 * until 2024.) */
bool identity_is_alone(const struct reply *info);

/* The value of "\nname:" in an INFO's text, and its length; NULL for none. */
const char *identity_find(const char *text, const char *name, size_t *length);

/* Reads the answer to CONFIG GET append*. A refusal is no failure: then there
 * is no such file as far as we know. */
void identity_read_config(struct identity *identity, const struct reply *reply);

/* Whether what it claims counts only after identity_read_user. */
bool identity_is_doubtful(const struct identity *identity);

/* Reads the answer to ACL GETUSER default, which may be a refusal. */
void identity_read_user(struct identity *identity, const struct reply *reply);

/* Whether this answer to ACL GETUSER is of a user that may run all commands on all
 * keys and channels. */
bool identity_may_do_all(const struct reply *reply);

#endif
