/*
 * ask: redis-cli(1) for tests, at a fifth of what its start costs, or for nothing:
 *
 *	ask SOCKET WORD ...
 *	ask -v NAME SOCKET WORD ...	# as a builtin of bash, which ask.so is
 *
 * sends one command and prints the answer as redis-cli does where no terminal
 * is: the elements of arrays a line each, an empty line for nothing, and one
 * behind an error. With -v the variable NAME has it, without the newlines at its end,
 * and nothing if there is none: 124 if the answer takes longer than 10 s, 1 if there is
 * no server. REDISCLI_AUTH is a password.
 *
 * The builtin has a variable besides: $NOW, in milliseconds of CLOCK_BOOTTIME.
 */
#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct server {
	int fd;
	long long until; /* ms, when it is to have answered */
	char bytes[4096];
	size_t at, end;
	int failed; /* a status */
};

static long long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* The next byte, or -1. */
static int next(struct server *server)
{
	while (server->at == server->end && server->failed == 0) {
		struct pollfd in = {.fd = server->fd, .events = POLLIN};
		long long left = server->until - now_ms();
		ssize_t size;

		if (left <= 0) {
			server->failed = 124;
		} else if (poll(&in, 1, (int)left) > 0) {
			size = read(server->fd, server->bytes,
				    sizeof(server->bytes));
			if (size <= 0)
				server->failed = 1;
			else
				server->end = (size_t)size;
			server->at = 0;
		}
	}
	return server->failed ? -1 : (unsigned char)server->bytes[server->at++];
}

/* One line without its end; what it begins with, or -1. */
static int next_line(struct server *server, FILE *line)
{
	int first = next(server), byte;

	while ((byte = next(server)) != -1 && byte != '\r')
		fputc(byte, line);
	next(server);
	return byte == -1 ? -1 : first;
}

/* One reply; between elements is a newline. */
static void show(struct server *server, FILE *text)
{
	char *rest;
	size_t length;
	FILE *line = open_memstream(&rest, &length);
	int kind = next_line(server, line);
	long count;

	fclose(line);
	count = strtol(rest, NULL, 10);
	if (kind == '$' && count >= 0) {
		for (long i = 0; i < count && server->failed == 0; i++)
			fputc(next(server), text);
		next(server);
		next(server);
	} else if (kind == '*') {
		for (long i = 0; i < count && server->failed == 0; i++) {
			if (i > 0)
				fputc('\n', text);
			show(server, text);
		}
	} else if (kind != '$' && kind != -1) {
		fwrite(rest, 1, length, text);
		if (kind == '-')
			fputc('\n', text);
	}
	free(rest);
}

static void skip(struct server *server)
{
	char *text;
	size_t length;
	FILE *nobody = open_memstream(&text, &length);

	show(server, nobody);
	fclose(nobody);
	free(text);
}

static void say(struct server *server, int count, char *const *words)
{
	char *bytes;
	size_t length, sent = 0;
	FILE *request = open_memstream(&bytes, &length);
	ssize_t size;

	fprintf(request, "*%d\r\n", count);
	for (int i = 0; i < count; i++)
		fprintf(request, "$%zu\r\n%s\r\n", strlen(words[i]), words[i]);
	fclose(request);
	while (sent < length) {
		size = send(server->fd, bytes + sent, length - sent,
			    MSG_NOSIGNAL);
		if (size > 0)
			sent += (size_t)size;
		else if (errno != EINTR)
			break; /* it may have answered before it went */
	}
	free(bytes);
}

/* What it answers, which is to be freed; a status. */
static int ask(const char *path, const char *password, int count,
	       char *const *words, char **answer)
{
	struct server server = {.until = now_ms() + 10000};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length;
	FILE *text = open_memstream(answer, &length);

	server.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	if (connect(server.fd, (struct sockaddr *)&address, sizeof(address)) <
	    0) {
		fprintf(stderr, "ask: %s: %s\n", path, strerror(errno));
		server.failed = 1;
	} else {
		if (password != NULL) {
			say(&server, 2, (char *[]){"AUTH", (char *)password});
			skip(&server);
		}
		say(&server, count, words);
		show(&server, text);
		if (server.failed == 1)
			fprintf(stderr, "ask: %s: the connection ended\n",
				path);
	}
	close(server.fd);
	fclose(text);
	if (server.failed)
		**answer = '\0';
	return server.failed;
}

#ifdef BUILTIN
#include <config.h>

#include <builtins.h>
#include <shell.h>

#include <bashgetopt.h>
#include <common.h>

static SHELL_VAR *get_now(SHELL_VAR *variable)
{
	char now[32];

	snprintf(now, sizeof(now), "%lld", now_ms());
	free(value_cell(variable));
	var_setvalue(variable, savestring(now));
	return variable;
}

static SHELL_VAR *keep(SHELL_VAR *variable, char *value, arrayind_t index,
		       char *key)
{
	(void)value, (void)index, (void)key;
	return variable;
}

int ask_builtin_load(char *name);
int ask_builtin_load(char *name)
{
	SHELL_VAR *now = bind_variable("NOW", NULL, 0);

	(void)name;
	now->dynamic_value = get_now;
	now->assign_func = keep;
	return 1;
}

static int ask_builtin(WORD_LIST *list)
{
	const char *name = NULL, *path;
	char **words, *answer;
	int count = 0, status;
	size_t length;

	if (list != NULL && list->next != NULL &&
	    strcmp(list->word->word, "-v") == 0) {
		name = list->next->word->word;
		list = list->next->next;
	}
	if (list == NULL || list->next == NULL) {
		builtin_usage();
		return EX_USAGE;
	}
	path = list->word->word;
	words = xmalloc(sizeof(*words) * (size_t)list_length(list));
	for (list = list->next; list != NULL; list = list->next)
		words[count++] = list->word->word;
	status = ask(path, get_string_value("REDISCLI_AUTH"), count, words,
		     &answer);
	xfree(words);
	length = strlen(answer);
	if (name == NULL && status == 0) {
		puts(answer);
		if (fflush(stdout) != 0)
			status = 1;
	} else if (name != NULL) {
		while (length > 0 && answer[length - 1] == '\n')
			answer[--length] = '\0';
		bind_variable(name, answer, 0);
	}
	free(answer);
	return status;
}

static char *ask_doc[] = {"What a server answers.", NULL};

struct builtin ask_struct = {
	.name = "ask",
	.function = ask_builtin,
	.flags = BUILTIN_ENABLED,
	.long_doc = ask_doc,
	.short_doc = "ask [-v NAME] SOCKET WORD ...",
};

#else

int main(int argc, char **argv)
{
	char *answer;
	int status;

	if (argc < 3) {
		fputs("usage: ask SOCKET WORD ...\n", stderr);
		return 64;
	}
	status = ask(argv[1], getenv("REDISCLI_AUTH"), argc - 2, argv + 2,
		     &answer);
	if (status == 0)
		puts(answer);
	return status;
}
#endif
