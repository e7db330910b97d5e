/*
 * What a seed stands for: servers, keys, clients, and the faults that befall them.
 *
 * Storms, in which faults come and go, alternate with calm stretches. When a calm
 * stretch has begun, the world is given the time to settle: leases end, servers that
 * were restarted get their vote. From then on whoever waits must get KEY within a bound.
 *
 * The faults stay within what redlock promises (redlock-protocol(7), Servers that
 * forget):
 *  - A single server keeps its data.
 *  - Of several servers one forgets when enum forgetting allows it. Except with
 *    FORGETS_TOLD, a server that is up is emptied, or loses a key, only if all others
 *    have had a record of each key for longer than two ttls, and all users of a key have
 *    the same ttl: one that has not heard of a longer ttl would not wait for its end.
 *  - Clocks run at rates that differ by less than the drift. The wall clocks of clients
 *    are set at will. Those of servers are set back at most, while no key is held there: a
 *    lease would last for longer.
 *  - In some runs the users of a key have different ttls. With several servers the
 *    quarantine is at least the longest ttl, except with FORGETS_TOLD.
 *  - COMMAND ends when the guard says so: at the end of validity at the latest.
 *  - Who takes a key away by force (break --now) lets others run beside its holders, so
 *    those are not judged by exclusion from then on, but their fences are.
 */
#ifndef PLAN_H
#define PLAN_H

#include "lock/lock.h"
#include "network.h"

#define KEYS_MOST 3
#define CLIENTS_MOST 50
#define FAULTS_MOST 200
#define PERMITS_DRAWN 4

struct key_plan {
	char name[8];
	enum kind kind;  /* of those who use it; exclusive: some may share it */
	int64_t permits; /* 1 to PERMITS_DRAWN */
	bool mixed;      /* some of its users share it */
	int64_t ttl;     /* ms, as all times below; the longest of its users */
	int64_t once_in; /* 0: without --once-in */
	int64_t remember; /* -1: without --remember */
	size_t users;     /* those who may wait for it */
};

struct client_plan {
	size_t key;
	size_t also[KEYS_MOST - 1], also_count; /* with it, all or none */
	enum kind kind;
	int64_t ttl;
	int64_t timeout; /* of a round */
	int64_t kill_after;
	int64_t quarantine;
	int64_t think, hold; /* ms, at most */
	int64_t limit;       /* ms; -1: it waits for ever */
	bool nonblock, poll;
	int64_t min_hold;
	bool forces; /* in a storm it takes its key away from others (break --now) */
	bool plain;  /* it has a short --remember, and no --once-in */
	bool script; /* acquire, extend, release: nobody renews it */
	bool dropped;
};

enum fault_kind {
	FAULT_CUT,       /* a link, both ways or one */
	FAULT_CUT_HOST,  /* all links of a host */
	FAULT_CUT_NODE,  /* all links of a server */
	FAULT_SLOW_LINK, /* far away for a while */
	FAULT_LOSS,
	FAULT_LATE, /* a client's answers; once it holds KEY, it is cut off. Or only that */
	FAULT_RESET,
	FAULT_FORGOTTEN, /* half-open connections */
	FAULT_STOP,      /* a server */
	FAULT_RESTART,   /* with its data */
	FAULT_POWER,     /* the same, and nobody is told */
	FAULT_AMNESIA,   /* restarted empty, or as it was a while ago */
	FAULT_EMPTIED,   /* while it is up */
	FAULT_EVICTED,   /* it loses a key or its record, but not both */
	FAULT_BREAK,     /* a connection, before or after a request */
	FAULT_SLOW_NODE,
	FAULT_PAUSE, /* a client, at any moment or between two calls */
	FAULT_KILL,
	FAULT_WALL,    /* a client's wall clock is set */
	FAULT_REQUEST, /* a link is cut at a request: only if plan.cuts */
	FAULT_STRAY, /* a client's requests, until it has been paused: only if plan.strays */
	FAULT_BUSY, /* one server, most or all execute a client's script: only if
		     * plan.refuses */
	FAULT_KINDS,
};

