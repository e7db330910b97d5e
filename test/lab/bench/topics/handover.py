"""from one waiting process to the next"""
from lab import median
from network import ADDRESS, NamedServer, Wire, why_not
from waiters import (FLOOR, POLLER, QUEUE, Field, by_turns, hand_over_rows,
                     hand_overs)

WAYS = FLOOR, QUEUE, POLLER
RTT = 20


def near(report, times):
    def take(way):
        field = Field()
        field.hold()
        field.waiters(way, 2 + min(20, times(20)))
        field.drain(way)
        field.server.kill()
        return hand_overs(field)

    found = by_turns(WAYS, times(15), take)
    rows = hand_over_rows(found, 1)
    report.table("Unix socket: a release at the server to the next command's "
                 "start", rows)
    report.table("Unix socket: a command's end to the next one's start",
                 hand_over_rows(found, 0))
    own = rows[WAYS.index(QUEUE)]
    report.goal("from the release: p50, x floor", own["x floor"], 1.3)
    report.goal("from the release: p99, x floor", own["p99 x floor"], 3)


# others in line behind those who are measured, or beside them: nobody is there
LINE = """
for i = 1, tonumber(ARGV[1]) do
    redis.call('ZADD', KEYS[1], ARGV[2], 'other' .. i)
    redis.call('HSET', KEYS[2], 'other' .. i, '20000 string 0 1 - 1\\n')
end
"""
FEW, LATER = 10, 4e12


def long_line(report, times):
    def take(what):
        line, count = what
        field = Field()
        field.hold()
        field.waiters(QUEUE, 2 + min(10, times(10)))
        names = [f"{{{field.key}}}:redlock:{name}" for name in (line, "wishes")]
        field.redis("EVAL", LINE, "2", *names, str(count),
                    str(LATER if line == "queue" else 1))
        field.drain(QUEUE)
        field.server.kill()
        return hand_overs(field)

    for line, title in ("queue", "in line"), ("waits", "who only wait, gone"):
        ways = [(line, count) for count in (FEW, 1000, 10000)]
        found = by_turns(ways, times(5), take)
        rows = [{"": f"{count} {title}", "count": sum(map(len, found[way])),
                 "p50 ms": median([row[1] for turn in found[way]
                                   for row in turn])}
                for way in ways for count in way[1:]]
        report.table(f"Unix socket: from the release, with others {title}",
                     rows)
        for row in rows[1:]:
            report.goal(f"{row['']}: p50, x that with {FEW}",
                        row["p50 ms"] / rows[0]["p50 ms"], 2)


def far(report, times):
    wire = Wire()
    wire.stretch(RTT)
    address = f"{ADDRESS}:6379"

    def take(way):
        server = NamedServer(wire.far, 6379)
        field = Field(server, "redis://" + address, address, wire.near.inside)
        field.hold()
        field.waiters(way, 2 + min(10, times(10)))
        field.drain(way)
        server.kill()
        return hand_overs(field)

    rows = hand_over_rows(by_turns(WAYS, times(3), take), 0)
    for row in rows:
        row["round trips"] = row["p50 ms"] / RTT
    report.table(f"{RTT} ms away: a command's end to the next one's start",
                 rows)
    report.goal(f"{RTT} ms away: p50, round trips",
                rows[WAYS.index(QUEUE)]["round trips"], 1.2)


def run(report, times):
    near(report, times)
    long_line(report, times)
    if why := why_not():
        report.note(f"{RTT} ms away: {why}")
    else:
        far(report, times)
