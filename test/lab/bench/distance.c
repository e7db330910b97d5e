/*
 * distance: a network with a delay, between two network namespaces.
 *
 *	distance MICROSECONDS NEAR FAR
 *
 * NEAR and FAR are processes; the namespaces that they are in get an interface
 * `wire` each, with the addresses 10.9.0.1 and 10.9.0.2, and every packet is
 * held for MICROSECONDS on its way from one to the other: a connection's
 * first one too, as the proxy of test/lab/stress/delay.c cannot.  The order is kept,
 * and nothing is lost.  The interface at NEAR is up last; then all is ready.
 */
#define _GNU_SOURCE 1

#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <arpa/inet.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PACKET 2048 /* more than the interfaces' 1500 */

struct packet {
	struct packet *next;
	int64_t due;
	size_t length;
	char data[PACKET];
};

/* From one interface to the other. */
struct direction {
	int from, to;
	struct packet *first, **last;
};

static int64_t delay;

static int64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void request(int fd, unsigned long what, struct ifreq *interface)
{
	if (ioctl(fd, what, interface))
		err(71, "%s", interface->ifr_name);
}

static void set_address(int fd, unsigned long what, const char *text)
{
	struct ifreq interface = {.ifr_name = "wire"};
	struct sockaddr_in address = {.sin_family = AF_INET};

	inet_pton(AF_INET, text, &address.sin_addr);
	memcpy(&interface.ifr_addr, &address, sizeof(address));
	request(fd, what, &interface);
}

static void bring_up(int fd, const char *name)
{
	struct ifreq interface = {.ifr_flags = 0};

	strncpy(interface.ifr_name, name, IFNAMSIZ - 1);
	request(fd, SIOCGIFFLAGS, &interface);
	interface.ifr_flags = (short)(interface.ifr_flags | IFF_UP);
	request(fd, SIOCSIFFLAGS, &interface);
}

/* An interface in the namespace of this process. */
static int end_open(const char *process, const char *own, const char *other)
{
	struct ifreq interface = {.ifr_name = "wire",
				  .ifr_flags = IFF_TUN | IFF_NO_PI};
	char path[64];
	int namespace, control, tun;

	snprintf(path, sizeof(path), "/proc/%s/ns/net", process);
	namespace = open(path, O_RDONLY | O_CLOEXEC);
	if (namespace < 0 || setns(namespace, CLONE_NEWNET))
		err(71, "%s", path);
	close(namespace);
	/* the namespace of an interface is the one in which this was opened */
	tun = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (tun < 0 || control < 0)
		err(71, "/dev/net/tun");
	request(tun, TUNSETIFF, &interface);
	set_address(control, SIOCSIFADDR, own);
	set_address(control, SIOCSIFDSTADDR, other);
	bring_up(control, "lo");
	bring_up(control, "wire");
	close(control);
	return tun;
}

static void take_in(struct direction *way)
{
	for (;;) {
		struct packet *packet = malloc(sizeof(*packet));
		ssize_t got;

		if (packet == NULL)
			err(71, "malloc");
		got = read(way->from, packet->data, PACKET);
		if (got <= 0) {
			free(packet);
			return;
		}
		packet->next = NULL;
		packet->due = now() + delay;
		packet->length = (size_t)got;
		*way->last = packet;
		way->last = &packet->next;
	}
}

static void let_out(struct direction *way)
{
	while (way->first != NULL && way->first->due <= now()) {
		struct packet *packet = way->first;

		if (write(way->to, packet->data, packet->length) < 0 &&
		    errno == EAGAIN)
			return;
		way->first = packet->next;
		if (way->first == NULL)
			way->last = &way->first;
		free(packet);
	}
}

static void serve(struct direction ways[2])
{
	for (;;) {
		struct pollfd polled[2];
		struct timespec pause;
		int64_t wait = INT64_MAX, at = now();

		for (int i = 0; i < 2; i++) {
			polled[i] = (struct pollfd){.fd = ways[i].from,
						    .events = POLLIN};
			if (ways[i].first == NULL)
				continue;
			if (ways[i].first->due - at < wait)
				wait = ways[i].first->due - at;
		}
		if (wait < 0)
			wait = 0;
		pause.tv_sec = (time_t)(wait / 1000000000);
		pause.tv_nsec = (long)(wait % 1000000000);
		ppoll(polled, 2, wait == INT64_MAX ? NULL : &pause, NULL);
		for (int i = 0; i < 2; i++) {
			if (polled[i].revents != 0)
				take_in(&ways[i]);
			let_out(&ways[i]);
		}
	}
}

int main(int argc, char *argv[])
{
	struct direction ways[2] = {0};
	int near, far;

	if (argc != 4)
		errx(64, "usage: distance MICROSECONDS NEAR FAR");
	delay = atoll(argv[1]) * 1000;
	/* it is to be late as little as can be, or it would be the delay */
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	if (setpriority(PRIO_PROCESS, 0, -10))
		warn("setpriority");
	far = end_open(argv[3], "10.9.0.2", "10.9.0.1");
	near = end_open(argv[2], "10.9.0.1", "10.9.0.2");
	ways[0] = (struct direction){.from = near, .to = far};
	ways[1] = (struct direction){.from = far, .to = near};
	for (int i = 0; i < 2; i++)
		ways[i].last = &ways[i].first;
	serve(ways);
}
