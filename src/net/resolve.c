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

#include "base/signals.h"
#include "base/title.h"

/* Shared by the caller and the thread; the last of the two frees it. */
struct resolve {
	pthread_mutex_t mutex;
	bool done, abandoned;
	int readable, writable; /* a pipe: closed at its far end once done */
	int result;             /* getaddrinfo's */
	struct addresses addresses;
	char port[8];
	char host[];
};

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

static void resolve_free(struct resolve *resolve)
{
	pthread_mutex_destroy(&resolve->mutex);
	close(resolve->readable);
	free(resolve);
}

static void *look_up_thread(void *argument)
{
	struct resolve *resolve = argument;
	struct addresses addresses = {0};
	bool abandoned;
	int result = look_up(resolve->host, resolve->port, AI_ADDRCONFIG,
			     &addresses);

	title_allow();
	pthread_mutex_lock(&resolve->mutex);
	resolve->result = result;
	resolve->addresses = addresses;
	resolve->done = true;
	abandoned = resolve->abandoned;
	close(resolve->writable);
	pthread_mutex_unlock(&resolve->mutex);
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

struct resolve *resolve_start(const char *host, uint16_t port)
{
	struct resolve *resolve =
		calloc(1, sizeof(*resolve) + strlen(host) + 1);
	int ends[2], result;

	if (resolve == NULL)
		return NULL;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
		free(resolve);
		return NULL;
	}
	pthread_mutex_init(&resolve->mutex, NULL);
	resolve->readable = ends[0];
	resolve->writable = ends[1];
	snprintf(resolve->port, sizeof(resolve->port), "%u", port);
	memcpy(resolve->host, host, strlen(host) + 1);
	result = thread_start(resolve);
	if (result != 0) {
		close(resolve->writable);
		resolve_free(resolve);
		errno = result;
		return NULL;
	}
	return resolve;
}

int resolve_fd(const struct resolve *resolve)
{
	return resolve->readable;
}

const char *resolve_finish(struct resolve *resolve, struct addresses *addresses)
{
	const char *why = NULL;

	pthread_mutex_lock(&resolve->mutex);
	if (resolve->result != 0)
		why = gai_strerror(resolve->result);
	else if (resolve->addresses.count == 0)
		why = "the name has no address";
	else
		*addresses = resolve->addresses;
	pthread_mutex_unlock(&resolve->mutex);
	resolve_free(resolve);
	return why;
}

void resolve_abandon(struct resolve *resolve)
{
	bool done;

	pthread_mutex_lock(&resolve->mutex);
	resolve->abandoned = true;
	done = resolve->done;
	pthread_mutex_unlock(&resolve->mutex);
	if (done)
		resolve_free(resolve);
}
