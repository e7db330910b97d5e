/*
 * What a server says of itself, as far as it matters to a lock, and what should be
 * improved. All of it is only shown, and decides no vote.
 */
#ifndef SHOW_SERVER_FACTS_H
#define SHOW_SERVER_FACTS_H

#include "base/error.h"
#include "base/warning.h"
#include "server/reply.h"

#define FACT_SIZE 24

/* If something is not known, a number is -1 and a text is empty. */
struct server_facts {
	const char *software;    /* "Redis" or "Valkey" */
	char version[FACT_SIZE]; /* its own, not the one that it is like */
	char policy
		[FACT_SIZE]; /* maxmemory-policy; "noeviction" without a limit */
	char fsync[FACT_SIZE]; /* appendfsync */
	int64_t appends;       /* whether it has an append-only file */
	int64_t reads;         /* whether its user default may read all of that
				* (server/identity.h) */
	int64_t saves;         /* whether it takes snapshots */
	int64_t uptime;        /* ms */
	int64_t replicas;      /* that are connected */
	int64_t trip;  /* ms, to the server and back, the best of a few */
	int64_t ahead; /* ms that its clock is ahead of ours, if trip is known */
	struct buffer warnings; /* of warning.h; owned */
	struct error error;     /* why it would grant no lock; "" */
};

void server_facts_init(struct server_facts *at);
void server_facts_release(struct server_facts *at);

/* The answer to INFO. clustered: the server has a cluster's URL. NULL, or why it is
 * no server for locks. */
const char *server_facts_read_info(struct server_facts *at, const char *info,
				   bool clustered);

/* The answer to CONFIG GET. */
void server_facts_read_config(struct server_facts *at,
			      const struct reply *reply);

/* The answer to ACL GETUSER default. */
void server_facts_read_user(struct server_facts *at, const struct reply *reply);

/* The answer to TIME. asked: the wall clock then; trip: ms since. */
void server_facts_read_time(struct server_facts *at, const struct reply *reply,
			    int64_t asked, int64_t trip);

/* Adds the warnings that follow from all this. quarantine (ms): 0 for none. */
void server_facts_advise(struct server_facts *at, int64_t quarantine);

#endif
