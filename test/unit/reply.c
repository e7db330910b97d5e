/* Names and values in turn, as a server may say them. */
#include "server/reply.h"

#include <stdlib.h>
#include <string.h>

#include <hiredis.h>

#include "check.h"

/* What the value of "name" is in what a server has said. */
static void check_pair(const char *said, const char *text, int64_t number)
{
	struct reply_bounds bounds = {0};
	redisReader *reader = reply_reader_new(&bounds);
	struct reply reply = {0};
	struct value value;
	void *whole = NULL;

	redisReaderFeed(reader, said, strlen(said));
	CHECK(redisReaderGetReply(reader, &whole) == REDIS_OK && whole != NULL,
	      "%s", said);
	if (whole != NULL) {
		reply_flatten(&reply, whole);
		value = reply_pair(&reply, "name");
		CHECK(same(value.text, text) && value.number == number,
		      "%s: %s %lld", said, value.text, (long long)value.number);
		freeReplyObject(whole);
	}
	redisReaderFree(reader);
}

int main(void)
{
	check_pair("*2\r\n$4\r\nname\r\n$1\r\n7\r\n", "7", 0);
	check_pair("*4\r\n+a\r\n+b\r\n+name\r\n+c\r\n", "c", 0);
	check_pair("*2\r\n+name\r\n:7\r\n", NULL, 7);
	check_pair("*4\r\n+name\r\n+a\r\n+name\r\n+b\r\n", "a", 0);
	check_pair("*2\r\n+name\r\n$-1\r\n", "", 0);
	check_pair("*2\r\n+name\r\n*1\r\n+a\r\n", "", 0);
	/* no name, or none that is one */
	check_pair("*0\r\n", NULL, 0);
	check_pair("*-1\r\n", NULL, 0);
	check_pair("+name\r\n", NULL, 0);
	check_pair("-name\r\n", NULL, 0);
	check_pair(":7\r\n", NULL, 0);
	check_pair("*1\r\n+name\r\n", NULL, 0);
	check_pair("*3\r\n+a\r\n+b\r\n+name\r\n", NULL, 0);
	check_pair("*4\r\n:1\r\n:2\r\n*0\r\n$-1\r\n", NULL, 0);
	check_pair("*2\r\n:1\r\n+name\r\n", NULL, 0);
	check_pair("*2\r\n+nam\r\n+a\r\n", NULL, 0);
	return check_result();
}
