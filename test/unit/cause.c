/* What error replies are, in the words of Redis 5 to 8, Valkey, KeyDB and
 * Dragonfly. */
#include "server/cause.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

#include "check.h"

static void check_as(const char *failure, enum cause cause, const char *text)
{
	struct error_reply refusal = cause_of(failure);

	CHECK(refusal.cause == cause, "%s: %d", failure, refusal.cause);
	CHECK(refusal.length == strlen(text) &&
		      strncmp(refusal.text, text, refusal.length) == 0,
	      "%s: %.*s", failure, (int)refusal.length, refusal.text);
}

static void check_each(void)
{
	static const struct {
		const char *failure;
		enum cause cause;
	} known[] = {
		{"NOAUTH Authentication required", CAUSE_NO_LOGIN},
		{"ERR Protocol error: unauthenticated multibulk length",
		 CAUSE_NO_LOGIN},
		{"WRONGPASS invalid username-password pair or user is disabled",
		 CAUSE_WRONG_LOGIN},
		{"ERR invalid password", CAUSE_WRONG_LOGIN},
		{"ERR Client sent AUTH, but no password is set",
		 CAUSE_NEEDLESS_LOGIN},
		{"ERR AUTH <password> called without any password configured "
		 "for the default user. Are you sure your configuration is "
		 "correct?",
		 CAUSE_NEEDLESS_LOGIN},
		{"NOPERM this user has no permissions to run the 'eval' "
		 "command",
		 CAUSE_RIGHTS},
		{"NOPERM User bob has no permissions to access the 'x' key",
		 CAUSE_RIGHTS},
		{"NOPERM this user has no permissions to access one of the keys "
		 "used as arguments",
		 CAUSE_RIGHTS},
		{"NOPERM this user has no permissions to access one of the "
		 "channels used as arguments",
		 CAUSE_RIGHTS},
		{"NOPERM User bob has no permissions to run the 'eval' command",
		 CAUSE_RIGHTS},
		{"NOPERM No permissions to access a key", CAUSE_RIGHTS},
		{"NOPERM No permissions to access a channel", CAUSE_RIGHTS},
		{"NOAUTH HELLO must be called with the client already "
		 "authenticated, otherwise the HELLO AUTH <user> <pass> option "
		 "can be used",
		 CAUSE_NO_LOGIN},
		{"OOM command not allowed when used memory > 'maxmemory'",
		 CAUSE_MEMORY},
		{"ERR Out of memory", CAUSE_MEMORY},
		{"MISCONF Redis is configured to save RDB snapshots, but it's "
		 "currently unable to persist to disk",
		 CAUSE_DISK},
		{"MISCONF Errors writing to the AOF file: No space left on "
		 "device",
		 CAUSE_DISK},
		{"READONLY You can't write against a read only replica",
		 CAUSE_REPLICA},
		{"READONLY You can't write against a read only slave",
		 CAUSE_REPLICA},
		{"MASTERDOWN Link with MASTER is down and replica-serve-stale-"
		 "data is set to 'no'",
		 CAUSE_CUT_OFF},
		{"LOADING Redis is loading the dataset in memory",
		 CAUSE_LOADING},
		{"LOADING Dragonfly is loading the dataset in memory",
		 CAUSE_LOADING},
		{"BUSY Redis is busy running a script. You can only call "
		 "SCRIPT KILL or SHUTDOWN NOSAVE",
		 CAUSE_BUSY},
		{"BUSYKEY Target key name already exists", CAUSE_OTHER},
		{"CLUSTERDOWN Hash slot not served", CAUSE_CLUSTER_DOWN},
		{"CLUSTERDOWN The cluster is down", CAUSE_CLUSTER_DOWN},
		{"MOVED 15495 127.0.0.1:23065", CAUSE_MOVED},
		{"ASK 15495 127.0.0.1:23065", CAUSE_ASK},
		{"ASKING is not known", CAUSE_OTHER},
		{"TRYAGAIN Multiple keys request during rehashing of slot",
		 CAUSE_TRY_AGAIN},
		{"CROSSSLOT Keys in request don't hash to the same slot",
		 CAUSE_HASH_SLOTS},
		{"ERR This instance has cluster support disabled",
		 CAUSE_NO_CLUSTER},
		{"ERR unknown command 'SENTINEL', with args beginning with: ",
		 CAUSE_NO_SENTINEL},
		{"ERR unknown command `SENTINEL`, with args beginning with: ",
		 CAUSE_NO_SENTINEL},
		{"NOSCRIPT No matching script. Please use EVAL", CAUSE_SCRIPT},
		{"EXECABORT Transaction discarded because of previous errors",
		 CAUSE_TRANSACTION},
		{"NOREPLICAS Not enough good replicas to write",
		 CAUSE_REPLICAS},
		{"DENIED Redis is running in protected mode because protected "
		 "mode is enabled",
		 CAUSE_PROTECTED},
		{"ERR max number of clients reached", CAUSE_CLIENTS},
		{"ERR max number of clients + cluster connections reached",
		 CAUSE_CLIENTS},
		{"ERR DB index is out of range", CAUSE_DATABASE},
		{"ERR invalid DB index", CAUSE_DATABASE},
		{"ERR SELECT is not allowed in cluster mode",
		 CAUSE_DATABASE_OF_CLUSTER},
		{"ERR unknown command 'EVAL'", CAUSE_COMMAND},
		{"WRONGTYPE Operation against a key holding the wrong kind of "
		 "value",
		 CAUSE_TYPE},
		{"UNKILLABLE Sorry the script already executed write commands",
		 CAUSE_OTHER},
		{"", CAUSE_OTHER},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct error_reply refusal = cause_of(known[i].failure);

		CHECK(refusal.cause == known[i].cause, "%s: %d",
		      known[i].failure, refusal.cause);
	}
}

