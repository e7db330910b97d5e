#include "net/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/deadline.h"
#include "base/signals.h"
#include "base/title.h"

#define APART 1000 /* ms, at least, until a name is looked up again */

/* A name that was looked up. It stays. */
struct name {
	struct name *next;
	unsigned looking;           /* how many look it up */
	int64_t looked;             /* ms; when the last one began */
	struct addresses addresses; /* found last; or none */
	char port[8];
	char host[];
};

/* Shared by the caller and the thread; the last of the two frees it. */
struct resolve {
	struct name *name;
	bool done, abandoned;
	int readable, writable; /* a pipe: closed at its far end once done */
	int result;             /* getaddrinfo's */
	struct addresses addresses;
};

static struct name *names;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of all of them */

static int look_up(const char *host, const char *port, int flags,
		   struct addresses *addresses)
{
	struct addrinfo hints =
				{
					.ai_socktype = SOCK_STREAM,
					.ai_flags = flags | AI_NUMERICSERV,
				},
			*found;
	int result = getaddrinfo(host, port, &hints, &found);

	if (result != 0)
		return result;
	addresses->count = 0;
	for (struct addrinfo *each = found;
	     each != NULL && addresses->count < ADDRESSES_MAX;
	     each = each->ai_next) {
		struct address *address = &addresses->list[addresses->count];

		if (each->ai_addrlen > sizeof(address->socket))
			continue;
		memcpy(&address->socket, each->ai_addr, each->ai_addrlen);
		address->length = each->ai_addrlen;
		addresses->count++;
	}
	freeaddrinfo(found);
	return 0;
}

int resolve_numeric(const char *host, uint16_t port,
		    struct addresses *addresses)
{
	char text[8];

	snprintf(text, sizeof(text), "%u", port);
	return look_up(host, text, AI_NUMERICHOST, addresses) == 0 ? 0 : -1;
}

/* --- names ------------------------------------------------------------------ */

static void lock_names(void)
{
	pthread_mutex_lock(&mutex);
}

static void unlock_names(void)
{
	pthread_mutex_unlock(&mutex);
}

/* The child has no threads. */
static void unlock_names_of_child(void)
{
	for (struct name *name = names; name != NULL; name = name->next)
		name->looking = 0;
	unlock_names();
}

static void register_fork(void)
{
	pthread_atfork(lock_names, unlock_names, unlock_names_of_child);
}

/* NULL without memory. */
static struct name *find_name(const char *host, uint16_t number)
{
	struct name *name = names;
	char port[sizeof(name->port)];

	snprintf(port, sizeof(port), "%u", number);
	while (name != NULL &&
	       (strcmp(name->host, host) != 0 || strcmp(name->port, port) != 0))
		name = name->next;
	if (name != NULL)
		return name;
	name = calloc(1, sizeof(*name) + strlen(host) + 1);
	if (name == NULL)
		return NULL;
	memcpy(name->port, port, sizeof(port));
	memcpy(name->host, host, strlen(host) + 1);
	name->next = names;
	names = name;
	return name;
}

/* --- looking them up ---------------------------------------------------------- */

static void resolve_free(struct resolve *resolve)
{
	close(resolve->readable);
	free(resolve);
}

static void *look_up_thread(void *argument)
{
	struct resolve *resolve = argument;
	struct name *name = resolve->name;
	struct addresses addresses = {0};
	bool abandoned;
	int result = look_up(name->host, name->port, AI_ADDRCONFIG, &addresses);

	title_allow();
	lock_names();
	name->looking--;
	if (addresses.count > 0)
		name->addresses = addresses;
	resolve->result = result;
	resolve->addresses = addresses;
	resolve->done = true;
	abandoned = resolve->abandoned;
	close(resolve->writable);
	unlock_names();
	if (abandoned)
		resolve_free(resolve);
	return NULL;
}

static int thread_start(struct resolve *resolve)
{
	struct signals_mask before;
	pthread_attr_t attributes;
	pthread_t thread;
	int result;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	signals_block_all(&before);
	title_defer(); /* getaddrinfo reads the environment */
	result = pthread_create(&thread, &attributes, look_up_thread, resolve);
	if (result != 0)
		title_allow();
	signals_unblock(&before);
	pthread_attr_destroy(&attributes);
	return result;
}

/* 0, or an errno. */
static int begin(struct resolve *resolve, const char *host, uint16_t port)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int result = ENOMEM;

	pthread_once(&once, register_fork);
	lock_names();
	resolve->name = find_name(host, port);
	if (resolve->name != NULL)
		result = thread_start(resolve);
	if (result == 0) {
		resolve->name->looking++;
		resolve->name->looked = clock_ms();
	}
	unlock_names();
	return result;
}

struct resolve *resolve_start(const char *host, uint16_t port)
{
	struct resolve *resolve = calloc(1, sizeof(*resolve));
	int ends[2], result;

	if (resolve == NULL)
		return NULL;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
		free(resolve);
		return NULL;
	}
	resolve->readable = ends[0];
	resolve->writable = ends[1];
	result = begin(resolve, host, port);
	if (result != 0) {
		close(resolve->writable);
		resolve_free(resolve);
		errno = result;
		return NULL;
	}
	return resolve;
}

struct resolve *resolve_again(const char *host, uint16_t port,
			      struct addresses *addresses)
{
	const struct name *name;
	bool due;

	lock_names();
	name = find_name(host, port);
	due = name != NULL && name->looking == 0 &&
	      clock_ms() - name->looked >= APART;
	if (name != NULL && name->addresses.count > 0)
		*addresses = name->addresses;
	unlock_names();
	return due ? resolve_start(host, port) : NULL;
}

int resolve_fd(const struct resolve *resolve)
{
	return resolve->readable;
}

bool resolve_is_done(struct resolve *resolve)
{
	bool done;

	lock_names();
	done = resolve->done;
	unlock_names();
	return done;
}

const char *resolve_finish(struct resolve *resolve, struct addresses *addresses)
{
	const char *why = NULL;

	lock_names();
	if (resolve->result != 0)
		why = gai_strerror(resolve->result);
	else if (resolve->addresses.count == 0)
		why = "the name has no address";
	else
		*addresses = resolve->addresses;
	unlock_names();
	resolve_free(resolve);
	return why;
}

void resolve_abandon(struct resolve *resolve)
{
	bool done;

	lock_names();
	resolve->abandoned = true;
	done = resolve->done;
	unlock_names();
	if (done)
		resolve_free(resolve);
}
