#include "settings/suggest.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define WORD_LONGEST 64
#define EDITS_MOST 2 /* of a near word, half of which must stay */

/* --- the nearest word ---------------------------------------------------- */

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Edits (insert, delete, replace, swap neighbours) between two words; more than
 * EDITS_MOST if one is longer than WORD_LONGEST. */
static size_t distance(const char *a, const char *b)
{
	size_t rows = strlen(a), columns = strlen(b);
	size_t cost[WORD_LONGEST + 1][WORD_LONGEST + 1];

	if (rows > WORD_LONGEST || columns > WORD_LONGEST)
		return EDITS_MOST + 1;
	for (size_t i = 0; i <= rows; i++)
		cost[i][0] = i;
	for (size_t k = 0; k <= columns; k++)
		cost[0][k] = k;
	for (size_t i = 1; i <= rows; i++) {
		for (size_t k = 1; k <= columns; k++) {
			size_t best = cost[i - 1][k - 1] +
				      (tolower((unsigned char)a[i - 1]) !=
				       tolower((unsigned char)b[k - 1]));

			best = least(best, cost[i - 1][k] + 1);
			best = least(best, cost[i][k - 1] + 1);
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] &&
			    a[i - 2] == b[k - 1])
				best = least(best, cost[i - 2][k - 2] + 1);
			cost[i][k] = best;
		}
	}
	return cost[rows][columns];
}

const char *suggest_nearest(const char *text, const char *const *names,
			    size_t count)
{
	const char *nearest = NULL;
	size_t best = EDITS_MOST + 1;

	for (size_t i = 0; i < count; i++) {
		size_t edits = distance(text, names[i]);

		if (edits < best && *text != '\0' &&
		    edits * 2 <= strlen(text)) {
			best = edits;
			nearest = names[i];
		}
	}
	return nearest;
}

/* --- words of other programs --------------------------------------------- */

/* No pointers: they would be relocated at each start. */
enum {
	OPTION,
	ADDRESS,
	SOCKET,
	ENCRYPTED,
	LOGIN,
	OPERAND,
	NEVER,
	ALWAYS,
	JSON,
	RELEASE,
	UNLOCK,
	VERSION_OF
};

static const char texts[][56] = {
	[ADDRESS] = "-S redis://HOST:PORT/DB",
	[SOCKET] = "-S unix:///PATH",
	[ENCRYPTED] = "-S rediss://HOST",
	[LOGIN] = "REDLOCK_PASSWORD, and a user in the URL of -S",
	[OPERAND] = "KEY, which takes no option: redlock run KEY COMMAND",
	[NEVER] = "COMMAND never inherits the lock",
	[ALWAYS] = "run does so anyway",
	[JSON] = "--format json",
	[RELEASE] = "redlock release KEY",
	[UNLOCK] = "-S URL for a server, or redlock release KEY",
	[VERSION_OF] = "redlock --version",
};

