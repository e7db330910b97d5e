"""many locks"""
from lab import Crowd, REDLOCK, Redis, Server, tool
from races import race, rows

# a thousand at once may take longer than a round has
PATIENT = ["-t", "5m", "--server-timeout", "30s"]
COPY = """
for i = 2, tonumber(ARGV[1]) do
    redis.call('COPY', 'lock1', 'lock' .. i)
    redis.call('COPY', '{lock1}:redlock', '{lock' .. i .. '}:redlock')
end
"""


def at_once(report, times):
    server = Server("--maxclients", "4000")
    most = 1000 if times(100) >= 10 else 10
    for jobs in (1, 10, 100, 1000):
        if jobs > most:
            report.note(f"{jobs} at once are left out of a short run")
            continue
        floor = [tool("floor"), "lock", server.path, "lock{n}", "token",
                 "/bin/true"]
        runs = race({"floor": floor,
                     "redlock": [REDLOCK, "run", *PATIENT, "-S", server.url(),
                                 "lock{n}", "/bin/true"]},
                    times(min(100, max(5, 1000 // jobs))), jobs=jobs)
        report.table(f"{jobs} processes at once, a key each",
                     rows(runs, "floor"))
    server.kill()


def listing(report, times):
    table = []
    for count in (100, 10000):
        server = Server()
        Crowd([server.url()]).call("acquire", "-t", "1h", "lock1")
        Redis(server.path)("EVAL", COPY, "0", str(count))
        listed = Crowd([server.url()]).call("list").splitlines()
        if len(listed) != count:
            raise RuntimeError(f"{len(listed)} of {count} locks are listed")
        one = race({"list": [REDLOCK, "list", "-S", server.url()]},
                   times(10))["list"]
        table.append({"": f"list, {count} held", "turns": len(one.walls),
                      "wall ms": one.wall, "most ms": max(one.walls),
                      "CPU ms": one.cpu, "peak RSS MiB": one.rss / 1024})
        server.kill()
    report.table("list", table)
    report.goal("list of 10000: s", table[1]["wall ms"] / 1000, 1)
    report.goal("list of 10000: peak RSS, MiB", table[1]["peak RSS MiB"], 8)


def run(report, times):
    at_once(report, times)
    listing(report, times)
