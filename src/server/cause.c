#include "server/cause.h"

#include <string.h>

#include "base/error.h"

#define WRAPPER "ERR Error running script"
#define PLACE "@user_script:"
#define TRAILER " script: "
#define REPEATED ", with args beginning with:"

/* What it is worth, and how people are told. */
struct meaning {
	int code;
	bool transient;
	bool whole; /* the server's own text follows */
	const char *words, *remedy;
};

static const struct meaning meanings[] = {
	[CAUSE_AWAY] = {EXIT_UNREACHED, true, false, "",
			"is it up, and is -S right?"},
	[CAUSE_SLOW] = {EXIT_UNREACHED, true, false, "",
			"give it more time with --server-timeout"},
	[CAUSE_BARRED_SOCKET] = {EXIT_UNREACHED, true, false, "",
				 "this user may not use its socket: see "
				 "unixsocketperm there"},
	[CAUSE_SYSTEM] = {EXIT_SYSTEM, true, false, "",
			  "this machine is short of memory or open files"},
	[CAUSE_DESCRIPTORS] = {EXIT_SYSTEM, false, false, "",
			       "redlock may open no more files: raise ulimit "
			       "-n"},
	[CAUSE_CERTIFICATE] = {EXIT_REFUSED, false, false, "", ""},
	[CAUSE_NONSENSE] = {EXIT_UNREACHED, true, false, "",
			    "is it a Redis server, and KEY used by redlock "
			    "only?"},
	[CAUSE_NOT_REDIS] = {EXIT_UNREACHED, true, false, "",
			     "is there a Redis server on this port?"},
	[CAUSE_UNFIT] = {EXIT_UNREACHED, false, false, "", ""},
	[CAUSE_LACK] = {EXIT_REFUSED, false, false, "",
			"see the server's ACL: ACL SETUSER grants it"},
	[CAUSE_ALIAS] = {EXIT_CONFIG, false, false, "", ""},
	[CAUSE_NO_MASTER] = {EXIT_UNREACHED, false, false, "",
			     "is the name after the last / in -S right?"},
	[CAUSE_NO_MAJORITY] = {EXIT_UNREACHED, true, false, "",
			       "do they watch each other? See "
			       "redlock-servers(7)"},
	[CAUSE_NODES_DIFFER] = {EXIT_UNREACHED, true, false, "",
				"see CLUSTER NODES there"},

	[CAUSE_UNACKNOWLEDGED] = {EXIT_UNREACHED, true, false, "",
				  "see INFO replication there, and "
				  "--replicas"},

	[CAUSE_OTHER] = {EXIT_UNREACHED, true, true, "it refused the request",
			 "see redlock doctor, and the server's log"},
	[CAUSE_NO_LOGIN] = {EXIT_REFUSED, false, false,
			    "it requires a password (NOAUTH)", ""},
	[CAUSE_WRONG_LOGIN] = {EXIT_REFUSED, false, false,
			       "the password or the user's name is wrong "
			       "(WRONGPASS)",
			       ""},
	[CAUSE_NEEDLESS_LOGIN] = {EXIT_REFUSED, false, false,
				  "it has no password, but was sent one",
				  "set requirepass there, or send none"},
	[CAUSE_OLD_LOGIN] = {EXIT_REFUSED, false, false,
			     "it knows no user names, as it is older than "
			     "Redis 6",
			     "leave out the user in its URL"},
	[CAUSE_LOGIN] = {EXIT_REFUSED, false, true, "it refused the login", ""},
	[CAUSE_RIGHTS] = {EXIT_REFUSED, false, true, "its user may not do this",
			  "see redlock doctor, and ACL SETUSER there"},
	[CAUSE_KIND] = {EXIT_MISUSED, false, true, "",
			"use the same of -x, -s, -r and -P everywhere"},
	[CAUSE_EARLIER] = {EXIT_MISUSED, false, false,
			   "KEY is held by an earlier redlock, whose permits "
			   "have no slots",
			   "install this version on all hosts"},
	[CAUSE_DATA] = {EXIT_MISUSED, false, true, "", "choose another KEY"},
	[CAUSE_KEPT] = {EXIT_MISUSED, false, true, "",
			"it stays as it is; --foreign deletes it"},
	[CAUSE_DEAF] = {EXIT_MISUSED, false, true, "",
			"it cannot be asked to stop; --now takes KEY away "
			"from it"},
	[CAUSE_LATER] = {EXIT_MISUSED, false, true,
			 "KEY is used by a newer redlock",
			 "install the newer version here, too"},
	[CAUSE_FEW_REPLICAS] = {EXIT_UNREACHED, true, true, "",
				"see INFO replication there, and --replicas"},
	[CAUSE_TYPE] = {EXIT_MISUSED, false, false,
			"KEY, or the record beside it, is not a lock "
			"(WRONGTYPE)",
			"choose another KEY"},
	[CAUSE_DATABASE] = {EXIT_CONFIG, false, true,
			    "it does not have this database",
			    "use a smaller number in the URL, or raise "
			    "databases there"},
	[CAUSE_DATABASE_OF_CLUSTER] = {EXIT_CONFIG, false, false,
				       "a cluster has only database 0",
				       "use redis+cluster://, without a "
				       "number"},
	[CAUSE_COMMAND] = {EXIT_UNREACHED, false, true,
			   "it lacks a command that locks need",
			   "is it a Sentinel (redis+sentinel://), a proxy, or "
			   "too old?"},
	[CAUSE_NO_CLUSTER] = {EXIT_UNREACHED, false, false,
			      "it is not a node of a cluster",
			      "use redis:// for a single server"},
	[CAUSE_NO_SENTINEL] = {EXIT_UNREACHED, false, false,
			       "it is not a Sentinel",
			       "use redis:// for a single server"},
	[CAUSE_REPLICA] = {EXIT_UNREACHED, false, false,
			   "it is a replica, which takes no locks "
			   "(READONLY)",
			   "name its master, or its Sentinels "
			   "(redis+sentinel://)"},
	[CAUSE_CUT_OFF] = {EXIT_UNREACHED, true, false,
			   "it is a replica that has lost its master "
			   "(MASTERDOWN)",
			   "name its master, or its Sentinels "
			   "(redis+sentinel://)"},
	[CAUSE_MOVED] = {EXIT_UNREACHED, false, false,
			 "it is one node of a cluster (MOVED, ASK)",
			 "use redis+cluster://"},
	[CAUSE_ASK] = {EXIT_UNREACHED, false, false,
		       "it is one node of a cluster (MOVED, ASK)",
		       "use redis+cluster://"},
	[CAUSE_HASH_SLOTS] = {EXIT_UNREACHED, false, false,
			      "it keeps KEY and its record in different places "
			      "(CROSSSLOT)",
			      "use redis+cluster://, no proxy, and a KEY "
			      "without '}'"},
	[CAUSE_TRY_AGAIN] = {EXIT_UNREACHED, true, false,
			     "KEY is on its way to another node of the cluster "
			     "(ASK, TRYAGAIN)",
			     "try again soon"},
	[CAUSE_CLUSTER_DOWN] = {EXIT_UNREACHED, true, false,
				"the cluster is down, or lacks the node for "
				"KEY (CLUSTERDOWN)",
				"see CLUSTER INFO there"},
	[CAUSE_PROTECTED] = {EXIT_UNREACHED, false, false,
			     "it is in protected mode: it has no password, so "
			     "only its own host may use it (DENIED)",
			     "set requirepass, or protected-mode no, there"},
	[CAUSE_CLIENTS] = {EXIT_UNREACHED, true, true,
			   "it takes no more clients",
			   "raise maxclients there"},
	[CAUSE_MEMORY] = {EXIT_UNREACHED, true, false,
			  "its memory is full (OOM)",
			  "raise maxmemory there, or make room"},
	[CAUSE_DISK] = {EXIT_UNREACHED, true, false,
			"it takes no writes, as it cannot save its data "
			"(MISCONF)",
			"is its disk full? See the server's log"},
	[CAUSE_LOADING] = {EXIT_UNREACHED, true, false,
			   "it is starting, and still loads its data (LOADING)",
			   "try again soon"},
	[CAUSE_BUSY] = {EXIT_UNREACHED, true, false,
			"a client's script keeps it busy (BUSY)",
			"SCRIPT KILL there ends it"},
	[CAUSE_REPLICAS] = {EXIT_UNREACHED, true, false,
			    "it has too few replicas to take writes "
			    "(NOREPLICAS)",
			    "see min-replicas-to-write there"},
	[CAUSE_SCRIPT] = {EXIT_UNREACHED, true, false,
			  "it does not know a script that it was sent "
			  "(NOSCRIPT)",
			  "is -S a proxy? Name the server itself"},
	[CAUSE_TRANSACTION] = {EXIT_UNREACHED, true, false,
			       "it refused a transaction, and redlock makes "
			       "none (EXECABORT)",
			       "is -S a proxy? Name the server itself"},

	[CAUSE_OLD_MASTER] = {EXIT_UNREACHED, true, false,
			      "it is not the master any more (READONLY)",
			      "try again soon"},
	[CAUSE_OTHER_NODE] = {EXIT_UNREACHED, true, false,
			      "KEY is at another node of the cluster (MOVED)",
			      "try again soon"},
	[CAUSE_MOVING] = {EXIT_UNREACHED, true, false,
			  "KEY is on its way to another node of the cluster "
			  "(ASK, TRYAGAIN)",
			  "try again soon"},
	[CAUSE_LEFT_CLUSTER] = {EXIT_UNREACHED, true, false,
				"it is not a node of a cluster",
				"was it started without cluster-enabled?"},
	[CAUSE_LOST_MASTER] = {EXIT_UNREACHED, true, false, "",
			       "they knew it before; SENTINEL MONITOR there "
			       "names it again"},
	[CAUSE_PLAIN_PORT] = {EXIT_UNREACHED, true, false, "",
			      "do its Sentinels or nodes name its port for "
			      "TLS? See redlock-servers(7)"},

	[CAUSE_SENTINEL_LOGIN] = {EXIT_REFUSED, false, false, "", ""},
};

