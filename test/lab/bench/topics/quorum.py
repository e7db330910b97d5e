"""five servers, of which two are away"""
import os
import signal

from lab import REDLOCK, wait_until
from network import NamedServer, Namespace, why_not
from races import race, rows

UP, FIRST = "all up", 7001
TIMEOUT = 1000  # ms that redlock gives a round


def stop(pid):
    os.kill(pid, signal.SIGSTOP)

    def has_stopped():
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return ") T " in file.read()

    wait_until(has_stopped, 20, "a stopped server")


def run(report, times):
    if why := why_not():
        report.note(why)
        return
    space = Namespace()
    # three that all have in common, two each of: up, stopped, dropped; and
    # of the ports of the last two nobody knows
    servers = [NamedServer(space, FIRST + i) for i in range(9)]
    for server in servers[5:7]:
        stop(server.process.pid)
    for i in (7, 8):
        space.run("iptables", "-w", "-A", "INPUT", "-p", "tcp", "--dport",
                  str(FIRST + i), "-j", "DROP")

    def urls(first):
        return ",".join(f"redis://127.0.0.1:{FIRST + i}"
                        for i in (0, 1, 2, first, first + 1))

    states = {UP: urls(3), "stopped": urls(5), "packets dropped": urls(7),
              "connections refused": urls(9)}
    # these were started just now, and would have no vote
    options = ["--quarantine", "0"]
    for what, words in (("acquire", ["lock{turn}"]),
                        ("run", ["lock", "/bin/true"])):
        runs = race({name: [REDLOCK, what, "-S", servers_, *options, *words]
                     for name, servers_ in states.items()}, times(50),
                    inside=space.inside)
        found = rows(runs, UP)
        for row, one in zip(found, runs.values()):
            row["x all up"] = row.pop("x floor")
            row["most ms"] = max(one.walls)
            del row["CPU x floor"]
        report.table(f"{what}, two servers", found)
        for name, one in runs.items():
            if name != UP:
                report.goal(f"{what}, {name}: wall, x all up",
                            one.wall / runs[UP].wall, 1.1)
        report.goal(f"{what}: the longest of all, ms",
                    max(max(one.walls) for one in runs.values()), TIMEOUT / 2)
    for server in servers:
        server.kill()
