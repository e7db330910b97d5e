#include "lock/script.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/lease.h"
#include "scripts.h" /* made from lua/ */

/* What a script is put together from, in this order. */
#define PARTS_MAX 20

struct script {
	const char *parts[PARTS_MAX + 1];
};

#define SCRIPT(...) ((struct script){{__VA_ARGS__}})

/*
 * Acquire and release in one, so that a server that has executed the one need not be
 * sent the other: an acquire has more arguments. scripts/name-script has it, too.
 *
 * When Lua makes a function, it finds each variable of the function around it by a walk
 * over those declared later, but has those from further out at hand (luaF_findupval). So
 * there are functions around the parts: without them a run costs its server a sixth
 * more. Each may use 60 variables from around it.
 */
#define IF_ACQUIRE "if #ARGV>6 then\n"
#define END_IF "end\n"
#define INNER "return(function()\n"
#define END_INNER "end)()\n"
#define BOTH                                                                 \
	SCRIPT(IF_ACQUIRE, needs_lua, END_IF, common_lua, INNER, lease_lua,  \
	       runs_lua, places_lua, INNER, slots_lua, settle_lua, data_lua, \
	       redisson_lua, IF_ACQUIRE, acquire_lua, END_IF, release_lua,   \
	       END_INNER, END_INNER)

static const char *const kind_names[] = {
	[KIND_EXCLUSIVE] = "string", [KIND_REENTRANT] = "hash",
	[KIND_SHARED] = "zset",      [KIND_PERMITS] = "zset",
	[KIND_NONE] = "none",
};

/* Whom to ask, about what, and in whose name. */
struct question {
	struct quorum *quorum;
	size_t server;
	const char *token;
	int64_t afterlife;
	unsigned how;     /* enum asking */
	const char *sha1; /* of the script, or NULL */
	size_t key_count;
	struct argument keys[5];
	const struct argument *many; /* instead of keys, or NULL */
};

/* Each of more follows the token. */
static void ask(const struct question *question, struct script script,
		const char *const *more, size_t count)
{
	const struct argument *keys =
		question->many != NULL ? question->many : question->keys;
	char db[12], number_of_keys[12];
	struct buffer globals = {0};
	struct argument arguments[ARGUMENTS_MAX] = {{"EVAL", 4}};
	struct argument *next = arguments + 3, *text = arguments + 1;
	struct server *server = &question->quorum->servers[question->server];

	if (question->key_count > 0)
		server_aim(server, keys[0]);
	buffer_print(&globals, "local afterlife,clustered=%" PRId64 "%s\n",
		     question->afterlife,
		     server->url.kind == URL_CLUSTER ? ",true" : "");
	if (question->quorum->replicas > 0)
		buffer_print(&globals, "local replicas=%" PRId64 "\n",
			     question->quorum->replicas);
	text[1] = (struct argument){globals.data, globals.length};
	for (const char **part = script.parts; *part != NULL; part++)
		*next++ = (struct argument){*part, strlen(*part)};
	text->length = (size_t)(next - text - 1);
	next->length = (size_t)snprintf(number_of_keys, sizeof(number_of_keys),
					"%zu", question->key_count);
	next++->data = number_of_keys;
	for (size_t k = 0; k < question->key_count; k++)
		*next++ = keys[k];
	next->length =
		(size_t)snprintf(db, sizeof(db), "%" PRIu32, server->url.db);
	next++->data = db;
	*next++ = (struct argument){question->token, strlen(question->token)};
	for (size_t k = 0; k < count; k++)
		*next++ = (struct argument){more[k], strlen(more[k])};
	server_name_script(server, question->sha1);
	quorum_ask(question->quorum, question->server, question->how, arguments,
		   (size_t)(next - arguments));
	buffer_release(&globals);
}

static struct question about_key(struct quorum *quorum, size_t i,
				 const struct names *names, const char *token)
{
	return (struct question){
		.quorum = quorum,
		.server = i,
		.token = token,
		.afterlife = LEASE_AFTERLIFE,
		.key_count = 5,
		.keys = {names->key, names->record, names->queue, names->wishes,
			 names->waits},
	};
}

static struct question about_lock(const struct lock *lock, size_t i)
{
	struct question question = about_key(lock->ballot.quorum, i,
					     &lock->names, lock->grant.token);

	question.afterlife = lock->wish.afterlife;
	return question;
}

/* The SHA1 of BOTH, as it is sent to this server; NULL: not known. */
static const char *sha1_of_both(const struct question *question)
{
	static const char sha1[] = BOTH_SHA1;
	static const char clustered[] = BOTH_SHA1_CLUSTERED;
	const struct quorum *quorum = question->quorum;

	if (quorum->replicas > 0 || question->afterlife != LEASE_AFTERLIFE)
		return NULL;
	return quorum->servers[question->server].url.kind == URL_CLUSTER
		       ? clustered
		       : sha1;
}