static const struct synonym synonyms[] = {
	{"no-wait", "nonblock", OPTION},
	{"nowait", "nonblock", OPTION},
	{"no-block", "nonblock", OPTION},
	{"nx", "nonblock", OPTION},
	{"try", "nonblock", OPTION},
	{"try-once", "nonblock", OPTION},
	{"try-lock", "nonblock", OPTION},
	{"trylock", "nonblock", OPTION},
	{"non-blocking", "nonblock", OPTION},
	{"nonblocking", "nonblock", OPTION},
	{"once", "once-in", OPTION},
	{"fail", "nonblock", OPTION},
	{"block", "wait", OPTION},
	{"blocking", "wait", OPTION},
	{"blocking-timeout", "wait", OPTION},
	{"max-wait", "wait", OPTION},
	{"wait-time", "wait", OPTION},
	{"wait-timeout", "wait", OPTION},
	{"wait-for", "wait", OPTION},
	{"lock-timeout", "wait", OPTION},
	{"acquire-timeout", "wait", OPTION},
	{"deadline", "wait", OPTION},
	{"max-run", "max-hold", OPTION},
	{"max-time", "max-hold", OPTION},
	{"max-runtime", "max-hold", OPTION},
	{"run-timeout", "max-hold", OPTION},
	{"job-timeout", "max-hold", OPTION},
	{"time-limit", "max-hold", OPTION},
	{"runtime", "max-hold", OPTION},
	{"min-time", "min-hold", OPTION},
	{"min", "min-hold", OPTION},
	{"limit", "permits", OPTION},
	{"max", "permits", OPTION},
	{"count", "permits", OPTION},
	{"concurrency", "permits", OPTION},
	{"semaphore", "permits", OPTION},
	{"slots", "permits", OPTION},
	{"holders", "permits", OPTION},
	{"jobs", "permits", OPTION},
	{"url", "server", OPTION},
	{"uri", "server", OPTION},
	{"redis", "server", OPTION},
	{"redis-url", "server", OPTION},
	{"servers", "server", OPTION},
	{"endpoint", "server", OPTION},
	{"endpoints", "server", OPTION},
	{"node", "server", OPTION},
	{"nodes", "server", OPTION},
	{"host", "server", ADDRESS},
	{"hosts", "server", ADDRESS},
	{"hostname", "server", ADDRESS},
	{"address", "server", ADDRESS},
	{"addr", "server", ADDRESS},
	{"http-addr", "server", ADDRESS},
	{"port", "server", ADDRESS},
	{"db", "server", ADDRESS},
	{"database", "server", ADDRESS},
	{"socket", "server", SOCKET},
	{"tls", "server", ENCRYPTED},
	{"ssl", "server", ENCRYPTED},
	{"user", "", LOGIN},
	{"username", "", LOGIN},
	{"pass", "", LOGIN},
	{"password", "", LOGIN},
	{"auth", "", LOGIN},
	{"askpass", "", LOGIN},
	{"expire", "ttl", OPTION},
	{"expires", "ttl", OPTION},
	{"expiry", "ttl", OPTION},
	{"expiration", "ttl", OPTION},
	{"ex", "ttl", OPTION},
	{"px", "ttl", OPTION},
	{"lease", "ttl", OPTION},
	{"lease-time", "ttl", OPTION},
	{"lease-timeout", "ttl", OPTION},
	{"lifetime", "ttl", OPTION},
	{"duration", "ttl", OPTION},
	{"validity", "ttl", OPTION},
	{"debug", "verbose", OPTION},
	{"trace", "verbose", OPTION},
	{"silent", "quiet", OPTION},
	{"exit-code", "conflict-exit-code", OPTION},
	{"conflict-code", "conflict-exit-code", OPTION},
	{"busy-exit-code", "conflict-exit-code", OPTION},
	{"retry", "tries", OPTION},
	{"retries", "tries", OPTION},
	{"max-retries", "tries", OPTION},
	{"retry-count", "tries", OPTION},
	{"monitor-retry", "tries", OPTION},
	{"attempts", "tries", OPTION},
	{"interval", "poll", OPTION},
	{"retry-delay", "poll", OPTION},
	{"retry-interval", "poll", OPTION},
	{"poll-interval", "poll", OPTION},
	{"sleep", "poll", OPTION},
	{"delay", "poll", OPTION},
	{"read", "shared", OPTION},
	{"reader", "shared", OPTION},
	{"write", "exclusive", OPTION},
	{"writer", "exclusive", OPTION},
	{"name", "label", OPTION},
	{"description", "label", OPTION},
	{"comment", "label", OPTION},
	{"tag", "label", OPTION},
	{"key", "", OPERAND},
	{"lock", "", OPERAND},
	{"lock-name", "", OPERAND},
	{"lock-key", "", OPERAND},
	{"lockfile", "", OPERAND},
	{"file", "", OPERAND},
	{"cmd", "command", OPTION},
	{"shell", "command", OPTION},
	{"exec", "command", OPTION},
	{"signal", "on-lost", OPTION},
	{"grace", "kill-after", OPTION},
	{"grace-period", "kill-after", OPTION},
	{"kill-timeout", "kill-after", OPTION},
	{"ca", "cacert", OPTION},
	{"ca-file", "cacert", OPTION},
	{"cafile", "cacert", OPTION},
	{"ca-cert", "cacert", OPTION},
	{"cert-file", "cert", OPTION},
	{"private-key", "key-file", OPTION},
	{"no-verify", "insecure", OPTION},
	{"skip-verify", "insecure", OPTION},
	{"servername", "sni", OPTION},
	{"force", "yes", OPTION},
	{"assume-yes", "yes", OPTION},
	{"json", "format", JSON},
	{"output", "format", OPTION},
	{"config-file", "config", OPTION},
	{"profile", "set", OPTION},
	{"section", "set", OPTION},
	{"unlock", "", RELEASE},
	{"version", "", VERSION_OF},
	{"close", "", NEVER},
	{"no-fork", "", NEVER},
	{"renew", "", ALWAYS},
	{"auto-renew", "", ALWAYS},
	{"heartbeat", "", ALWAYS},
	{"keepalive", "", ALWAYS},
	{"foreground", "", ALWAYS},
	{"preserve-status", "", ALWAYS},
	{"child-exit-code", "", ALWAYS},
	{"usage", "help", OPTION},
	{"H", "server", ADDRESS},
	{"p", "server", ADDRESS},
	{"u", "", UNLOCK},
	{"a", "", LOGIN},
	{"o", "", NEVER},
	{"F", "", NEVER},
	{"V", "", VERSION_OF},
};

