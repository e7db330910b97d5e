"""from one waiting process to the next"""
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
    if why := why_not():
        report.note(f"{RTT} ms away: {why}")
    else:
        far(report, times)
