/* Who holds a lock, as a holder wrote it: readable, and harmless if hostile. */
#include "lock/record.h"

#include <stdlib.h>
#include <unistd.h>

#include "check.h"

static void parse(struct holder *holder, const char *text)
{
	record_parse(holder, text, strlen(text));
}

static void check_shown(const struct busy *busy, const char *wanted)
{
	struct buffer text = {0};

	record_print_busy(&text, busy);
	CHECK(same(text.data, wanted), "shown as \"%s\", not \"%s\"",
	      shown(text.data), wanted);
	buffer_release(&text);
}

static void test_round_trip(void)
{
	struct busy busy = {
		.has_reply = true,
		.has_description = true,
		.held = 250000,
		.left = 21000,
	};
	struct buffer text = {0};
	char wanted[400], host[65] = "";

	setenv("LOGNAME", "bob", 1);
	record_describe(&text, 812, "backup.sh\npid=1\033", 30000, false,
			BREAK_UNKNOWN);
	record_parse(&busy.holder, text.data, text.length);
	CHECK(busy.holder.pid == 812, "pid %lld", (long long)busy.holder.pid);
	CHECK(same(busy.holder.user, "bob"), "user %s", busy.holder.user);
	CHECK(same(busy.holder.command, "backup.sh\\npid=1\\e"), "command %s",
	      busy.holder.command);
	CHECK(strstr(text.data, "ttl=30000\n") != NULL, "%s", text.data);
	CHECK(busy.holder.protocol == PROTOCOL, "protocol %lld",
	      (long long)busy.holder.protocol);
	parse(&busy.holder, "host=web1\npid=812\n"); /* 0.1 */
	CHECK(busy.holder.protocol == 0, "protocol %lld",
	      (long long)busy.holder.protocol);
	record_parse(&busy.holder, text.data, text.length);
	gethostname(host, sizeof(host) - 1);
	snprintf(wanted, sizeof(wanted),
		 "held by %s pid 812 "
		 "'backup.sh\\npid=1\\e' for 4m10s, 21s left",
		 host);
	check_shown(&busy, wanted);
	buffer_release(&text);
}

static void test_shown(void)
{
	struct busy busy = {.has_reply = true, .held = -1, .left = 21000};

	check_shown(&busy, "held by another program, 21s left");
	busy.left = -1;
	check_shown(&busy, "held by another program, with no expiry");
}

/* The time that is left is told if nobody renews the lease, or not in time. */
static void test_left(void)
{
	static const struct {
		const char *lines;
		int64_t held, left;
		bool told;
	} table[] = {
		{"ttl=30000\nrenews=yes\n", 250000, 30000, false},
		{"ttl=30000\nrenews=yes\n", 250000, 26000, false},
		{"ttl=30000\nrenews=yes\n", 250000, 15000, false},
		{"ttl=30000\nrenews=yes\n", 250000, 14999, true},
		{"ttl=30000\nrenews=yes\n", 250000, 30001, true},
		{"ttl=30000\nrenews=yes\n", 2999, 100, false},
		{"ttl=30000\nrenews=yes\n", 3000, 100, true},
		{"ttl=1000\nrenews=yes\n", 1000, 100, true},
		{"ttl=30000\n", 250000, 26000, true},
		{"ttl=30000\nrenews=no\n", 250000, 26000, true},
		{"renews=yes\n", 250000, 26000, true},
		{"ttl=-1\nrenews=yes\n", 250000, 26000, true},
		{"ttl=x\nrenews=yes\n", 250000, 26000, true},
		{"ttl=99999999999999999999\nrenews=yes\n", 250000, 26000, true},
	};

	for (size_t i = 0; i < COUNT(table); i++) {
		struct busy busy = {
			.has_reply = true,
			.has_description = true,
			.held = table[i].held,
			.left = table[i].left,
		};

		parse(&busy.holder, table[i].lines);
		CHECK(record_tells_left(&busy) == table[i].told,
		      "%zu: %s held %lld left %lld", i, table[i].lines,
		      (long long)table[i].held, (long long)table[i].left);
	}
	check_shown(&(struct busy){.has_reply = true, .held = -1, .left = 5},
		    "held by another program, 5ms left");
}

