"""round trips of one run, on a network where every packet takes its time"""
import os

from lab import HOME, REDLOCK, Redis, share, tool, wait_until
from network import (ADDRESS, NamedSentinel, NamedServer, Wire, cluster,
                     why_not)
from races import race

ONE, FIVE, MORE = "redlock", "5 servers", "password, db, quarantine"
SENTINEL, CLUSTER = "Sentinel", "cluster"
UNKNOWN = ", place unknown"
FIRST = 6379
SENTINELS = range(26379, 26382)
NODES = range(7000, 7003)


def addresses(ports):
    return ",".join(f"{ADDRESS}:{port}" for port in ports)


def where(name):
    """What leads to where places are remembered, or not: a directory that is
    open to others is not used."""
    home = f"{HOME}/{name}"
    if not os.path.isdir(home):
        os.makedirs(home + "/redlock")
        os.chmod(home + "/redlock", 0o700 if name == "known" else 0o755)
    return ["env", "XDG_RUNTIME_DIR=" + home]


class Far:
    """Servers, and a network between them and what is measured."""

    def __init__(self):
        self.wire = Wire()
        self.servers = [NamedServer(self.wire.far, FIRST + i)
                        for i in range(5)]
        self.secret = NamedServer(self.wire.far, FIRST + 5, "--requirepass",
                                  "secret")
        redis = Redis(self.secret.path)
        redis("AUTH", "secret")
        self.sentinels = [NamedSentinel(self.wire.far, port, FIRST)
                          for port in SENTINELS]
        self.nodes = []
        # one that was started within this second has no vote in a quarantine
        wait_until(lambda: int(redis.info("server")["uptime_in_seconds"]) > 1,
                   20, "a second")

    def measure(self, rtt, rounds):
        self.wire.stretch(rtt)
        self.nodes = self.nodes or cluster(self.wire.far, NODES)
        sought = {SENTINEL: "redis+sentinel://" + addresses(SENTINELS) +
                  "/main", CLUSTER: "redis+cluster://" + addresses(NODES)}
        urls = [f"redis://{ADDRESS}:{FIRST + i}" for i in range(5)]
        run, command = [REDLOCK, "run", "-S"], [tool("floor"), "now"]
        # a key for each of them: one that a single server has counted on with
        # takes the five another exchange to agree on its fence
        return race({
            "floor": [tool("floor"), "lock", f"{ADDRESS}:{FIRST}", "floor",
                      "token", *command],
            ONE: [*run, urls[0], "one", *command],
            FIVE: [*run, ",".join(urls), "--quarantine", "0", "five",
                   *command],
            MORE: [*run, f"redis://:secret@{ADDRESS}:{FIRST + 5}/3",
                   "--quarantine", "1ms", "more", *command],
            **{name: [*where("known"), *run, url, name, *command]
               for name, url in sought.items()},
            **{name + UNKNOWN: [*where("unknown"), *run, url, name,
                                          *command]
               for name, url in sought.items()},
        }, rounds, start=True, inside=self.wire.near.inside)


def run(report, times):
    if why := why_not():
        report.note(why)
        return
    far = Far()
    for rtt, rounds in (20, 20), (80, 7):
        runs = far.measure(rtt, times(rounds))
        report.table(f"{rtt} ms away, in round trips (the handshake is one)", [
            {"": name, "turns": len(one.walls),
             "to the start": one.start / rtt, "in all": one.wall / rtt,
             "p10": share(one.walls, 0.1) / rtt,
             "p90": share(one.walls, 0.9) / rtt} for name, one in runs.items()])
        # what is less than a whole one is time that both ends take
        one = runs[ONE]
        report.goal(f"{rtt} ms: whole ones to the start", int(one.start / rtt),
                    2)
        report.goal(f"{rtt} ms: whole ones in all", int(one.wall / rtt), 3)
        for name in SENTINEL, CLUSTER:
            late = runs[name + UNKNOWN]
            report.goal(f"{rtt} ms: {name}{UNKNOWN}, whole ones to the start",
                        int(late.start / rtt), 4)
        for name in FIVE, MORE, SENTINEL, CLUSTER:
            report.goal(f"{rtt} ms: {name}, x one server",
                        runs[name].wall / one.wall, 1.05)
    for server in (*far.servers, far.secret, *far.sentinels, *far.nodes):
        server.kill()