/* "N/slot/moves" for a permit, "0" for others (slots.lua). */
static const char *permits(char text[72], const struct lock *lock)
{
	if (lock->wish.kind == KIND_PERMITS)
		snprintf(text, 72, "%" PRId64 "/%" PRId64 "/%d",
			 lock->wish.permits, lock->grant.slot,
			 lock->grant.moves);
	else
		snprintf(text, 72, "0");
	return text;
}

static struct question about_all(struct quorum *quorum, size_t i)
{
	return (struct question){.quorum = quorum,
				 .server = i,
				 .token = "",
				 .afterlife = LEASE_AFTERLIFE};
}

static const char *number(char text[24], int64_t value)
{
	snprintf(text, 24, "%" PRId64, value);
	return text;
}

/* request: 0 for one that does not queue. how: with ASK_REPLICAS, replicas must have it
 * if it is granted. */
static void acquire(struct lock *lock, size_t i, int64_t kept_fence,
		    uint64_t request, int64_t waited, unsigned how)
{
	char ttl[24], clock[24], kept[24], slot[72], nth[24], since[24];
	struct question question = about_lock(lock, i);
	const char *more[] = {
		number(ttl, lock->wish.ttl),
		number(clock, lock->ballot.clock),
		lock->wish.description.data,
		number(kept, kept_fence),
		kind_names[lock->wish.kind],
		permits(slot, lock),
		lock->grant.hold,
		number(nth, (int64_t)request),
		request > 0 ? "1" : "0",
		number(since, waited),
		lock->wish.ancestor != NULL ? lock->wish.ancestor : "",
	};

	lock->ballot.report[i].asked = clock_ms();
	question.how = ASK_STICKY | how;
	if (lock->wish.kind == KIND_NONE)
		question.how &= ~(unsigned)ASK_REPLICAS;
	question.sha1 = sha1_of_both(&question);
	ask(&question,
	    question.quorum->replicas == 0 || kept_fence > 0
		    ? BOTH
		    : SCRIPT(needs_lua, common_lua, replicas_lua, lease_lua,
			     runs_lua, places_lua, slots_lua, settle_lua,
			     data_lua, acquire_lua),
	    more, sizeof(more) / sizeof(more[0]));
}

void script_acquire(struct lock *lock, size_t i)
{
	acquire(lock, i, 0, 0, 0, ASK_REPLICAS | ASK_PATIENTLY);
}

void script_queue(struct lock *lock, size_t i, uint64_t request, int64_t waited,
		  unsigned how)
{
	acquire(lock, i, 0, request, waited, how);
}

void script_put_back(struct lock *lock, size_t i)
{
	acquire(lock, i,
		lock->grant.seen > lock->grant.fence ? lock->grant.seen
						     : lock->grant.fence,
		0, 0, ASK_PLAINLY); /* it counts after an extend */
}

void script_extend(struct lock *lock, size_t i)
{
	struct question question = about_lock(lock, i);
	char ttl[24], keeper[24];
	const char *as_taken = lock->wish.as_taken ? "1" : "0";
	/* whoever has only the token knows no hold of its own */
	const char *hold = lock->grant.hold[0] == '*' ? "-" : lock->grant.hold;

	question.how = ASK_REPLICAS | ASK_LASTING | ASK_PATIENTLY;
	ask(&question, SCRIPT(common_lua, lease_lua, extend_lua),
	    (const char *[]){number(ttl, lock->wish.ttl), hold, as_taken,
			     number(keeper, lock->wish.keeper)},
	    lock->wish.keeper > 0 ? 4 : 3);
}

void script_release(struct lock *lock, size_t i, int64_t min_hold)
{
	struct question question = about_lock(lock, i);
	struct server *server = &lock->ballot.quorum->servers[i];
	const char *ended = lock->ended.length > 0 ? lock->ended.data : "";
	char ms[24], held[24], picked[HOLD_SIZE + TOKEN_SIZE];
	const char *hold = lock->grant.hold;
	bool later;

	/* what is given back may be held again after a failover, but not what
	 * --min-hold keeps be free */
	question.how = ASK_INSTEAD | ASK_PATIENTLY;
	/* what we have acquired ourselves is not where we have never been */
	if (server->reached || lock->grant.acquired == 0)
		question.how |= ASK_LASTING;
	if (min_hold > 0)
		question.how |= ASK_REPLICAS;
	if (lock->pick != NULL && lock->pick->gives) {
		snprintf(picked, sizeof(picked), "%s %s", hold,
			 lock->pick->draw);
		hold = picked;
	}
	server_withdraw(server);
	if (!server->needs_whole)
		question.sha1 = sha1_of_both(&question);
	/* a server that reads both at once executes both (script.h); but the short
	 * script notes no run */
	later = server_owes_sticky(server) && min_hold == 0 &&
		!lock->is_to_be_told;
	ask(&question,
	    question.sha1 != NULL ? BOTH
	    : later && lock->wish.kind == KIND_REENTRANT
		    ? SCRIPT(common_lua, places_lua, redisson_lua,
			     take_back_lua)
	    : later ? SCRIPT(common_lua, places_lua, take_back_lua)
		    : SCRIPT(common_lua, lease_lua, runs_lua, places_lua,
			     slots_lua, settle_lua, redisson_lua, release_lua),
	    (const char *[]){hold, number(ms, lock->by_hand ? -1 : min_hold),
			     ended, number(held, lock->held)},
	    lock->held > 0 ? 4 : 3);
}

