/* What is made of a server that claims to forget nothing. */
#include "server/identity.h"

#include <stdlib.h>

#include <hiredis.h>

#include "base/deadline.h"
#include "base/lease.h"
#include "check.h"

#define ID "0123456789012345678901234567890123456789"
#define ALWAYS "*4\r\n+appendonly\r\n+yes\r\n+appendfsync\r\n+always\r\n"
#define EVERYSEC "*4\r\n+appendfsync\r\n+everysec\r\n+appendonly\r\n+yes\r\n"

/* Reads what is said as if it had come from a server. */
static void hear(struct identity *identity, const char *said,
		 void (*read)(struct identity *, const struct reply *))
{
	struct reply_bounds bounds = {0};
	redisReader *reader = reply_reader_new(&bounds);
	struct reply reply = {0};
	void *whole = NULL;

	redisReaderFeed(reader, said, strlen(said));
	CHECK(redisReaderGetReply(reader, &whole) == REDIS_OK && whole != NULL,
	      "%s", said);
	if (whole != NULL) {
		reply_flatten(&reply, whole);
		read(identity, &reply);
		freeReplyObject(whole);
	}
	redisReaderFree(reader);
}

static void read_info(struct identity *identity, const struct reply *reply)
{
	CHECK(identity_read_info(identity, reply) == 0, "its INFO");
}

/* One of this version, up for this number of seconds, with these settings. */
static struct identity meet(const char *version, long seconds,
			    const char *settings)
{
	struct identity identity = {0};
	char info[200], said[250];

	snprintf(info, sizeof(info),
		 "# Server\r\n%srun_id:" ID "\r\nuptime_in_seconds:%ld\r\n",
		 version, seconds);
	snprintf(said, sizeof(said), "$%zu\r\n%s\r\n", strlen(info), info);
	hear(&identity, said, read_info);
	hear(&identity, settings, identity_read_config);
	return identity;
}

static void check_doubt(const char *version, long seconds, const char *settings,
			bool doubtful, bool durable)
{
	struct identity identity = meet(version, seconds, settings);

	CHECK(identity_is_doubtful(&identity) == doubtful &&
		      identity.durable == durable,
	      "%s, %ld s, %s", version, seconds, settings);
}

static void check_user(const char *said, bool believed)
{
	struct identity identity = meet("redis_version:7.0.15\r\n", 1, ALWAYS);

	hear(&identity, said, identity_read_user);
	CHECK(identity.durable == believed && identity.appends == believed &&
		      identity_is_doubtful(&identity) == !believed,
	      "%s", said);
}

#define FLAGS(flags) "$5\r\nflags\r\n" flags "$9\r\npasswords\r\n*0\r\n"
#define RIGHTS(commands, keys, channels)                         \
	"$8\r\ncommands\r\n+" commands "\r\n$4\r\nkeys\r\n" keys \
	"\r\n$8\r\nchannels\r\n" channels "\r\n"
#define SEVEN(commands, keys, channels)   \
	"*12\r\n" FLAGS("*1\r\n+off\r\n") \
		RIGHTS(commands, keys, channels) "$9\r\nselectors\r\n*0\r\n"

static void check_users(void)
{
	check_user(SEVEN("+@all", "+~*", "+&*"), true);
	check_user(SEVEN("-@all", "+~*", "+&*"), false);
	check_user(SEVEN("+@all -hset", "+~*", "+&*"), false);
	check_user(SEVEN("+@all", "+~a ~b", "+&*"), false);
	check_user(SEVEN("+@all", "+~*", "+"), false);
	check_user(SEVEN("+@all", "+%R~*", "+&*"), false);
	/* Redis 6.2, and 6.0 */
	check_user("*10\r\n" FLAGS("*4\r\n+off\r\n+allkeys\r\n+allchannels\r\n"
				   "+allcommands\r\n")
			   RIGHTS("+@all", "*1\r\n+*", "*1\r\n+*"),
		   true);
	check_user("*10\r\n" FLAGS("*2\r\n+off\r\n+allkeys\r\n")
			   RIGHTS("+@all", "*1\r\n+*", "*0"),
		   false);
	check_user("*10\r\n" FLAGS("*2\r\n+off\r\n+allchannels\r\n")
			   RIGHTS("+@all", "*1\r\n+a", "*1\r\n+*"),
		   false);
	check_user(
		"*8\r\n" FLAGS(
			"*2\r\n+off\r\n+allkeys\r\n") "+commands\r\n++@all\r\n+keys\r\n*1\r\n+*\r\n",
		true);
	/* there is none, or it may not be asked for */
	check_user("*-1\r\n", false);
	check_user("$-1\r\n", false);
	check_user("-NOPERM this user has no permissions\r\n", false);
	check_user("-ERR unknown command 'ACL'\r\n", false);
	/* nonsense */
	check_user("+OK\r\n", false);
	check_user(":1\r\n", false);
	check_user("*0\r\n", false);
	check_user("*1\r\n+flags\r\n", false);
	check_user("*2\r\n+flags\r\n+allkeys\r\n", false);
	check_user("*3\r\n+commands\r\n++@all\r\n+keys\r\n", false);
	check_user("*4\r\n+commands\r\n++@all\r\n+flags\r\n*1\r\n*1\r\n+allkeys"
		   "\r\n",
		   false);
	check_user("*4\r\n+commands\r\n*1\r\n++@all\r\n+keys\r\n+~*\r\n",
		   false);
}

