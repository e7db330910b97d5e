/*
 * wire: the network between some namespaces and some others, that loses, delays,
 * reorders, repeats and throttles packets as it is told.
 *
 *	wire RULES CLIENT... -- SERVER...
 *
 * Each CLIENT (a namespace's name) gets a TUN device s0, s1, ... to each SERVER,
 * where it is called c0, c1, ...; who started this gives them addresses, once a
 * byte has come on standard output. RULES is a mapped file with two struct rules
 * for each pair: to the server, and back; those of the pair of client i and
 * server j stand at i * (number of servers) + j. A change is felt by the next
 * packet. Packets whose delays differ overtake each other.
 */
#define _GNU_SOURCE 1

#include <linux/if.h>
#include <linux/if_tun.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WAYS_MAX 64
#define QUEUE_MAX 500 /* more packets are lost, as a router would lose them */

struct rules {
	volatile int32_t loss, repeat;  /* parts per million */
	volatile int32_t delay, jitter; /* us; jitter: up to so much more */
	volatile int32_t rate;          /* bytes/s; 0: any */
	int32_t unused[3];
};

struct packet {
	struct packet *next;
	int64_t due;
	ssize_t length;
	char data[];
};

/* One direction; the other one is ways[i ^ 1]. */
static struct way {
	int from, to;
	const struct rules *rules;
	struct packet *first; /* by due */
	int count;
	int64_t busy; /* until when, with a rate */
} ways[WAYS_MAX];

static int way_count;

static int64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static int tun_in(const char *namespace, const char kind, int number)
{
	struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", namespace);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		err(71, "%s", path);
	close(fd);
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%c%d", kind,
		 number);
	fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &request))
		err(71, "/dev/net/tun");
	return fd;
}

static void queue(struct way *way, const char *data, ssize_t length)
{
	const struct rules *rules = way->rules;
	struct packet *packet, **place = &way->first;
	int64_t due = now() + rules->delay;

	if (random() % 1000000 < rules->loss || way->count >= QUEUE_MAX)
		return;
	if (rules->jitter > 0)
		due += random() % rules->jitter;
	if (rules->rate > 0) {
		if (way->busy < due)
			way->busy = due;
		way->busy += length * 1000000 / rules->rate;
		due = way->busy;
	}
	packet = malloc(sizeof(*packet) + (size_t)length);
	if (packet == NULL)
		err(71, "malloc");
	packet->due = due;
	packet->length = length;
	memcpy(packet->data, data, (size_t)length);
	while (*place != NULL && (*place)->due <= due)
		place = &(*place)->next;
	packet->next = *place;
	*place = packet;
	way->count++;
}

static void take_in(struct way *way)
{
	static char data[65536];
	ssize_t length;

	/* nothing but IPv4: what else a device says is not for us */
	while ((length = read(way->from, data, sizeof(data))) > 0) {
		if ((data[0] & 0xf0) != 0x40)
			continue;
		queue(way, data, length);
		if (random() % 1000000 < way->rules->repeat)
			queue(way, data, length);
	}
}

static void let_out(struct way *way)
{
	int64_t at = now();

	while (way->first != NULL && way->first->due <= at) {
		struct packet *packet = way->first;

		way->first = packet->next;
		way->count--;
		/* a device that is down takes none: it is lost */
		(void)!write(way->to, packet->data, (size_t)packet->length);
		free(packet);
	}
}

static _Noreturn void serve(void)
{
	struct pollfd polled[WAYS_MAX];

	for (int i = 0; i < way_count; i++)
		polled[i] = (struct pollfd){ways[i].from, POLLIN, 0};
	for (;;) {
		int64_t wake = INT64_MAX, at;
		struct timespec pause;

		for (int i = 0; i < way_count; i++)
			if (ways[i].first != NULL && ways[i].first->due < wake)
				wake = ways[i].first->due;
		at = now();
		at = wake > at ? wake - at : 0;
		pause.tv_sec = (time_t)(at / 1000000);
		pause.tv_nsec = (long)(at % 1000000 * 1000);
		ppoll(polled, (nfds_t)way_count,
		      wake == INT64_MAX ? NULL : &pause, NULL);
		for (int i = 0; i < way_count; i++) {
			if (polled[i].revents & POLLIN)
				take_in(&ways[i]);
			let_out(&ways[i]);
		}
	}
}

int main(int argc, char *argv[])
{
	int clients = 0, servers, fd;
	const struct rules *rules;

	while (clients + 2 < argc && strcmp(argv[clients + 2], "--") != 0)
		clients++;
	servers = argc - clients - 3;
	if (servers < 1 || clients < 1 || clients * servers * 2 > WAYS_MAX)
		errx(64, "usage: wire RULES CLIENT... -- SERVER...");
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	rules = mmap(NULL, sizeof(*rules) * WAYS_MAX, PROT_READ, MAP_SHARED, fd,
		     0);
	if (fd < 0 || rules == MAP_FAILED)
		err(71, "%s", argv[1]);
	for (int i = 0; i < clients; i++) {
		for (int j = 0; j < servers; j++) {
			int near = tun_in(argv[2 + i], 's', j);
			int far = tun_in(argv[3 + clients + j], 'c', i);

			ways[way_count] = (struct way){near, far};
			ways[way_count + 1] = (struct way){far, near};
			way_count += 2;
		}
	}
	for (int i = 0; i < way_count; i++)
		ways[i].rules = &rules[i];
	if (write(1, "\n", 1) != 1)
		err(71, "standard output");
	serve();
}
