"""permits on three servers: contenders that hold one for 10 to 50 ms, again and again"""
import re
import subprocess
import threading
import time

from lab import ENVIRONMENT, REDLOCK, Redis, Server

PERMITS = 4
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
LOOP = '''for ((i = 0; i < $2; i++)); do
    "$0" run -q --quarantine 0 -S "$1" -P "$3" "$4" sleep "0.0$((RANDOM % 41 + 10))" || exit
done'''


class Rounds:
    """How often a server was asked for a permit: what is put back is not."""

    def __init__(self, server):
        self.connection, self.count = Redis(server.path), 0
        self.connection("MONITOR")
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.connection.file:
            if b" lua]" in line[:60]:
                continue
            if b'"ECHO"' in line:
                return
            words = QUOTED.findall(line.decode("utf-8", "replace"))
            if words[0] in ("EVAL", "EVALSHA") and len(words) == 21:
                self.count += words[13] == "0"

    def total(self, server):
        Redis(server.path)("ECHO", "the end")
        self.thread.join(20)
        return self.count


def contend(servers, count, each, key):
    """For one acquisition; and how long all took (ms)."""
    up = [server for server in servers if server.process.poll() is None]
    rounds, begin = [Rounds(server) for server in up], time.monotonic()
    urls = ",".join(server.url() for server in servers)
    loops = [subprocess.Popen(
        ["bash", "-c", LOOP, REDLOCK, urls, str(each), str(PERMITS), key],
        env=ENVIRONMENT) for _ in range(count)]
    if any([loop.wait() for loop in loops]):
        raise RuntimeError(f"{count} contenders: one has failed")
    wall = 1000 * (time.monotonic() - begin)
    asked = sum(one.total(server) for one, server in zip(rounds, up))
    return asked / len(up) / (count * each), wall


def run(report, times):
    table, all_up = [], {}
    servers, each = [Server() for _ in range(3)], times(30)
    for down in 0, 1:
        if down:
            servers[0].kill()
        contend(servers, 1, 1, "warm-up")
        for count in PERMITS // 2, PERMITS, 2 * PERMITS:
            rounds, wall = contend(servers, count, each, f"key{count}")
            table.append({"": f"{count} contenders, {down} of 3 servers down",
                          "acquired": count * each, "rounds": rounds,
                          "wall ms": wall})
            if count != PERMITS:
                report.goal(f"{count} contenders, {down} down: rounds", rounds,
                            1.3 if count < PERMITS else 2.5)
            if down:
                report.goal(f"{count} contenders, {down} down: x the time of all",
                            wall / all_up[count], 2)
            else:
                all_up[count] = wall
    for server in servers[1:]:
        server.kill()
    report.table(f"{PERMITS} permits; rounds are for one acquisition", table)