void script_untracked(struct lock *lock, size_t i)
{
	struct question question = about_lock(lock, i);

	question.how = ASK_PATIENTLY;
	ask(&question, SCRIPT(common_lua, untracked_lua), NULL, 0);
}

void script_raise(struct lock *lock, size_t i, bool counts)
{
	struct question question = about_lock(lock, i);
	char fence[24];

	question.how = counts ? ASK_REPLICAS : ASK_PLAINLY;
	question.key_count = 2;
	ask(&question, SCRIPT(raise_lua),
	    (const char *[]){number(fence, lock->grant.fence)}, 1);
}

void script_inspect(struct quorum *quorum, size_t i, const struct names *names,
		    const char *token, const char *place, size_t waiters)
{
	struct question question = about_key(quorum, i, names, token);
	char passed[24];

	question.how = ASK_PATIENTLY;
	ask(&question,
	    SCRIPT(common_lua, lease_lua, data_lua, holders_lua, inspect_lua),
	    (const char *[]){place, number(passed, (int64_t)waiters)}, 2);
}

void script_break(struct quorum *quorum, size_t i, const struct names *names,
		  const char *token, const char *holders, bool foreign,
		  const char *why)
{
	struct question question = about_key(quorum, i, names, token);

	question.how = ASK_STICKY | ASK_PATIENTLY;
	ask(&question,
	    SCRIPT(common_lua, lease_lua, runs_lua, places_lua, slots_lua,
		   settle_lua, redisson_lua, data_lua, holders_lua,
		   listening_lua, break_lua),
	    (const char *[]){holders, foreign ? "1" : "0", why}, 3);
}

void script_ask(struct quorum *quorum, size_t i, const struct names *names,
		const char *digests, const char *why)
{
	struct question question = about_key(quorum, i, names, "");

	question.how = ASK_STICKY | ASK_PATIENTLY;
	ask(&question,
	    SCRIPT(common_lua, lease_lua, runs_lua, places_lua, data_lua,
		   holders_lua, listening_lua, ask_lua),
	    (const char *[]){digests, why}, 2);
}

void script_history(struct quorum *quorum, size_t i, const struct names *names)
{
	struct question question = about_key(quorum, i, names, "");

	question.how = ASK_PATIENTLY;
	ask(&question, SCRIPT(common_lua, history_lua), NULL, 0);
}

void script_scan(struct quorum *quorum, size_t i, const char *cursor,
		 const char *pattern)
{
	struct question question = about_all(quorum, i);

	question.how = ASK_PATIENTLY;
	ask(&question, SCRIPT(common_lua, scan_lua),
	    (const char *[]){cursor, pattern}, 2);
}

void script_shard(struct quorum *quorum, size_t i)
{
	struct question question = about_all(quorum, i);

	question.how = ASK_PATIENTLY;
	ask(&question, SCRIPT(shard_lua), NULL, 0);
}

void script_rights(struct quorum *quorum, size_t i, const struct names *names,
		   const char *dead, bool takes)
{
	struct question question = about_all(quorum, i);

	question.token = dead;
	question.how = ASK_PATIENTLY;
	ask(&question, SCRIPT(rights_lua),
	    (const char *[]){names->key.data, names->record.data,
			     names->queue.data, names->wishes.data,
			     names->waits.data, takes ? "1" : "0"},
	    6);
}

/* What else is an argument: EVAL, the parts of the script, and a few words. */
#define BATCH_NAMES 4
_Static_assert(BATCH_NAMES *BATCH_MOST + PARTS_MAX + 8 <= ARGUMENTS_MAX,
	       "the names of a batch fit into a command");

void script_batch(struct quorum *quorum, size_t i, const struct names *names,
		  size_t count, bool runs)
{
	struct question question = about_all(quorum, i);
	struct argument many[BATCH_NAMES * BATCH_MOST];
	size_t known = 0;

	for (size_t n = 0; n < count; n++) {
		many[known++] = names[n].key;
		many[known++] = names[n].record;
		many[known++] = names[n].queue;
		many[known++] = names[n].waits;
	}
	question.many = many;
	question.key_count = known;
	question.how = ASK_PATIENTLY;
	ask(&question,
	    SCRIPT(common_lua, lease_lua, data_lua, holders_lua, batch_lua),
	    (const char *[]){runs ? "1" : "0"}, 1);
}
