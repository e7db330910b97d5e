#include "base/lease.h"

#define MARGIN_LEAST 100
#define FIRST_LEASE 3000
#define HEARTBEAT_LONGEST 5000
#define TIMEOUT_LONGEST 1000
#define KILL_AFTER_LONGEST 5000
#define FIRST_ROUND 500
#define QUARANTINE_LEAST 60000

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

int64_t lease_drift(int64_t ttl)
{
	return ttl / 100 + 2;
}

int64_t lease_validity(int64_t ttl)
{
	return ttl - lease_drift(ttl);
}

int64_t lease_shortest(void)
{
	return lease_drift(1) + 1;
}

int64_t lease_renewal(int64_t ttl)
{
	return ttl / 3;
}

struct deadline lease_renewal_due(struct deadline due, int64_t started,
				  struct deadline term)
{
	return deadline_earlier(due,
				deadline_at(started + (term.at - started) / 2));
}

int64_t lease_retry(int64_t lease)
{
	return lease / 10;
}

int64_t lease_late(int64_t ttl)
{
	return ttl / 2;
}

int64_t lease_outage(int64_t ttl)
{
	return ttl / 2;
}

int64_t lease_for_outage(int64_t outage)
{
	return 2 * outage;
}

int64_t lease_first(int64_t ttl)
{
	return smaller(ttl, FIRST_LEASE);
}

int64_t lease_unconfirmed(int64_t lease)
{
	return lease / 2;
}

int64_t lease_heartbeat(int64_t ttl)
{
	return smaller(ttl / 3, HEARTBEAT_LONGEST);
}

int64_t lease_for_slow_servers(int64_t ttl)
{
	return ttl / 2;
}

int64_t lease_for_names(int64_t ttl)
{
	return ttl / 8;
}

int64_t lease_margin(int64_t lease)
{
	return larger(lease / 50, MARGIN_LEAST);
}

struct lease_times lease_times(struct deadline valid, int64_t lease,
			       int64_t ttl, int64_t kill_after)
{
	int64_t kill = valid.at - lease_margin(lease);

	if (lease < ttl)
		kill_after = smaller(kill_after, lease / 6);
	return (struct lease_times){deadline_at(kill - kill_after),
				    deadline_at(kill), valid};
}

struct lease_times lease_times_earlier(struct lease_times one,
				       struct lease_times other)
{
	return (struct lease_times){deadline_earlier(one.term, other.term),
				    deadline_earlier(one.kill, other.kill),
				    deadline_earlier(one.end, other.end)};
}

int64_t lease_need(int64_t ttl, int64_t kill_after, int64_t server_timeout)
{
	return lease_drift(ttl) + lease_margin(ttl) + kill_after +
	       2 * server_timeout;
}

int64_t lease_validity_needed(int64_t ttl, int64_t kill_after,
			      int64_t server_timeout)
{
	return lease_margin(ttl) + kill_after +
	       smaller(server_timeout, FIRST_ROUND);
}

int64_t lease_server_timeout(int64_t ttl)
{
	return larger(smaller(TIMEOUT_LONGEST, ttl / 6), 1);
}

int64_t lease_kill_after(int64_t ttl)
{
	return smaller(KILL_AFTER_LONGEST, ttl / 6);
}

int64_t lease_quarantine(int64_t ttl)
{
	return larger(ttl, QUARANTINE_LEAST);
}