/* What users may not do in a script. The name of a user may be anything without
 * a blank, and may look like a code, like a quoted command, or like what Redis 5
 * and 6 put around an error. */
static void check_rights(void)
{
	static const char *const names[] = {
		"app",
		"NOPERM",
		"OOM",
		"-LOADING",
		"'time'",
		"key",
		"@user_script:3:",
		"@user_script:3:-READONLY",
		"script:f_0",
		"\"a\\",
		"\xc3\xa9\x1b[31m",
	};
	char failure[256], text[128];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		/* Redis 7.2 to 8, and Valkey */
		snprintf(text, sizeof(text),
			 "ERR ACL failure in script: User %s has no "
			 "permissions to run the 'time' command",
			 names[i]);
		snprintf(failure, sizeof(failure),
			 "%s script: 3f0a, on @user_script:3.", text);
		check_as(failure, CAUSE_RIGHTS, text);
		snprintf(failure, sizeof(failure),
			 "NOPERM User %s has no permissions to run the 'eval' "
			 "command",
			 names[i]);
		check_as(failure, CAUSE_RIGHTS, failure);
	}
	check_as("ERR ACL failure in script: No permissions to access a key "
		 "script: 3f0a, on @user_script:3.",
		 CAUSE_RIGHTS,
		 "ERR ACL failure in script: No permissions to access a key");
	check_as(
		"ERR ACL failure in script: No permissions to access a channel "
		"script: 3f0a, on @user_script:3.",
		CAUSE_RIGHTS,
		"ERR ACL failure in script: No permissions to access a "
		"channel");
	/* Redis 7.0 */
	check_as("ERR The user executing the script can't run this command or "
		 "subcommand script: 3f0a, on @user_script:3.",
		 CAUSE_RIGHTS,
		 "ERR The user executing the script can't run this command or "
		 "subcommand");
	check_as("ERR The user executing the script can't access at least one "
		 "of the keys mentioned in the command arguments script: 3f0a, "
		 "on @user_script:3.",
		 CAUSE_RIGHTS,
		 "ERR The user executing the script can't access at least one "
		 "of the keys mentioned in the command arguments");
	/* Redis 6.2 */
	check_as("ERR Error running script (call to f_3f0a): @user_script:3: "
		 "@user_script: 3: The user executing the script can't publish "
		 "to the channel mentioned in the command",
		 CAUSE_RIGHTS,
		 "The user executing the script can't publish to the channel "
		 "mentioned in the command");
}

