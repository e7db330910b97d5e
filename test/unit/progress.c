/* When a wait is told of: after 10 s, 1, 5 and 15 min, and each 30 min. */
#include "wait/progress.h"

#include <inttypes.h>

#include "check.h"

#define MINUTE INT64_C(60000)

static void check_after(int64_t waited, int64_t wanted)
{
	int64_t next = progress_after(waited);

	CHECK(next == wanted, "after %" PRId64 " ms: %" PRId64 ", not %" PRId64,
	      waited, next, wanted);
}

int main(void)
{
	static const int64_t times[] = {
		0,           10000,       MINUTE,
		5 * MINUTE,  15 * MINUTE, 30 * MINUTE,
		60 * MINUTE, 90 * MINUTE, 120 * MINUTE,
	};

	for (size_t i = 0; i + 1 < COUNT(times); i++) {
		check_after(times[i], times[i + 1]);
		check_after(times[i + 1] - 1, times[i + 1]);
	}
	check_after(10 * 24 * 60 * MINUTE, 10 * 24 * 60 * MINUTE + 30 * MINUTE);
	return check_result();
}
