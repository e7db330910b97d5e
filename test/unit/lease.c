/* The arithmetic of a lease, beside redlock-protocol(7). */
#include "base/lease.h"

#include <inttypes.h>

#include "check.h"

#define EQUAL(value, expected)                                         \
	do {                                                           \
		int64_t is = (value);                                  \
		CHECK(is == (expected), "%s is %" PRId64, #value, is); \
	} while (0)

static void test_table(void)
{
	EQUAL(lease_drift(30000), 302);
	EQUAL(lease_validity(30000), 29698);
	EQUAL(lease_renewal(30000), 10000);
	EQUAL(lease_retry(30000), 3000);
	EQUAL(lease_late(30000), 15000);
	EQUAL(lease_outage(30000), 15000);
	EQUAL(lease_for_outage(15000), 30000);
	EQUAL(lease_first(30000), 3000);
	EQUAL(lease_first(2000), 2000);
	EQUAL(lease_unconfirmed(3000), 1500);
	EQUAL(lease_heartbeat(30000), 5000);
	EQUAL(lease_heartbeat(3000), 1000);
	EQUAL(lease_margin(30000), 600);
	EQUAL(lease_margin(1000), 100);
	EQUAL(lease_server_timeout(30000), 1000);
	EQUAL(lease_server_timeout(3000), 500);
	EQUAL(lease_server_timeout(3), 1);
	EQUAL(lease_kill_after(60000), 5000);
	EQUAL(lease_kill_after(3000), 500);
	EQUAL(lease_quarantine(3000), 60000);
	EQUAL(lease_quarantine(90000), 90000);
	EQUAL(lease_need(30000, 5000, 1000), 302 + 600 + 5000 + 2000);
	EQUAL(lease_validity_needed(30000, 5000, 1000), 600 + 5000 + 500);
	EQUAL(lease_validity_needed(3000, 500, 200), 100 + 500 + 200);
}

static void test_times(void)
{
	struct deadline valid = deadline_at(100000);
	struct lease_times whole = lease_times(valid, 30000, 30000, 5000);
	struct lease_times first = lease_times(valid, 3000, 30000, 5000);

	EQUAL(whole.kill.at, 100000 - 600);
	EQUAL(whole.term.at, 100000 - 600 - 5000);
	EQUAL(whole.end.at, 100000);
	EQUAL(first.kill.at, 100000 - 100);
	EQUAL(first.term.at, 100000 - 100 - 500);
	first = lease_times(valid, 3000, 30000, 200);
	EQUAL(first.term.at, 100000 - 100 - 200);
}

static void test_renewal_due(void)
{
	struct deadline due = deadline_at(10000);

	EQUAL(lease_renewal_due(due, 0, deadline_at(24098)).at, 10000);
	EQUAL(lease_renewal_due(due, 0, deadline_at(9098)).at, 4549);
	EQUAL(lease_renewal_due(due, 5000, deadline_at(9000)).at, 7000);
	EQUAL(lease_renewal_due(deadline_at(5100), 5000, deadline_at(9000)).at,
	      5100);
}

/* However long COMMAND may take to stop: if the ttl is accepted, the lease is renewed
 * before it is time for SIGTERM, by as much as a round may take. */
static void check_in_time(int64_t ttl, int64_t kill_after, int64_t timeout)
{
	struct deadline valid = deadline_at(lease_validity(ttl));
	struct deadline term = lease_times(valid, ttl, ttl, kill_after).term;
	struct deadline due =
		lease_renewal_due(deadline_at(lease_renewal(ttl)), 0, term);

	CHECK(ttl <= lease_need(ttl, kill_after, timeout) ||
		      (due.at > 0 && due.at + timeout <= term.at),
	      "%" PRId64 ", %" PRId64 ", %" PRId64, ttl, kill_after, timeout);
}

static void test_renewed_in_time(void)
{
	for (int64_t ttl = 1000; ttl <= LEASE_LONGEST; ttl *= 2)
		for (int64_t k = 0; k < ttl; k += ttl / 50) {
			check_in_time(ttl, k, 1);
			check_in_time(ttl, k, lease_server_timeout(ttl));
			check_in_time(ttl, k, (ttl - k) / 3);
			check_in_time(ttl, k, ttl / 3);
		}
	for (int64_t ttl = 1000; ttl <= LEASE_LONGEST; ttl += 1 + ttl / 50) {
		struct lease_times times =
			lease_times(deadline_at(lease_validity(ttl)), ttl, ttl,
				    lease_kill_after(ttl));
		struct deadline due = deadline_at(lease_renewal(ttl));

		CHECK(lease_renewal_due(due, 0, times.term).at == due.at,
		      "not the default: %" PRId64, ttl);
	}
}

/* What holds for every ttl that can be set. */
static void test_every_ttl(void)
{
	for (int64_t ttl = lease_shortest(); ttl <= LEASE_LONGEST;
	     ttl += 1 + ttl / 50) {
		CHECK(lease_validity(ttl) > 0, "%" PRId64, ttl);
		CHECK(lease_validity(ttl) < ttl, "%" PRId64, ttl);
		CHECK(lease_first(ttl) <= ttl, "%" PRId64, ttl);
		CHECK(lease_heartbeat(ttl) <= lease_renewal(ttl), "%" PRId64,
		      ttl);
		CHECK(lease_validity_needed(ttl, 0, 1000) <=
			      lease_need(ttl, 0, 1000),
		      "%" PRId64, ttl);
		/* a renewal that ends within a round's time is not late */
		CHECK(lease_renewal(ttl) + lease_server_timeout(ttl) <=
			      ttl - lease_late(ttl) + 1,
		      "%" PRId64, ttl);
		/* the outage begins just before a renewal */
		CHECK(ttl < 1000 ||
			      lease_renewal(ttl) + lease_outage(ttl) <=
				      lease_validity(ttl) - lease_margin(ttl),
		      "%" PRId64, ttl);
		CHECK(lease_for_outage(lease_outage(ttl)) <= ttl, "%" PRId64,
		      ttl);
		CHECK(lease_quarantine(ttl) >= ttl, "%" PRId64, ttl);
	}
	CHECK(lease_validity(lease_shortest() - 1) <= 0, "not the shortest");
}

/* The defaults leave the time for two rounds, from a ttl of a second on. */
static void test_defaults(void)
{
	for (int64_t ttl = 1000; ttl <= LEASE_LONGEST; ttl += 1 + ttl / 50)
		CHECK(lease_need(ttl, lease_kill_after(ttl),
				 lease_server_timeout(ttl)) < ttl,
		      "%" PRId64, ttl);
}

int main(void)
{
	test_table();
	test_times();
	test_renewal_due();
	test_renewed_in_time();
	test_every_ttl();
	test_defaults();
	return check_result();
}