static void test_hostile(void)
{
	struct busy busy = {
		.has_reply = true,
		.has_description = true,
		.held = -1,
		.left = 1000,
	};
	struct holder *holder = &busy.holder;
	char huge[5000];

	parse(holder, "");
	check_shown(&busy, "held by somebody, 1s left");
	parse(holder, "no equals\n=\n\n===\nhost\npid=\nuser=");
	check_shown(&busy, "held by somebody, 1s left");
	parse(holder, "pid=99999999999999999999999999999\nhost=h");
	CHECK(same(holder->host, "h"), "%s", holder->host);
	parse(holder, "pid=-5\n");
	check_shown(&busy, "held by somebody, 1s left");

	memset(huge, 'x', sizeof(huge));
	memcpy(huge, "command=", 8);
	record_parse(holder, huge, sizeof(huge));
	CHECK(strlen(holder->command) == sizeof(holder->command) - 1, "%zu",
	      strlen(holder->command));
	memcpy(huge, "host=xxx", 8);
	record_parse(holder, huge, sizeof(huge));
	CHECK(strlen(holder->host) == sizeof(holder->host) - 1, "%zu",
	      strlen(holder->host));
	memcpy(huge, "pid=1234", 8);
	record_parse(holder, huge, sizeof(huge));
}

/* A label of any length and content stays one line. */
static void test_long_label(void)
{
	struct buffer text = {0};
	struct holder holder;
	char *label = malloc(100001);
	int lines = 0;

	memset(label, '\n', 100000);
	label[100000] = '\0';
	record_describe(&text, 1, label, 1, true, BREAK_STOPS);
	for (const char *c = text.data; *c; c++)
		lines += *c == '\n';
	CHECK(lines == 8, "%d lines", lines);
	CHECK(text.length < 1024, "%zu bytes", text.length);
	record_parse(&holder, text.data, text.length);
	buffer_release(&text);
	free(label);
}

/* A label that is too long ends with a whole character. */
static void test_cut(void)
{
	char label[200];

	for (size_t before = 155; before <= 161; before++) {
		struct buffer text = {0};
		size_t least = before < 160 ? before : 160;

		memset(label, 'x', before);
		strcpy(label + before, "\xf0\x9f\x92\xbe and more");
		record_describe(&text, 1, label, 1, true, BREAK_STOPS);
		CHECK(strstr(text.data, "\\") == NULL &&
			      strspn(strstr(text.data, "command=") + 8, "x") ==
				      least,
		      "%zu: %s", before, text.data);
		buffer_release(&text);
	}
}

/* And with a whole escape, or a whole escaped character. */
static void test_cut_escape(void)
{
	static const struct {
		const char *from, *to;
	} list[] = {
		{"\n", "\\n"},
		{"\001", "\\x01"},
		{"\x80", "\\x80"},
		{"\xe2\x80\x8d", "\\xe2\\x80\\x8d"}, /* joins emoji */
	};
	char label[200];

	for (size_t i = 0; i < COUNT(list); i++)
		for (size_t before = 140; before <= 161; before++) {
			size_t fits = strlen(list[i].to) + before <= 160;
			struct buffer text = {0};
			struct holder holder;
			const char *end = holder.command;

			memset(label, 'a', before);
			strcpy(label + before, list[i].from);
			record_describe(&text, 1, label, 1, true, BREAK_STOPS);
			record_parse(&holder, text.data, text.length);
			end += before < 160 ? before : 160;
			CHECK(same(end, fits ? list[i].to : ""), "%zu: %s",
			      before, holder.command);
			buffer_release(&text);
		}
}

/* The same for who breaks a lock. */
static void test_cut_breaker(void)
{
	struct buffer text = {0};
	struct breaker breaker;
	char reason[210], wanted[200] = "", host[65] = "";

	gethostname(host, sizeof(host) - 1);
	setenv("LOGNAME", "a\nbcdefghijklmnopqrstuvwxyz0123\n", 1);
	snprintf(wanted, sizeof(wanted), "a\\nbcdefghijklmnopqrstuvwxyz0123@%s",
		 host);
	memset(reason, 'r', 199);
	strcpy(reason + 199, "\n");
	record_describe_breaker(&text, reason);
	record_read_breaker(&breaker, text.data, text.length);
	CHECK(same(breaker.name, wanted), "%s, not %s", breaker.name, wanted);
	CHECK(strspn(breaker.reason, "r") == 199 && !breaker.reason[199], "%s",
	      breaker.reason);
	buffer_release(&text);
}

int main(void)
{
	test_cut();
	test_cut_escape();
	test_cut_breaker();
	test_round_trip();
	test_shown();
	test_left();
	test_hostile();
	test_long_label();
	return check_result();
}