int main(void)
{
	check_each();
	check_rights();

	/* Redis 7 and 8, and Valkey, within a script */
	check_as("OOM command not allowed when used memory > 'maxmemory'. "
		 "script: 3f0a, on @user_script:75.",
		 CAUSE_MEMORY,
		 "OOM command not allowed when used memory > 'maxmemory'");
	check_as("NOPERM ACL failure in script: User bob has no permissions to "
		 "run the 'get' command script: 3f0a, on @user_script:3.",
		 CAUSE_RIGHTS,
		 "NOPERM ACL failure in script: User bob has no permissions to "
		 "run the 'get' command");
	check_as("ERR ACL failure in script: User bob has no permissions to "
		 "run the 'get' command script: on @user_script:3.",
		 CAUSE_RIGHTS,
		 "ERR ACL failure in script: User bob has no permissions to "
		 "run the 'get' command");
	check_as("ERR Script attempted to access a non local key in a cluster "
		 "node script: 3f0a, on @user_script:3.",
		 CAUSE_MOVED,
		 "ERR Script attempted to access a non local key in a cluster "
		 "node");
	/* Redis 5 and 6, and KeyDB */
	check_as("ERR Error running script (call to f_3f0a): "
		 "@user_script:75: @user_script: 75: -OOM command not allowed "
		 "when used memory > 'maxmemory'.\r\n",
		 CAUSE_MEMORY,
		 "OOM command not allowed when used memory > 'maxmemory'");
	check_as("ERR Error running script (call to f_3f0a): @user_script:3: "
		 "-READONLY You can't write against a read only replica.",
		 CAUSE_REPLICA,
		 "READONLY You can't write against a read only replica");
	check_as("ERR Error running script (call to f_3f0a): @user_script:3: "
		 "@user_script: 3: The user executing the script can't run "
		 "this command or subcommand",
		 CAUSE_RIGHTS,
		 "The user executing the script can't run this command or "
		 "subcommand");
	check_as("ERR Error running script (call to f_3f0a): @user_script:3: "
		 "@user_script: 3: Unknown Redis command called from Lua "
		 "script",
		 CAUSE_COMMAND, "Unknown Redis command called from Lua script");
	check_as("ERR Error running script (call to f_3f0a): @user_script:3: "
		 "@user_script: 3: Lua script attempted to access a non local "
		 "key in a cluster node",
		 CAUSE_MOVED,
		 "Lua script attempted to access a non local key in a cluster "
		 "node");
	check_as("ERR Error running script (call to f_3f0a): @user_script:3: "
		 "@user_script: 3: Lua script attempted to execute a write "
		 "command while the cluster is down and readonly",
		 CAUSE_CLUSTER_DOWN,
		 "Lua script attempted to execute a write command while the "
		 "cluster is down and readonly");
	/* Redis 7 and Valkey */
	check_as("ERR Script attempted to execute a command while the cluster "
		 "is down script: 3f0a, on @user_script:3.",
		 CAUSE_CLUSTER_DOWN,
		 "ERR Script attempted to execute a command while the cluster "
		 "is down");
	check_as("ERR Can not execute the command on a stale replica script: "
		 "3f0a, on @user_script:3.",
		 CAUSE_CUT_OFF,
		 "ERR Can not execute the command on a stale replica");
	check_as(
		"ERR Unknown Redis command called from script script: 3f0a, on "
		"@user_script:3.",
		CAUSE_COMMAND, "ERR Unknown Redis command called from script");
	check_as("ERR Unknown command called from script script: 3f0a, on "
		 "@user_script:3.",
		 CAUSE_COMMAND, "ERR Unknown command called from script");
	check_as("ERR Invalid command passed to redis.acl_check_cmd() script: "
		 "3f0a, on @user_script:3.",
		 CAUSE_COMMAND,
		 "ERR Invalid command passed to redis.acl_check_cmd()");
	/* our own scripts' */
	check_as("PERMITS KEY is held with 3 permits", CAUSE_KIND,
		 "KEY is held with 3 permits");
	check_as("NOSLOTS KEY", CAUSE_EARLIER, "KEY");
	check_as("PROTOCOL protocol 2", CAUSE_LATER, "protocol 2");
	check_as("ERR unknown command 'AUTH', with args beginning with: 'x' ",
		 CAUSE_COMMAND, "ERR unknown command 'AUTH'");
	/* cut, or of no server */
	check_as("ERR Error running script (call to f_3f0a): @user_script:",
		 CAUSE_OTHER, "");
	check_as("ERR Error running script", CAUSE_OTHER,
		 "ERR Error running script");

	/* a login that is refused is 77, whatever the server says */
	CHECK(cause_of_login("ERR whatever").cause == CAUSE_LOGIN, "login");
	CHECK(cause_of_login("LOADING x").cause == CAUSE_LOGIN, "login");
	CHECK(cause_of_login("ERR wrong number of arguments for 'auth' "
			     "command")
			      .cause == CAUSE_OLD_LOGIN,
	      "login");
	CHECK(cause_of_login("DENIED x").cause == CAUSE_PROTECTED, "login");
	CHECK(cause_of_login("WRONGPASS x").cause == CAUSE_WRONG_LOGIN,
	      "login");

	/* a server that others have named is the wrong one for a while only */
	CHECK(cause_is_transient(cause_elsewhere(CAUSE_REPLICA)) &&
		      cause_is_transient(cause_elsewhere(CAUSE_MOVED)) &&
		      cause_is_transient(cause_elsewhere(CAUSE_ASK)) &&
		      cause_is_transient(cause_elsewhere(CAUSE_NO_CLUSTER)) &&
		      cause_is_transient(cause_elsewhere(CAUSE_NO_MASTER)),
	      "elsewhere");
	for (enum cause cause = 0; cause <= CAUSE_LOST_MASTER; cause++)
		CHECK(cause_code(cause) != EXIT_DONE, "%d", cause);
	return check_result();
}