static int result;

static void try_info(struct identity *identity, const struct reply *reply)
{
	result = identity_read_info(identity, reply);
}

static void check_uptime(const char *uptime, int expected, bool set_back)
{
	struct identity identity = {0};
	char info[200], said[250];

	snprintf(info, sizeof(info),
		 "# Server\r\nrun_id:" ID "\r\nuptime_in_seconds:%s\r\n",
		 uptime);
	snprintf(said, sizeof(said), "$%zu\r\n%s\r\n", strlen(info), info);
	hear(&identity, said, try_info);
	CHECK(result == expected && identity.known == (expected == 0) &&
		      identity.set_back == set_back &&
		      (!set_back || identity.started >= clock_ms()),
	      "up for %s s", uptime);
}

static bool alone;

static void try_mode(struct identity *identity, const struct reply *reply)
{
	(void)identity;
	alone = identity_is_alone(reply);
}

static void check_mode(const char *line, bool expected)
{
	char info[200], said[250];

	snprintf(info, sizeof(info), "# Server\r\nrun_id:" ID "\r\n%s", line);
	snprintf(said, sizeof(said), "$%zu\r\n%s\r\n", strlen(info), info);
	hear(NULL, said, try_mode);
	CHECK(alone == expected, "%s", line);
}

static void check_modes(void)
{
	check_mode("redis_mode:standalone\r\n", true);
	check_mode("redis_mode:sentinel\r\n", true);
	check_mode("server_mode:standalone\r\nos:Linux\r\n", true);
	check_mode("redis_mode:cluster\r\n", false);
	check_mode("server_mode:cluster\r\n", false);
	/* it does not say */
	check_mode("", false);
	check_mode("redis_mode:\r\n", false);
	check_mode("redis_mode:stand\r\n", false);
	check_mode("redis_mode:standalone?\r\n", false);
	hear(NULL, "*0\r\n", try_mode);
	CHECK(!alone, "no text");
	hear(NULL, "+OK\r\n", try_mode);
	CHECK(!alone, "no INFO");
}

int main(void)
{
	const long day = LEASE_LONGEST / 1000;

	check_doubt("redis_version:7.0.15\r\n", 1, ALWAYS, true, false);
	check_doubt("redis_version:6.0.0\r\n", 1, ALWAYS, true, false);
	check_doubt("redis_version:10.0.0\r\n", 1, ALWAYS, true, false);
	check_doubt("redis_version:none\r\n", 1, ALWAYS, true, false);
	check_doubt("", 1, ALWAYS, true, false);
	check_doubt("redis_version:5.0.14\r\n", 1, ALWAYS, false, true);
	/* no lease from before its start can run */
	check_doubt("redis_version:7.0.15\r\n", day, ALWAYS, true, false);
	check_doubt("redis_version:7.0.15\r\n", day + 2, ALWAYS, false, true);
	/* it claims nothing, or less */
	check_doubt("redis_version:7.0.15\r\n", 1, "*0\r\n", false, false);
	check_doubt("redis_version:7.0.15\r\n", 1, EVERYSEC, true, false);
	check_doubt("redis_version:5.0.14\r\n", 1, EVERYSEC, false, false);
	check_users();
	check_modes();
	/* a clock that was set back to before its start */
	check_uptime("0", 0, false);
	check_uptime("-1", 0, true);
	check_uptime("-599", 0, true);
	check_uptime("-99999999999", -1, false);
	check_uptime("-", -1, false);
	check_uptime("--1", -1, false);
	check_uptime("", -1, false);
	return check_result();
}