extern const char *const fault_names[FAULT_KINDS];

struct fault {
	enum fault_kind kind;
	int64_t at, lasts;         /* us */
	enum request_kind request; /* FAULT_REQUEST */
	size_t host, node;
	int64_t detail;
	bool aims; /* it waits until somebody holds a key, and befalls that client */
	bool armed; /* it does so now */
	bool dropped;
};

struct stretch {
	int64_t begins;  /* us: the last fault is over */
	int64_t settled; /* from then on liveness is judged */
	int64_t ends;
};

#define STRETCHES_MOST 4

enum forgetting {
	/* A server may forget while all others know the fences of all keys: not before
	 * the last one that forgot has caught up. */
	FORGETS_CAUGHT_UP,
	/* Any number of servers may be restarted without their data, at any time.
	 * Exclusion is judged all the same, as the quarantine is as long as any ttl, but
	 * fences are not. */
	FORGETS_AT_ANY_TIME,
	/* Any number may forget, at any time, as long as another server knows all
	 * holders that they know; while they are up, one in a little more than the
	 * longest ttl. The quarantine of each client is its own ttl, so it depends on
	 * what the other server tells it. Therefore nothing delays an answer: the servers
	 * are near, and no network fails. Fences are not judged. */
	FORGETS_TOLD,
};

/* One client holds a key for long, by a bare quorum: it never reaches the other servers.
 * While it does, a server of that quorum forgets, and others want the key, whose ttls are
 * shorter. The server that still knows the holder tells them (FORGETS_TOLD). Or it is
 * out of their reach; then the quarantine is the default, which is longer than any ttl. Or
 * all servers but that one are emptied at once, so that their records are equally young;
 * then the quarantine is as long as any ttl, and so are records old that tell of nobody; and that one
 * may be slow from then on. So it is
 * if the key is new, and a server forgets within a second. */
struct hiding {
	size_t holder;
	bool away[NODES_MOST]; /* servers that it does not reach */
	bool silent; /* the server that knows it is out of reach of the others */
	bool anew;   /* all servers but that one forget at once */
	int64_t slow; /* us: that one then takes so long to answer */
	bool early;   /* while its first record is young */
};

struct plan {
	uint64_t seed;
	size_t servers, keys, clients, faults, stretches;
	int64_t quarantine; /* ms; the longest of the clients' */
	enum forgetting forgetting;
	bool hides; /* the faults are as struct hiding has it, and no others */
	struct hiding hiding;
	bool away[NODES_MOST]; /* a minority of the servers, all the time */
	bool away_stopped; /* they accept connections, and never answer; else no packet
			    * passes */
	bool crowds; /* the clients come at the same moment, again and again, as cron
		      * starts a job on many hosts, and most do not wait: each time
		      * somebody has to run */
	bool sites; /* clients and servers are at two sites, and all rush at the keys */
	bool strays; /* some wait for a second key while what they have asked for the first may
		      * come again, and are paused until others have had that */
	bool cuts; /* links are cut at requests, of each kind as often as drawn; and some
		    * wall clocks are fast by hours, so that servers count fences */
	bool uneven;  /* the users of a key have different ttls */
	bool several; /* some clients want several keys at once */
	bool breaks; /* now and then a client asks the holders to stop instead */
	bool agrees; /* the wall clocks of clients are never set: fences rise by them */
	bool patient; /* --kill-after may be nearly as long as the ttl */
	bool flushes; /* servers forget scripts (SCRIPT FLUSH), even while it is calm */
	bool set_back; /* the clocks of some servers, once */
	bool steps; /* ... and those of all servers at once, by some seconds, while it is calm and
		     * others wait in line */
	bool boots; /* hosts are restarted between a client's runs */
	bool refuses; /* servers refuse all for a time: while they execute a client's
		       * script (BUSY), and when they were restarted (LOADING) */
	bool fresh; /* all servers are restarted without their data, and refuse all soon
		     * after: in the midst of the quarantine */
	bool begins_calm; /* all keys are new, and nothing befalls anybody yet */
	bool peace; /* clients come at the same moment, again and again, mostly to keys
		     * that no server has heard of within a week, and nothing befalls
		     * anybody; or only mishaps do. It counts as calm */
	bool mishaps; /* some are killed there, and servers emptied; records become old */
	bool records; /* there servers lose records, but not the keys, and requests of owners
		       * arrive twice: whose holds are counted. Fences are not judged */
	bool renews; /* in some of these they have the key for long, and renew it */
	bool partial; /* each client cannot reach one server, not the same for all */
	bool twice; /* owners are several there, and scripts, and releases arrive twice */
	bool watches; /* many clients take nothing there (redlock wait), and a server is stopped
		       * now and then while others have the key */
	int64_t deserted; /* us: then, from when on nobody else comes; most servers are emptied
			   * after that. INT64_MAX: never */
	int64_t apart; /* us: then, at most */
	struct key_plan key[KEYS_MOST];
	struct client_plan client[CLIENTS_MOST];
	struct fault fault[FAULTS_MOST];
	struct stretch stretch[STRETCHES_MOST];
};

