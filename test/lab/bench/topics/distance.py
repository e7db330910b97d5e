"""one server near, two far away, and ten loops that want one lock"""
import time

from lab import HOME, REDLOCK, Crowd, Server, marks, median, share, tool

FAR = 80, 200  # ms, the round trips of the second and the third server
LOOPS, SECTION = 10, 5  # how many, and ms that each holds the lock
# a loop of runs until a moment (s since 1970); the options are a run's
LOOP = ('end=$1; shift; while [ "$(date +%s)" -lt "$end" ]; do "$@" || exit; '
        'done')


def run(report, times):
    servers = [Server() for _ in range(3)]
    urls = [servers[0].url()] + [
        server.delayed(rtt * 500, rtt * 500)
        for server, rtt in zip(servers[1:], FAR)]
    crowd, begin = Crowd(urls), time.time()
    end = int(begin) + 2 + times(28)
    paths = [f"{HOME}/distance.{i}" for i in range(LOOPS)]
    for path in paths:
        # these were started just now, and would have no vote
        crowd.spawn(path, "/bin/sh", "-c", LOOP, "loop", str(end), REDLOCK,
                    "run", "--quarantine", "0", "-w", "60s", "lock",
                    tool("mark"), "-d", str(SECTION * 1000), path)
    failed = sum(status != 0
                 for _, _, status, _ in crowd.finish(times(28) + 90, "loops"))
    for server in servers:
        server.kill()
    if failed:
        raise RuntimeError(f"{failed} loops failed: {crowd.complaints()[:1]}")
    of_each = [marks(path) for path in paths]
    found = sorted((mark for each in of_each for mark in each),
                   key=lambda mark: mark.start)
    overs = [(after.start - before.end) / 1000
             for before, after in zip(found, found[1:])]
    counts = [len(each) for each in of_each]
    mean = sum(counts) / LOOPS
    report.table(
        f"{LOOPS} loops of sections of {SECTION} ms, servers at 0, "
        f"{FAR[0]} and {FAR[1]} ms: a command's end to the next one's start",
        [{"": "redlock", "count": len(overs), "p50 ms": median(overs),
          "p90 ms": share(overs, 0.9), "p99 ms": share(overs, 0.99),
          "fewest sections of a loop": min(counts),
          "mean": mean, "most": max(counts)}])
    report.goal(f"p50, round trips of {FAR[0]} ms", median(overs) / FAR[0],
                1.2)
    report.goal("half of the mean, x the fewest sections of a loop",
                mean / 2 / max(1, min(counts)), 1)