/* How error replies begin. */
static const struct {
	const char *start;
	enum cause cause;
} starts[] = {
	{"NOAUTH", CAUSE_NO_LOGIN},
	/* EVAL has more arguments than one may send without login */
	{"ERR Protocol error: unauthenticated", CAUSE_NO_LOGIN},
	{"WRONGPASS", CAUSE_WRONG_LOGIN},
	{"ERR invalid password", CAUSE_WRONG_LOGIN},
	{"ERR AUTH", CAUSE_NEEDLESS_LOGIN},
	{"ERR Client sent AUTH", CAUSE_NEEDLESS_LOGIN},
	{"NOPERM", CAUSE_RIGHTS},
	{"ERR The user executing the script", CAUSE_RIGHTS},
	{"The user executing the script", CAUSE_RIGHTS},
	{"ERR ACL failure in script", CAUSE_RIGHTS},
	{"WRONGTYPE", CAUSE_TYPE},
	{"READONLY", CAUSE_REPLICA},
	/* what WAIT is told there, and if that changes while it waits */
	{"ERR WAIT cannot be used with replica", CAUSE_REPLICA},
	{"UNBLOCKED", CAUSE_REPLICA},
	{"MASTERDOWN", CAUSE_CUT_OFF},
	{"MOVED ", CAUSE_MOVED},
	{"ASK ", CAUSE_ASK},
	{"TRYAGAIN", CAUSE_TRY_AGAIN},
	{"CROSSSLOT", CAUSE_HASH_SLOTS},
	{"CLUSTERDOWN", CAUSE_CLUSTER_DOWN},
	{"ERR Script attempted to access a non local key", CAUSE_MOVED},
	{"Script attempted to access a non local key", CAUSE_MOVED},
	{"Lua script attempted to access a non local key", CAUSE_MOVED},
	{"ERR Script attempted to execute a", CAUSE_CLUSTER_DOWN},
	{"Lua script attempted to execute a", CAUSE_CLUSTER_DOWN},
	{"ERR Can not execute the command on a stale replica", CAUSE_CUT_OFF},
	{"ERR This instance has cluster support disabled", CAUSE_NO_CLUSTER},
	{"DENIED", CAUSE_PROTECTED},
	{"ERR max number of clients", CAUSE_CLIENTS},
	{"OOM", CAUSE_MEMORY},
	{"ERR Out of memory", CAUSE_MEMORY},
	{"MISCONF", CAUSE_DISK},
	{"LOADING", CAUSE_LOADING},
	{"BUSY ", CAUSE_BUSY},
	{"NOREPLICAS", CAUSE_REPLICAS},
	{"NOSCRIPT", CAUSE_SCRIPT},
	{"EXECABORT", CAUSE_TRANSACTION},
	{"ERR unknown command 'SENTINEL'", CAUSE_NO_SENTINEL},
	{"ERR unknown command `SENTINEL`", CAUSE_NO_SENTINEL}, /* Redis 6 */
	{"ERR unknown command", CAUSE_COMMAND},
	{"ERR Unknown Redis command", CAUSE_COMMAND},
	{"Unknown Redis command", CAUSE_COMMAND},
	{"ERR Unknown command called from script", CAUSE_COMMAND}, /* Valkey */
	{"ERR Invalid command passed to redis.acl_check_cmd", CAUSE_COMMAND},
	{"ERR DB index is out of range", CAUSE_DATABASE},
	{"ERR invalid DB index", CAUSE_DATABASE},
	{"ERR SELECT is not allowed in cluster mode",
	 CAUSE_DATABASE_OF_CLUSTER},
};