extern struct plan plan;
extern bool plan_permits; /* --permits: all keys have two or more */
extern bool plan_several; /* --several: some clients want several keys */
extern bool
	plan_crowds; /* --crowds: many clients come at once, to several servers */
extern bool plan_peace; /* --peace: plan.peace */

/* servers: 0: as the seed has it */
void plan_draw(uint64_t seed, size_t servers);

/* Servers, links, clocks, and all faults that are not dropped. */
void plan_begin(void);

void plan_print(void);

/* The i-th key that a client wants, and whether it wants that one. */
size_t plan_wanted(size_t client, size_t i);
bool plan_wants(size_t client, size_t key);

/* The longest that a waiter of this key may wait in a calm stretch, us. */
int64_t plan_bound(size_t key);

/* Whether nothing has befallen the client since then, nor this server, nor the link between
 * them. */
bool plan_is_well(size_t client, size_t node, int64_t since);

/* Whether so it is with most of the servers, and these have votes. */
bool plan_is_whole(size_t client, int64_t since);

/* Whether a server has known the key for longer than two leases. */
bool plan_has_old_record(size_t node, size_t key);

/* The longest way from a client to a server now, us. */
int64_t plan_way(void);

/* Whether answers come well within the rounds of this client. */
bool plan_is_near(size_t client);

/* Whether they do so if it has to connect, to ask, and to ask what it may do there. */
bool plan_is_nearer(size_t client);

/* If some clients want several keys: how long (us) all may wait while it is calm and
 * nobody runs. (If they waited in a circle, it would last until leases end.) INT64_MAX:
 * no client wants several, servers are too far away for such a bound, or those who are killed leave
 * leases even now. */
int64_t plan_idle(void);

/* The longest that a key may be free while it is calm and somebody waits for it, us. */
int64_t plan_free(void);

/* The longest (us) that a client may wait while there is peace, and a quorum of servers has
 * nothing for others: less than two heartbeats, after which all are asked again. It may be
 * those, too, if so many servers are away that each who waits needs the votes of all others: then
 * votes split often, and each time for a random pause. */
int64_t plan_needless(size_t client);

/* The same for one that takes nothing, if it is not known how old the records are. */
int64_t plan_needless_young(size_t client);

/* This client holds its key: what was armed befalls it soon. */
void plan_held(size_t client);

/* COMMAND of this client has succeeded, and --once-in counts that: the servers are often busy just
 * then, if plan.refuses. */
void plan_succeeds(size_t client);

/* Whether it is cut off once it holds its key: COMMAND is to last until its guard ends it. */
bool plan_is_late(size_t client);

/* Whether a server has forgotten its scripts lately: then what a redlock sends as it ends may come
 * to nothing (server.h). */
bool plan_has_flushed(size_t node);

/* Whether a client takes its key away from others now. */
bool plan_forces(size_t client);

/* Whether a storm goes on. */
bool plan_storms(void);

/* When it wants its key again. */
int64_t plan_return(size_t client, struct chance *chance);

/* How many faults have been, of each kind. */
extern size_t plan_faults[FAULT_KINDS];

#endif
