/*
 * Redis servers, and the network between them and the processes.
 *
 * A connection is two streams of bytes, in order, as TCP's: what is lost comes later,
 * unless the connection is cut silently. Each link, from a client's host to a server, has
 * a distance and a jitter of its own. A link that is cut lets nothing through, in one
 * direction or in both, until it is mended; what was sent meanwhile comes after that.
 *
 * A server executes what it reads at once, one request after the other. One that is
 * stopped reads nothing; its kernel still accepts connections and what they send. One
 * that was killed refuses them, and one without power says nothing at all. One that
 * executes a client's script (BUSY) refuses all that redlock asks but AUTH; one that still
 * loads its data (LOADING) tells who it is, and lets others subscribe.
 */
#ifndef NETWORK_H
#define NETWORK_H

#include <stdio.h>

#include "store.h"
#include "world.h"

#define NODES_MOST 7
#define HOSTS_MOST 64
#define FD_FIRST 1000 /* of connections and events */

enum persistence { KEEPS_NOTHING, KEEPS_SOON, KEEPS_ALWAYS };

/* A lock's requests, as far as faults aim at them. */
enum request_kind {
	REQUEST_ACQUIRE,
	REQUEST_PUT_BACK,
	REQUEST_MOVE, /* of a token to another slot */
	REQUEST_RAISE,
	REQUEST_EXTEND,
	REQUEST_RELEASE,
	REQUEST_KINDS,
	REQUEST_BREAK = REQUEST_KINDS, /* break --now: no fault aims at it */
	REQUEST_OTHER,
};

extern const char *const request_names[REQUEST_KINDS];

/* How often the link that such a request came by is cut then. It is executed late, or never, or
 * its answer is late. Or the request alone is late, and what is sent by other connections
 * overtakes it. */
struct cuts {
	int64_t rate;    /* per mille */
	int64_t until;   /* us */
	int64_t longest; /* us */
};

struct node {
	size_t number;
	enum persistence keeps;
	struct store *store;
	bool up, stopped, powered;
	unsigned life;    /* how often it was started */
	unsigned losses;  /* how often it has forgotten something */
	int64_t lost;     /* when it last did, or lost a key */
	int64_t set_back; /* when its clock was; 0: never */
	char run_id[41];
	struct clock wall;
	int64_t started;                 /* us, by its wall clock */
	int64_t slowness;                /* us that an answer takes */
	bool busy;                       /* a client's script runs there */
	int64_t busy_until, loads_until; /* us */
	/* the next request: its connection breaks before or after it is executed */
	bool breaks_before, breaks_after;
	bool breaks_release; /* after the next release */
	struct cuts cuts[REQUEST_KINDS];
	struct chance chance;
	char name[12];
};

extern struct node nodes[NODES_MOST];
extern size_t node_count;

struct link {
	int64_t distance, jitter; /* us, one way */
	int64_t late;             /* us more, from the server */
	int64_t lost;             /* per mille */
	int64_t cut[2];           /* until when; to the server, and from it */
	int64_t held;   /* until when a request is late that others overtake */
	int64_t leased; /* when a request may have got a whole lease there */
};

extern struct link links[HOSTS_MOST][NODES_MOST];

/* For a while a host is told of each second connection by which it tries to get a key that it is
 * reset, but its server is not: what was sent comes late, after what the host sends meanwhile by others. */
struct straying {
	int64_t until;         /* us: so long it is so */
	int64_t come;          /* us: when all that comes */
	bool last[NODES_MOST]; /* was one */
};

extern struct straying straying[HOSTS_MOST];

/* Which there are. uptime: us */
void network_begin(uint64_t seed, size_t count);
void network_boot(struct node *node, int64_t uptime);

/* --- faults ----------------------------------------------------------------- */

void node_stop(struct node *node);
void node_continue(struct node *node);
void node_kill(struct node *node, bool power);
/* data: what it finds; NULL: nothing. Taken over. */
void node_restart(struct node *node, struct store *data);
/* Another client's script runs for so long (us), and longer than busy-reply-threshold. */
void node_occupy(struct node *node, int64_t lasts);
/* It loads its data for so long (us). */
void node_load(struct node *node, int64_t lasts);
void network_reset(size_t host, size_t node);  /* all connections, loudly */
void network_forget(size_t host, size_t node); /* ... silently: half-open */

int64_t node_now(const struct node *node); /* us since 1970 */

/* Called before a server executes such a request for this key, if not NULL. The token is
 * drawn for each request, whose connection often breaks after it. */
extern void (*network_before_break)(struct node *node, struct word key,
				    struct word token);

/* Called when a server has granted a key to an attempt, with this fence, if not NULL. */
extern void (*network_after_grant)(struct node *node, size_t host,
				   struct word record, int64_t fence);

/* Called when the answer to an attempt to get a key, by this token, has come to a client, if not
 * NULL. asked: us: when the server did it. */
extern void (*network_after_answer)(size_t host, size_t node, const char *token,
				    int64_t asked);

/* Where to write what happens at server 0 (record.h), or NULL; and what does to its
 * data from elsewhere. */
extern FILE *network_record;
void network_note_loss(struct node *node, bool data);

/* --- for processes ---------------------------------------------------------- */

struct connection;

int network_connect(size_t node);
struct connection *network_connection(int fd); /* NULL: no such thing */
void network_close(int fd, bool reset);
void network_close_all(struct process *process);
size_t network_open(const struct process *process); /* connections */

enum link_state { LINK_CONNECTING, LINK_UP, LINK_FAILED };
enum link_state network_state(int fd, int *error);

/* As recv(2) and send(2). */
long network_receive(int fd, void *data, size_t size);
long network_send(int fd, const void *data, size_t size);

/* What poll(2) would say; the fiber is woken when that changes. */
short network_ready(int fd, short events, struct fiber *fiber);

/* An eventfd(2). */
int network_event(void);
void network_signal(int fd);

#endif