/* How those of our scripts begin. What follows is for people. */
static const struct {
	const char *start;
	enum cause cause;
} ours[] = {
	{"PERMITS ", CAUSE_KIND},          /* acquire.lua */
	{"NOSLOTS ", CAUSE_EARLIER},       /* acquire.lua */
	{"NOLOCK ", CAUSE_DATA},           /* acquire.lua */
	{"NOBREAK ", CAUSE_KEPT},          /* break.lua, ask.lua */
	{"NOASK ", CAUSE_DEAF},            /* ask.lua */
	{"PROTOCOL ", CAUSE_LATER},        /* data.lua */
	{"REPLICAS ", CAUSE_FEW_REPLICAS}, /* replicas.lua */
};

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* After "@user_script:3: ", and after the '-' that Redis 6 leaves there. */
static const char *skip_place(const char *at)
{
	at += strlen(PLACE);
	at += strspn(at, " 0123456789");
	if (*at == ':')
		at++;
	at += strspn(at, " ");
	return *at == '-' ? at + 1 : at;
}

/* What the script's command was told. */
static const char *unwrap(const char *failure)
{
	const char *text = failure, *at = failure;

	if (!starts_with(failure, WRAPPER))
		return failure;
	while ((at = strstr(at, PLACE)) != NULL) {
		text = skip_place(at);
		at = text;
	}
	return text;
}