const struct synonym *suggest_option(const char *word)
{
	for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++) {
		const char *each = synonyms[i].word;

		if (each[1] == '\0' ? strcmp(each, word) == 0
				    : strcasecmp(each, word) == 0)
			return &synonyms[i];
	}
	return NULL;
}

const char *suggest_text(const struct synonym *synonym)
{
	return synonym->text == OPTION ? NULL : texts[synonym->text];
}

bool suggest_needless(const struct synonym *synonym)
{
	return synonym->text == NEVER || synonym->text == ALWAYS;
}

/* Here, too, no pointers. */
static const struct {
	char word[13], means[32];
} of_commands[] = {
	{"lock", "run, or acquire"},
	{"exec", "run"},
	{"execute", "run"},
	{"hold", "run"},
	{"start", "run"},
	{"with", "run"},
	{"try", "run -n, or acquire -n"},
	{"trylock", "run -n, or acquire -n"},
	{"get", "acquire, or status"},
	{"set", "acquire"},
	{"take", "acquire"},
	{"grab", "acquire"},
	{"obtain", "acquire"},
	{"unlock", "release"},
	{"free", "release"},
	{"drop", "release"},
	{"del", "release, or break"},
	{"delete", "release, or break"},
	{"rm", "release, or break"},
	{"remove", "release, or break"},
	{"renew", "extend"},
	{"refresh", "extend"},
	{"prolong", "extend"},
	{"keepalive", "extend"},
	{"touch", "extend"},
	{"expire", "extend"},
	{"ls", "list"},
	{"ps", "list"},
	{"keys", "list"},
	{"scan", "list"},
	{"locks", "list"},
	{"info", "status"},
	{"show", "status"},
	{"inspect", "status"},
	{"query", "status"},
	{"who", "status"},
	{"exists", "status -q"},
	{"ttl", "status, or extend"},
	{"pttl", "status, or extend"},
	{"log", "history"},
	{"runs", "history"},
	{"last", "history"},
	{"kill", "break"},
	{"steal", "break"},
	{"force", "break"},
	{"force-unlock", "break"},
	{"watch", "wait, or status"},
	{"ping", "doctor"},
	{"test", "doctor"},
	{"diagnose", "doctor"},
	{"version", "--version"},
	{"usage", "help"},
	{"man", "help"},
};

const char *suggest_command(const char *word)
{
	for (size_t i = 0; i < sizeof(of_commands) / sizeof(of_commands[0]);
	     i++)
		if (strcmp(word, of_commands[i].word) == 0)
			return of_commands[i].means;
	return NULL;
}