/* "script: 3f0a, on @user_script:3."; Valkey 9 leaves the name out */
static bool is_trailer(const char *text)
{
	if (!starts_with(text, TRAILER))
		return false;
	text += strlen(TRAILER);
	text += strspn(text, "f_0123456789abcde");
	return *text == '\0' || *text == ',' || starts_with(text, "on " PLACE);
}

/* Without the script's name, what the server was asked, and the full stop. */
static size_t measure(const char *text)
{
	size_t length = 0;

	while (text[length] != '\0' && !is_trailer(text + length) &&
	       !starts_with(text + length, REPEATED))
		length++;
	while (length > 0 && strchr(".\r\n ", text[length - 1]) != NULL)
		length--;
	return length;
}

struct error_reply cause_of(const char *failure)
{
	const char *text = unwrap(failure);

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (starts_with(text, ours[i].start)) {
			text += strlen(ours[i].start);
			return (struct error_reply){ours[i].cause, text,
						    measure(text)};
		}
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (starts_with(text, starts[i].start))
			return (struct error_reply){starts[i].cause, text,
						    measure(text)};
	return (struct error_reply){CAUSE_OTHER, text, measure(text)};
}

struct error_reply cause_of_login(const char *failure)
{
	struct error_reply refusal = cause_of(failure);

	if (starts_with(failure, "ERR wrong number of arguments"))
		refusal.cause = CAUSE_OLD_LOGIN;
	else if (cause_code(refusal.cause) != EXIT_REFUSED &&
		 refusal.cause != CAUSE_PROTECTED &&
		 refusal.cause != CAUSE_CLIENTS)
		refusal.cause = CAUSE_LOGIN;
	return refusal;
}

enum cause cause_elsewhere(enum cause cause)
{
	switch (cause) {
	case CAUSE_REPLICA:
		return CAUSE_OLD_MASTER;
	case CAUSE_MOVED:
		return CAUSE_OTHER_NODE;
	case CAUSE_ASK:
	case CAUSE_TRY_AGAIN:
		return CAUSE_MOVING;
	case CAUSE_NO_CLUSTER:
		return CAUSE_LEFT_CLUSTER;
	case CAUSE_NO_MASTER:
		return CAUSE_LOST_MASTER;
	default:
		return cause;
	}
}

enum cause cause_of_sentinel(enum cause cause)
{
	return cause_is_login(cause) ? CAUSE_SENTINEL_LOGIN : cause;
}

int cause_code(enum cause cause)
{
	return meanings[cause].code;
}

bool cause_is_transient(enum cause cause)
{
	return meanings[cause].transient;
}

bool cause_is_of_the_moment(enum cause cause)
{
	return cause == CAUSE_BUSY || cause == CAUSE_LOADING;
}

bool cause_is_from_server(enum cause cause)
{
	return cause >= CAUSE_OTHER || cause == CAUSE_NONSENSE ||
	       cause == CAUSE_UNFIT;
}

bool cause_is_login(enum cause cause)
{
	return cause == CAUSE_NO_LOGIN || cause == CAUSE_WRONG_LOGIN ||
	       cause == CAUSE_LOGIN;
}

const char *cause_words(enum cause cause, bool *whole)
{
	*whole = meanings[cause].whole;
	return meanings[cause].words;
}

const char *cause_remedy(enum cause cause)
{
	return meanings[cause].remedy;
}
